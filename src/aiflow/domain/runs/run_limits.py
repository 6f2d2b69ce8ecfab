"""The limits of a run (RUN-4), and the ceilings on what its agents use."""

from __future__ import annotations

from dataclasses import dataclass, field

from aiflow.domain.agents.ceilings import Ceilings
from aiflow.domain.agents.usage import Usage

STEP_RETRIES = 3


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of RUN-4 and the ceilings on what agents use, from the settings."""

    role_attempts: int = 2
    step_retries: int = STEP_RETRIES
    step_files: int = 20
    step_lines: int = 400
    # Of this run, and of the auto-run it belongs to, which has used up `spent` in earlier runs.
    ceilings: Ceilings = field(default_factory=Ceilings)
    session_ceilings: Ceilings = field(default_factory=Ceilings)
    spent: Usage = field(default_factory=Usage)
