"""A stopped run (RUN-4 to RUN-8): what counts for how it continues, and what is recommended."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.lifecycle import RunState
from aiflow.domain.reasons import CATALOGUE, WayOn, shown_way, way_on, way_to_mend
from aiflow.domain.run_summary import FROM_NEWER
from aiflow.domain.runs.resume import PLANNING, StoppedRun
from aiflow.domain.runs.retry import NOT_THE_WORK, may_retry_step, replan_signal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.next_action import NextAction
    from aiflow.domain.runs.run import Run


def as_stopped(run: Run, newer_run_id: str | None) -> StoppedRun:
    """Sum a run up for the decision how it continues."""
    step = run.current_step
    stops = run.work.stops if step else ()
    root = (run.error.cause or run.error.reason_code) if run.error else None
    return StoppedRun(
        run_id=run.run_id,
        state=run.state,
        step_ids=tuple(planned.id for planned in run.plan),
        done_step_ids=frozenset(step_id for step_id, work in run.steps.items() if work.is_done),
        current_step_id=run.current_step_id,
        retries={name: count for name, count in _retries(run) if count},
        has_failed=root not in NOT_THE_WORK,
        replan_signal=replan_signal(stops, step.target_paths) if step else None,
        replaced_by=run.replaced_by,
        newer_run_id=newer_run_id,
        is_from_newer=run.error is not None and run.error.reason_code == FROM_NEWER,
        is_planned=run.is_planned,
        is_work_done=run.stopped_in is RunState.TESTING and root in NOT_THE_WORK,
    )


def _retries(run: Run) -> Iterator[tuple[str, int]]:
    yield PLANNING, run.planning_retries
    yield from ((step_id, work.retries) for step_id, work in run.steps.items())


def is_retried_out(run: Run) -> bool:
    """Return whether a run stopped in what may not be done again any more, as its owner counts (RUN-4)."""
    stopped = as_stopped(run, None)
    count = stopped.retries.get(run.current_step.id if run.current_step else PLANNING, 0)
    return stopped.has_failed and not may_retry_step(count, run.step_retries)


def may_repeat(run: Run) -> bool:
    """Return whether a stopped run may resume, or do its step again, without a change by hand and without force."""
    return not _has_signal(run) and not is_retried_out(run)


def _has_signal(run: Run) -> bool:
    step = run.current_step
    is_open = step is not None and not run.work.is_done
    return step is not None and is_open and replan_signal(run.work.stops, step.target_paths) is not None


def recommended(run: Run) -> WayOn | None:
    """Return the next step: a new plan if the step's stops call for one, else what its reason says.

    What is done can only be accepted, or brought in line with its base first; or sent back, if that was undone.
    """
    if run.error is None:
        return None
    if run.state is RunState.DONE:
        way = way_on(run.error.reason_code, run.error.cause)
        return way if way in (WayOn.UPDATE, WayOn.SEND_BACK) else WayOn.ACCEPT
    if run.state is RunState.NEEDS_INPUT and run.error.reason_code not in CATALOGUE:
        return WayOn.RESUME  # a newer aiflow's reason; the run's state says that it continues
    if _has_signal(run):
        return WayOn.REPLAN
    way = way_on(run.error.reason_code, run.error.cause)
    return WayOn.REPLAN if way in (WayOn.RESUME, WayOn.RETRY_STEP) and is_retried_out(run) else way


class WayOut(NamedTuple):
    """What is to be done with a run now: the reason, the recommended next step, and its action; None if nothing is."""

    reason_code: str | None = None
    way_on: WayOn | None = None
    action: NextAction | None = None


def outcome_code(run: Run) -> str | None:
    """Return the reason code that says what is to be done now; a DONE run waits for acceptance."""
    if run.error is not None:
        return run.error.reason_code
    return "AWAITING_ACCEPTANCE" if run.state is RunState.DONE and not run.accepted_as else None


def way_out(run: Run) -> WayOut:
    """Say what is to be done with a run now."""
    code, cause = outcome_code(run), run.error.cause if run.error else None
    if code is None:
        return WayOut()
    way = recommended(run)
    action = way_to_mend(code, run.request_id, cause, way)
    return WayOut(code, shown_way(way or way_on(code, cause), run.request_id), action)
