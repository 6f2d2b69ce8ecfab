"""What waits for a person (WEB-1): the matter itself, what it holds up, and every way to continue."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from aiflow.domain.morning.excerpt import Excerpt
    from aiflow.domain.morning.unblocking import Unblocks
    from aiflow.domain.runs.ways import Way
    from aiflow.domain.runs.worktree import FileDiff
    from aiflow.domain.wait_kind import WaitKind

FILES_SHOWN = 6
AWAITING = "AWAITING_ACCEPTANCE"


class DiffStat(NamedTuple):
    """What there is to accept: the first files, how many more, and the lines of all; `is_gone` if git lost it."""

    files: tuple[FileDiff, ...] = ()
    more: int = 0
    added: int = 0
    deleted: int = 0
    is_gone: bool = False


class StoppedWhere(NamedTuple):
    """Where a run stopped: its step by number of how many, who was at work, which attempt, what was called.

    `retries` is how often the step was done again, of `retries_allowed`.
    """

    step_id: str | None = None
    step_title: str = ""
    step_number: int = 0
    steps: int = 0
    role: str | None = None
    attempt: int = 0
    attempts_allowed: int = 0
    retries: int = 0
    retries_allowed: int = 0
    command: str | None = None
    exit_code: int | None = None


class WaitingItem(NamedTuple):
    """A request that waits for a person, with all that is needed to decide.

    `ways` are those of its run's page; `cost_usd` is None if no agent reported one.
    """

    kind: WaitKind
    request_id: str
    title: str
    run_id: str | None
    since: datetime | None
    reason_code: str
    cause: str | None
    summary: str
    where: StoppedWhere
    question: str | None
    choices: tuple[str, ...]
    excerpt: Excerpt | None
    diff: DiffStat | None
    unblocks: Unblocks
    ways: tuple[Way, ...]
    base_branch: str = ""
    worked_seconds: float = 0.0
    cost_usd: float | None = None
    is_overdue: bool = False


class WaitingList(NamedTuple):
    """What waits for a person: the first in full, how many there are in all, and how many of each kind."""

    items: tuple[WaitingItem, ...]
    total: int
    by_kind: tuple[tuple[WaitKind, int], ...]

    @property
    def more(self) -> int:
        """How many are only counted."""
        return self.total - len(self.items)


def stat_of(files: tuple[FileDiff, ...] | None) -> DiffStat:
    """Sum up which files differ; None is what git has no more."""
    if files is None:
        return DiffStat(is_gone=True)
    added, deleted = sum(file.added for file in files), sum(file.deleted for file in files)
    return DiffStat(files[:FILES_SHOWN], max(0, len(files) - FILES_SHOWN), added, deleted)
