"""What the next agent learns about a run (AGT-1, RUN-18): earlier steps, what tests put out, and the whole change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.agents.call import StepDone
from aiflow.usecases.runs.diff import ends_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.agents.call import Feedback
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.runs.work import Work


def steps_done(run: Run) -> dict[str, StepDone]:
    """Return what became of each step that is done."""
    return {step_id: StepDone(work.summary, work.commit) for step_id, work in run.steps.items() if work.is_done}


def feedback_for(run: Run) -> tuple[Feedback, ...]:
    """Return what went wrong and what was asked for; a step that merges the base in does only that, not the request."""
    return run.visit.feedback if run.work.merges else (*run.feedback, *run.visit.feedback)


def diff_of_former(work: Work) -> str:
    """Return what the run before changed, as far as git still has that."""
    former = work.run.former
    found = work.workspace.compare(former.base, former.tip) if former and former.base and former.tip else None
    return found.text if found else ""


def tests_shown(work: Work) -> str:
    """Return what the step's tests put out when they passed; nothing where another process ran them."""
    if not work.run.visit.is_tested:
        return ""
    commands = work.engine.test_commands
    return "\n\n".join(f"$ {commands[kind]}\n{output}".rstrip() for kind, output in work.test_output.items())


def whole_of(work: Work) -> Callable[[], str] | None:
    """Return how to see what all steps changed together, at the last one; None where that is the step's own change."""
    run = work.run
    is_last = run.is_planned and run.current_step_id == run.plan[-1].id
    began, _ = ends_of(run)
    if not is_last or began == run.step_base:
        return None

    def whole() -> str:
        if work.collected is None:
            work.collect()
        return work.workspace.diff(run.place, began)

    return whole
