"""What came of undoing an acceptance, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.domain.runs.undoing import undone_of
from aiflow.usecases.shapes.runs import run_result

if TYPE_CHECKING:
    from aiflow.domain.backlog.built_on import BuiltOn
    from aiflow.domain.runs.run import Run


def undone_shape(run: Run, found: BuiltOn) -> dict[str, Any]:
    """`undo --json`: the run as it is now, the commit that took its work out, and what had been built on that.

    There is no commit where there was nothing to take out.
    """
    landing = undone_of(run)
    undone_as = landing.undone_as if landing else None
    built = {name: list(ids) for name, ids in found._asdict().items()}
    return {**run_result(run), "undone_as": undone_as, "built_on": built}
