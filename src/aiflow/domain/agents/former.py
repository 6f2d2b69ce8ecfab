"""What a run knows of the one before it (REQ-6a, RUN-6): its plan, what became of each step, where its work lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from aiflow.domain.agents.diff_text import capped_diff

if TYPE_CHECKING:
    from collections.abc import Callable

# How much of what the run before changed is shown.
MOST_SHOWN = 60_000


class FormerStep(NamedTuple):
    """One step of the former plan: whether it was done, what its implementer said about it, and its commit."""

    id: str
    title: str
    is_done: bool = False
    summary: str = ""
    commit: str | None = None


class Continued(NamedTuple):
    """The run whose branch a run continues, and the commit it begins at."""

    run_id: str
    commit: str


@dataclass(frozen=True, slots=True)
class Former:
    """The run before: why it ended, its plan, and the two commits between which everything it changed lies.

    `tip` has what its unfinished step left as well, where git still has that.
    """

    run_id: str
    reason_code: str
    base: str = ""
    tip: str = ""
    steps: tuple[FormerStep, ...] = ()


def former_shape(former: Former, continues: str | None, diff: Callable[[], str] | None) -> dict[str, Any]:
    """Write the run before as an agent program gets it (AGT-2)."""
    return {
        "run_id": former.run_id,
        "reason_code": former.reason_code,
        "is_continued": former.run_id == continues,
        "steps": [step._asdict() for step in former.steps],
        "base": former.base,
        "commit": former.tip,
        "diff": capped_diff(diff(), MOST_SHOWN) if diff else "",
    }
