"""Bring a finished run's work into the base branch (GIT-3, REQ-6): merge, test the merged tree, then move the base.

Everything up to the move can be thrown away; behind it only the record is missing, and doing it all again finds the
work already in the base.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import RunState
from aiflow.domain.programs import End
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.run_events import accepted, accepting, failure, not_accepted
from aiflow.errors import AiflowError, EnvironmentProblemError
from aiflow.settings import FILE_NAME
from aiflow.usecases.run_report import add_lines, record_verdict
from aiflow.usecases.run_work import SECONDS_OVER, end_of, trailers_of, with_trailers

if TYPE_CHECKING:
    from aiflow.domain.merge import Merge
    from aiflow.domain.place import Place
    from aiflow.domain.run import Run, RunError
    from aiflow.ports import StepLog
    from aiflow.usecases.run_work import Work

# Somebody else may commit to the base branch while the merged tree is tested; then it is merged and tested anew.
ROUNDS = 10


def accept_by_itself(work: Work) -> None:
    """Bring a DONE run in if the settings say so and its request is still ours; a person decides about the rest."""
    engine, run = work.engine, work.run
    if engine.settings.text("accept") != "auto" or run.state is not RunState.DONE or run.accepted_as:
        return
    if engine.source.load(RequestId(run.request_id)).status is RequestStatus.RUNNING:
        bring_in(work, is_automatic=True)


def bring_in(work: Work, *, is_automatic: bool) -> None:
    """Bring a DONE run in, or record why not; a stop that was asked for leaves it as it was."""
    try:
        done = _try(work, is_automatic=is_automatic)
    except AiflowError as error:
        if error.reason_code == "LOCK_LOST":
            raise
        done = _not_for(work, error)
    if isinstance(done, str):
        _record_accepted(work, done)
    elif done is not None:
        record_verdict(work, not_accepted(work.run, done, work.engine.clock()))


def _try(work: Work, *, is_automatic: bool) -> str | RunError | None:
    """Return the base's commit that has the work, or why there is none; None if it was stopped."""
    run, merging = work.run, work.engine.merging
    discard_merge(work)
    for _ in range(ROUNDS):
        merge = merging.merge(run.place, _message(run))
        if merge.conflicts:
            return _why(run, "MERGE_CONFLICT", ", ".join(merge.conflicts))
        if merge.commit is None:
            return merge.base if _has_work(work, merge.base) else _why(run, "RUN_NOT_ACCEPTABLE", run.place.branch)
        refused = (_for_a_person(run, merge) if is_automatic else None) or _test(work, merge.commit)
        if work.should_stop():
            work.require_lock()
            return None
        if refused is not None:
            return refused
        is_whole = work.workspace.tip(run.place) == merge.tip  # nobody has committed there meanwhile
        if is_whole and _move(work, merge):
            return merge.commit
    problem = f"{run.place.base_branch} kept moving while the merge was tested"
    raise EnvironmentProblemError(reason_code="GIT_FAILED", command="git merge", problem=problem)


def _has_work(work: Work, base: str) -> bool:
    """Tell whether the base has what the run committed: its branch may have been set back by hand."""
    run = work.run
    return not run.has_commits or work.workspace.is_ancestor(run.place, run.tip, base)


def _for_a_person(run: Run, merge: Merge) -> RunError | None:
    """Tell what only a person may accept: changed settings, and conflicts that nothing shows to be resolved."""
    if FILE_NAME in merge.paths:
        return _why(run, "SETTINGS_CHANGED", FILE_NAME)
    unmarked = sorted({path for step in run.steps.values() for path in step.unmarked})
    return _why(run, "CONFLICT_TO_REVIEW", ", ".join(unmarked)) if unmarked else None


def _move(work: Work, merge: Merge) -> bool:
    with work.lease.writing():
        return work.engine.merging.move_base(work.run.place, merge)


def _message(run: Run) -> str:
    return with_trailers(f"Merge {run.request_id}: {run.title or run.run_id}", trailers_of(run))


def _why(run: Run, reason_code: str, summary: str) -> RunError:
    why = failure(run, reason_code, summary)
    return replace(why, facts=(("branch", run.place.branch), ("detail", summary)))


def _not_for(work: Work, error: AiflowError) -> RunError:
    """Take an error for the reason why the work is not in yet."""
    mask = work.engine.mask
    facts = tuple((name, mask(str(fact))) for name, fact in error.context.items() if isinstance(fact, str))
    known = dict(facts)
    summary = known.get("detail") or known.get("problem") or known.get("path") or ""
    return replace(failure(work.run, error.reason_code, summary), facts=facts)


def _test(work: Work, commit: str) -> RunError | None:
    """Test the merged tree in a worktree of its own, set up as every other; None if nothing is wrong with it."""
    engine, place = work.engine, _merged_place(work.run)
    commands = engine.test_commands
    if not commands:
        return None
    work.save(accepting(work.run, engine.clock()))
    try:
        engine.merging.check_out(commit, place)
        engine.workshop.copy(engine.settings.texts("worktree.copy"), place.path)
        setup = engine.settings.text("worktree.setup")
        every = ([("SETUP_FAILED", "set-up", setup)] if setup.strip() else []) + [
            ("MERGE_TESTS_FAILED", f"{kind} tests", command) for kind, command in commands.items()
        ]
        for reason_code, name, command in every:
            why = _run_command(work, place, (reason_code, name, command))
            if why is not None or work.should_stop():
                return why
    finally:
        discard_merge(work)
    return None


def discard_merge(work: Work) -> None:
    """Remove the worktree in which the merge is tested, also one that an acceptance left that was killed."""
    if not work.lease.is_lost:  # else whoever took the lock may test there already
        work.engine.merging.discard(_merged_place(work.run).path)


def _merged_place(run: Run) -> Place:
    return replace(run.place, path=f"{run.place.path}.merge")


def _run_command(work: Work, place: Place, wanted: tuple[str, str, str]) -> RunError | None:
    """Run one command on the merged tree; what it says goes into the last step's log."""
    reason_code, name, command = wanted
    log: StepLog = work.open_log(f"acceptance, {name}: {command}")
    try:
        work.lease.allow(work.engine.settings.number("tests.timeout_seconds") + SECONDS_OVER)
        ended = work.engine.workshop.shell(command, place, log.write, work.should_stop)
        work.require_lock()
        if ended.end is End.STOPPED or (ended.end is End.EXITED and ended.exit_code == 0):
            return None
        return work.failure(reason_code, f"{command}: {end_of(ended)}", log, command, ended)
    finally:
        log.close()


def _record_accepted(work: Work, commit: str) -> None:
    """Write down that the work is in."""
    engine = work.engine
    run = accepted(work.run, commit, engine.clock())
    with work.lease.writing():
        engine.runs.write_errors(run, None)
        told = engine.texts("report.accepted", base=run.place.base_branch, commit=commit[:12])
        if told not in (engine.runs.report(run) or ""):  # a kill may have come before the record
            add_lines(engine, run, [f"{run.changed_at.isoformat(timespec='seconds')} {told}", ""])
    work.save(run)
