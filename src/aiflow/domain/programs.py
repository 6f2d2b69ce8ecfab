"""External programs as values (AGT-2, AGT-4, AGT-5): what to run, how it ended, the marks its processes carry."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class End(StrEnum):
    """How an external program ended."""

    EXITED = "exited"
    NOT_FOUND = "not_found"
    NOT_EXECUTABLE = "not_executable"
    NOT_CONFINED = "not_confined"
    TIMED_OUT = "timed_out"
    SILENT = "silent"
    STOPPED = "stopped"
    GUARD_LOST = "guard_lost"


@dataclass(frozen=True, slots=True)
class Program:
    """Something external to run (AGT-4): its whole environment, its limits, and the run it is marked with.

    With `writable` it is started only if the kernel lets it write below these paths alone (and to devices), it and
    whatever it starts; a path that does not exist counts for nothing. None: it writes where the user may.
    """

    argv: tuple[str, ...]
    cwd: str
    environ: Mapping[str, str]
    run_id: str
    timeout_seconds: float
    idle_seconds: float
    stdin: bytes = b""
    writable: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended; a negative exit code is a signal. `leftovers` counts the processes it had left running."""

    end: End
    exit_code: int | None = None
    leftovers: int = 0


# What an agent or a test command of a run carries, and everything it starts.
RUN_MARK = "AIFLOW_RUN_ID"
# The guard process itself, and git: they end soon after the runner, and we wait for that.
GUARD_MARK = "AIFLOW_GUARD_OF"
GIT_MARK = "AIFLOW_GIT_OF"
