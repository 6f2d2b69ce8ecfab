"""One run being worked on: the run as it is now, its lock, its worktree; every save goes through here (LCK-3)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from aiflow.domain.activity import Actor, moved
from aiflow.domain.agents.plain_text import plain
from aiflow.domain.lifecycle import RunEvent, RunState
from aiflow.domain.runs.events import failure
from aiflow.errors import ConflictError
from aiflow.messages.details import as_text, recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiflow.domain.agents.call import Brief
    from aiflow.domain.details import Detail
    from aiflow.domain.programs import Ended
    from aiflow.domain.runs.run import Happening, Run, RunError
    from aiflow.domain.runs.worktree import Changes
    from aiflow.errors import AiflowError
    from aiflow.ports import Lease, StepLog, Workspaces
    from aiflow.usecases.engine import Engine


# What ending a program and reading what it left may take besides its own limit.
SECONDS_OVER = 60.0


class LostLockError(ConflictError):
    """The lock of the run was taken over; nothing more is written."""

    reason_code = "LOCK_LOST"


@dataclass
class Work:
    """A run and what it is worked on with; `is_confirmed` once its source let it begin (ISS-3)."""

    engine: Engine
    lease: Lease
    run: Run
    workspace: Workspaces = field(init=False)
    collected: Changes | None = None
    is_confirmed: bool = False
    # What the current step's tests put out, by kind, as far as this process ran them.
    test_output: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.workspace = self.engine.workspaces(self.run.run_id)

    @property
    def brief(self) -> Brief:
        """The request as it was when the run began."""
        return self.engine.runs.brief(self.run)

    def save(self, run: Run) -> None:
        """Write the run while the lock is ours, record in the journal what happened, and continue with it."""
        with self.lease.writing():
            self.engine.runs.save(run)
        fresh = run.history[len(self.run.history) :]
        before, self.run = self.run, run
        for line in fresh:
            data: dict[str, object] = {
                "event": line.event,
                "from": before.state,
                "to": run.state,
                "step_id": line.step_id,
            }
            data |= {"mode": line.note} if line.event.startswith("RESUMED") else _more(run, line)
            self.engine.journal.append(moved(line.at, Actor.ENGINE, run, line.reason_code, **data))
        self.engine.source.progress(run)
        self.engine.voice.observe(run)

    def collect(self) -> Changes:
        """Take what the step changed so far into the index."""
        self.collected = self.workspace.collect(self.run.place, self.run.step_base)
        return self.collected

    def should_stop(self) -> bool:
        """Return whether the agent has to end: a person cancelled, a signal came, or the lock is lost."""
        return (
            self.lease.is_lost or self.engine.voice.interrupted() or self.engine.control.is_cancelled(self.run.run_id)
        )

    @property
    def stop_code(self) -> str:
        """Why it ends, where it has to: a person's cancel of this very run counts before all else."""
        is_cancelled = self.engine.control.is_cancelled(self.run.run_id)
        return "CANCELLED" if is_cancelled else self.engine.charge.stop_code()

    def require_lock(self) -> None:
        """Go no further without the lock."""
        if self.lease.is_lost:
            raise LostLockError(request_id=self.run.request_id, run_id=self.run.run_id)

    def open_log(self, title: str, number: int | None = None) -> StepLog:
        """Open the current step's log (the planner's without a step), or that of a number; the caller follows it."""
        chosen = self.log_number if number is None else number
        return self.engine.runs.open_log(self.run, chosen, title, self.engine.voice.follow)

    @property
    def log_number(self) -> int:
        """The number of the current step's log."""
        step = self.run.current_step
        return step.number if step else 0

    def failure(
        self, reason_code: str, summary: str | Detail, log: StepLog, command: str, ended: Ended | None = None
    ) -> RunError:
        """Name a failure with what its log shows."""
        text, told = recorded(summary, self.engine.mask)
        why = failure(
            self.run,
            reason_code,
            text,
            command=self.engine.mask(command) or None,
            exit_code=ended.exit_code if ended else None,
            stderr_snippet=log.tail,
            log_paths=(self.engine.runs.log_path(self.run, self.log_number),),
        )
        return replace(why, facts=told, output=log.excerpt if ended else "")


def _more(run: Run, line: Happening) -> dict[str, object]:
    """Return what the journal says besides of a step that ended and the one that begins, and of a merge."""
    if line.event == RunEvent.ACCEPTED:
        return {"commit": line.note, "base_branch": run.place.base_branch}
    if line.event not in (RunEvent.PLANNED, RunEvent.STEP_DONE, RunEvent.LAST_STEP_DONE):
        return {}
    told: dict[str, object] = {
        "steps": len(run.plan),
        "steps_done": sum(step.is_done for step in run.steps.values()),
    }
    begins = run.current_step if run.state is RunState.IMPLEMENTING else None
    return {**told, "next_step_id": begins.id, "next_title": begins.title} if begins else told


def failure_for(run: Run, error: AiflowError, mask: Callable[[str], str] = str) -> RunError:
    """Take an error for the reason why a run does not continue: what is wrong, and all that its words need."""
    # The reason says what is wrong; the reason's own words say what it is about.
    known = (error.context.get(name) for name in ("problem", "detail", "path"))
    summary, told = recorded(next((fact for fact in known if fact), ""), mask)
    plain = ((name, as_text(fact)) for name, fact in error.context.items() if fact is not None)
    facts = tuple((name, mask(text)) for name, text in plain)
    why = failure(run, error.reason_code, summary, command=dict(facts).get("command"))
    return replace(why, facts=(*facts, *told))


@contextlib.contextmanager
def taking_up(lease: Lease) -> Iterator[None]:
    """Give the lock back if a run cannot be taken up; else the code that works on it does."""
    try:
        yield
    except BaseException:
        lease.release()
        raise


@contextlib.contextmanager
def holding(engine: Engine, lease: Lease, run: Run) -> Iterator[Work]:
    """Have a run as it is now under its lock, which is given back in any case."""
    try:
        yield Work(engine, lease, engine.runs.load(run.request_id, run.run_id) or run)
    finally:
        lease.release()


def trailers_of(run: Run, step_id: str | None = None) -> dict[str, str]:
    """Return the lines by which a commit of aiflow's is known again: whose work it is, and of which step."""
    whose = {"Aiflow-Request": run.request_id, "Aiflow-Run": run.run_id}
    return whose if step_id is None else {**whose, "Aiflow-Step": step_id}


def with_trailers(message: str, trailers: dict[str, str]) -> str:
    """Put trailers after a commit's message, which closes no issue when GitHub gets it (ISS-9)."""
    from aiflow.domain.issue_ways import issue_number
    from aiflow.domain.issues.prose import without_closing

    text = plain(message)
    text = without_closing(text) if issue_number(trailers.get("Aiflow-Request", "")) else text
    return "\n".join([text, "", *(f"{name}: {value}" for name, value in trailers.items()), ""])
