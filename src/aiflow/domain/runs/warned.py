"""What a person should know of a run besides how it ended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Run

# The run changed aiflow's own settings: the person who accepts it sees a warning.
SETTINGS_CHANGED = "SETTINGS_CHANGED"
# The branch of the run that was sent back is gone, so the run began on the base (REQ-6a).
FORMER_BRANCH_GONE = "FORMER_BRANCH_GONE"


def warned(run: Run, code: str) -> Run:
    """Note what a person should know besides, once."""
    return replace(run, warnings=tuple(dict.fromkeys((*run.warnings, code))))
