"""A shell command of the settings in a run's worktree (RUN-3, GIT-4): under the lock, logged, and judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.programs import End
from aiflow.domain.runs.agent_events import worked
from aiflow.domain.runs.step_record import EndedTest, noted_test
from aiflow.messages.details import words
from aiflow.usecases.runs.obeyed import Obeyed
from aiflow.usecases.runs.work import SECONDS_OVER

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.programs import Ended
    from aiflow.domain.runs.run import RunError
    from aiflow.domain.runs.worktree import Place
    from aiflow.ports import StepLog
    from aiflow.usecases.runs.work import Work


class Command(NamedTuple):
    """What to run and where, the reason code of its failure, and another one where it takes too long.

    `refused` is that of a test that changed what git obeys: the agent may have written what it runs.
    """

    line: str
    place: Place
    failed: str
    too_late: str | None = None
    refused: str | None = None


class CommandVerdict(NamedTuple):
    """How a command came out: `why` is its failure; without one it succeeded, or was stopped from outside."""

    has_passed: bool
    why: RunError | None = None


def run_command(work: Work, command: Command, log: StepLog, tidy: Callable[[], None] = lambda: None) -> CommandVerdict:
    """Run a command to its end, `tidy` after it unless it was stopped, and close its log."""
    try:
        obeyed = Obeyed(work) if command.refused else None
        ended = _shell(work, command, log)
        if ended.end is End.STOPPED:
            return CommandVerdict(has_passed=False)
        if obeyed and (refused := obeyed.why_refused(log, command.line, command.refused or command.failed)):
            return CommandVerdict(has_passed=False, why=refused)
        tidy()
        if ended.end is End.EXITED and ended.exit_code == 0:
            return CommandVerdict(has_passed=True)
        is_late = ended.end in (End.TIMED_OUT, End.SILENT)
        code = command.too_late if is_late and command.too_late else command.failed
        told = words(f"command_end.{ended.end}", line=command.line, code=ended.exit_code)
        why = work.failure(code, told, log, command.line, ended)
        return CommandVerdict(has_passed=False, why=why)
    finally:
        log.close()


def note_test(work: Work, kind: str, verdict: CommandVerdict, seconds: float) -> None:
    """Note how a kind of test ended; one that was stopped from outside has no result."""
    why = verdict.why
    if verdict.has_passed or why is not None:
        code, exit_code = (why.reason_code, why.evidence.exit_code) if why else (None, 0)
        work.run = noted_test(work.run, EndedTest(kind, round(seconds, 3), code, exit_code))


def _shell(work: Work, command: Command, log: StepLog) -> Ended:
    """Run the command while the lock is renewed; its time counts as long as the run is at work."""
    engine = work.engine
    work.lease.allow(engine.settings.number("tests.timeout_seconds") + SECONDS_OVER)
    began = engine.time.monotonic()
    ended = engine.workshop.shell(command.line, command.place, log.write, work.should_stop)
    if work.run.is_active:
        work.run = worked(work.run, engine.time.monotonic() - began)
    work.require_lock()
    return ended
