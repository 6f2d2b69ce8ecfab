"""Work on a run until it ends (RUN-2, RUN-3): decide what is next, perform it, record what came of it, save.

Resuming after a crash is this same loop from the saved run; there is no second path.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.plan import whole_request
from aiflow.domain.next_action import ActionKind, NextAction
from aiflow.domain.runs.agent_events import quota_waited
from aiflow.domain.runs.events import (
    SETUP,
    crashed,
    failure,
    measured,
    noted,
    planned,
    prepared,
    push_failed,
    pushed,
    step_done,
    stopped,
    tested,
    testing,
)
from aiflow.domain.runs.next_move import Action, CallRole, ceiling_reached, next_action
from aiflow.domain.runs.warned import SETTINGS_CHANGED, warned
from aiflow.domain.runs.worktree import retry_ref
from aiflow.errors import AiflowError, as_problem
from aiflow.messages.commands import command_line
from aiflow.messages.details import recorded, words
from aiflow.settings import FILE_NAME
from aiflow.settings.table import LOCAL_STORE
from aiflow.usecases.runs.base_merge import continue_work
from aiflow.usecases.runs.baseline import run_baseline
from aiflow.usecases.runs.call_role import call_role, fail, limit_code, too_large
from aiflow.usecases.runs.commands import Command, note_test, run_command
from aiflow.usecases.runs.confirm import may_call
from aiflow.usecases.runs.ending import end_run, finish_run
from aiflow.usecases.runs.obeyed import REFUSED, stop_for
from aiflow.usecases.runs.work import SECONDS_OVER, LostLockError, Work, failure_for, trailers_of, with_trailers

if TYPE_CHECKING:
    from aiflow.domain.runs.run import Run
    from aiflow.domain.runs.worktree import Changes

WAIT_SECONDS = 0.2


def advance_run(work: Work) -> Run:
    """Take a run from where it is to its end; however it ends, `stage.json` says so unless the lock is lost."""
    try:
        while action := next_action(work.run, work.engine.limits):
            work.require_lock()
            if work.should_stop():
                _stop_from_outside(work)
            else:
                _perform(work, action)
    except LostLockError:
        raise
    except AiflowError as error:
        if error.reason_code == "LOCK_LOST":
            raise LostLockError(request_id=work.run.request_id, run_id=work.run.run_id) from error
        _stop_for(work, error)
    except OSError as error:
        _stop_for(work, as_problem(error, error.filename or ""))
    except Exception as error:  # noqa: BLE001 - every run ends in a known state (RUN-2)
        _stop(work, "INTERNAL_ERROR", work.engine.mask(f"{type(error).__name__}: {error}"))
    return work.run


def _stop(work: Work, reason_code: str, summary: str) -> None:
    """End the run with a reason."""
    end_run(work, stopped(work.run, failure(work.run, reason_code, summary), work.engine.time.now()))


def _stop_from_outside(work: Work) -> None:
    """End the run because its process has to end; a missing store is reported by name."""
    why = failure(work.run, work.stop_code, "")
    if why.reason_code == "STORE_UNREACHABLE":
        store = work.engine.settings.text("queue.store")
        mending = (("start", command_line(NextAction(ActionKind.STORE_START))),) if store == LOCAL_STORE else ()
        summary, told = recorded(words("stop.no_heartbeat"))
        why = replace(why, summary=summary, facts=(("endpoint", store), *mending, *told))
    end_run(work, stopped(work.run, why, work.engine.time.now()))


def _stop_for(work: Work, error: AiflowError) -> None:
    """End the run for an error; what breaks because a person ended the run is the person's doing."""
    if work.should_stop():
        work.require_lock()
        _stop_from_outside(work)
        return
    end_run(work, stopped(work.run, failure_for(work.run, error, work.engine.mask), work.engine.time.now()))


def _perform(work: Work, action: CallRole | Action) -> None:
    if not isinstance(action, CallRole):
        _PERFORMERS[action](work)
    elif may_call(work):
        call_role(work, action.role)


def _prepare(work: Work) -> None:
    """Create the worktree, or create it again, and set it up (GIT-1, GIT-4)."""
    run, engine = work.run, work.engine
    was_made = work.workspace.prepare(run.place, run.tip)
    command = engine.settings.text("worktree.setup")
    is_known = bool(command.strip()) and not run.work.kept and (was_made or _is_untouched(work))
    if was_made and run.work.kept:
        work.workspace.restore(run.place, run.step_base, run.work.kept)
    elif run.work.merges and not run.work.kept and not run.visit.calls:  # the merge is not laid out yet
        work.workspace.go_back(run.place, run.step_base, retry_ref(run.run_id, run.current_step_id or "", 0))
    engine.workshop.copy(engine.settings.texts("worktree.copy"), run.place.path)
    if command.strip():
        work.save(noted(run, SETUP, engine.time.now(), note=engine.mask(command)))
        if not _set_up(work, command):
            return
        # What the set-up made is for the tools: no step may commit it, and no tidying may take it away.
        only_copied = replace(run.place, copied=tuple(engine.settings.texts("worktree.copy")))
        work.workspace.note_set_up(only_copied, is_known=is_known)
        made = work.workspace.untracked(run.place) if not run.work.kept else ()
        place = replace(run.place, copied=tuple(dict.fromkeys((*run.place.copied, *made))))
        run = replace(work.run, place=place)
    work.save(prepared(run, engine.time.now()))


def _plan(work: Work) -> None:
    """Make the request itself the only step (RUN-18)."""
    run = planned(work.run, whole_request(work.run.title), work.engine.time.now())
    work.engine.runs.write_planning(run)
    work.save(run)


def _is_untouched(work: Work) -> bool:
    """Return whether no agent was in the worktree yet, or left only commits and what set-up made."""
    run, tip = work.run, work.workspace.tip(work.run.place)
    is_begun = run.usage.calls > 0 or run.has_edits
    return not is_begun or (tip is not None and work.workspace.is_as_set_up(work.run.place, tip))


def _set_up(work: Work, line: str) -> bool:
    """Run the set-up command in the new worktree; its failure ends the run."""
    log = work.open_log(f"worktree set-up: {line}", 0)
    verdict = run_command(work, Command(line, work.run.place, "SETUP_FAILED"), log)
    if verdict.why is not None:
        end_run(work, stopped(work.run, verdict.why, work.engine.time.now()))
    return verdict.has_passed


FAILED_TESTS = {"unit": "UNIT_TEST_FAILED", "e2e": "E2E_TEST_FAILED"}


def _test(work: Work) -> None:
    """Run the step's tests; the first kind that fails is the implementer's failure (RUN-3)."""
    step = work.run.current_step
    assert step is not None, work.run.run_id
    commands = work.engine.test_commands
    kinds = commands if step.tests is None else [kind for kind in step.tests if kind in commands]
    work.test_output.clear()
    if not kinds:
        work.run = tested(work.run)  # saved with the call of the reviewer, which comes at once
        return
    work.save(testing(work.run))
    for kind in kinds:
        if not _passes(work, kind, commands[kind]):
            return
    work.save(tested(work.run, work.engine.time.now()))


def _passes(work: Work, kind: str, line: str) -> bool:
    """Run one test command and record its failure."""
    log = work.open_log(f"{kind} tests: {line}")

    def tidy() -> None:
        # What the tests left is not work: neither the next attempt nor a person finds it, nor is it committed.
        if dropped := work.workspace.drop_leftovers(work.run.place):
            log.say(f"[aiflow] put back what the tests changed: {', '.join(dropped)}")

    before = work.run.usage.seconds
    verdict = run_command(
        work, Command(line, work.run.place, FAILED_TESTS[kind], "TEST_TIMEOUT", refused=REFUSED), log, tidy
    )
    note_test(work, kind, verdict, work.run.usage.seconds - before)
    if verdict.why is not None and verdict.why.reason_code == REFUSED:
        stop_for(work, verdict.why)
    elif verdict.why is not None:
        fail(work, Role.IMPLEMENTER, verdict.why)
    else:
        work.test_output[kind] = log.excerpt
    return verdict.has_passed


def _commit(work: Work) -> None:
    """Commit the step, unless it changed nothing or a crash came between its commit and its record (RUN-3)."""
    run = work.run
    step = run.current_step
    assert step is not None, run.run_id
    trailers = trailers_of(run, step.id)
    commit = None
    if run.visit.crashes:
        commit = work.workspace.find_commit(run.place, run.step_base, trailers)
    if commit is None:
        changes = work.collected if work.collected is not None else work.collect()
        if changes.large:  # from a person who let the run continue with their edits
            _refuse_large(work, changes)
            return
        run = measured(run, changes)  # a person may have changed it since
        if any(file.path == FILE_NAME for file in changes.files):
            run = warned(run, SETTINGS_CHANGED)
        if changes.files:
            body = f"\n\n{run.visit.summary}" if run.visit.summary and run.visit.summary != step.title else ""
            message = with_trailers(f"{step.title}{body}", trailers)
            # A merge with markers in its files must not stay in the history: what resolves it takes its place.
            has_markers = bool(run.work.conflicts)
            commit = work.workspace.commit(run.place, run.step_base, message, amends=has_markers)
    work.engine.runs.write_patch(run, step.id, None)
    work.collected = None
    work.save(step_done(run, commit, work.engine.time.now()))


def _refuse_large(work: Work, changes: Changes) -> None:
    """Commit nothing of a step in which a file is too large: without it, it would not be what was tested."""
    log = work.open_log("commit")
    try:
        fail(work, Role.IMPLEMENTER, work.failure("FILE_TOO_LARGE", too_large(work, changes), log, ""))
    finally:
        log.close()


def _report(work: Work) -> None:
    """Show the branch to others if the settings say so, and write the report; no remote keeps a run from being done."""
    if work.engine.settings.flag("git.push") and work.run.has_commits:
        _push(work)
    finish_run(work)


def _push(work: Work) -> None:
    """Push the run's branch; that it failed, and why, is recorded and keeps nothing from being done."""
    log, now = work.open_log("push"), work.engine.time.now()
    try:
        work.engine.remote.push(work.run.place)
    except AiflowError as error:
        why = failure_for(work.run, error, work.engine.mask).summary
        log.say(f"[aiflow] {error.reason_code}: {why}")
        work.save(push_failed(work.run, f"{error.reason_code}: {why}", now))
    else:
        work.save(pushed(work.run, now))
    finally:
        log.close()


def _wait(work: Work) -> None:
    """Wait until the agent's quota is there again (RUN-13); the lock is renewed, and a person's stop is heard."""
    quota = work.run.quota
    assert quota is not None, work.run.run_id
    # A clock that is set back, be it this very moment, must not make it longer than it was meant to be.
    time = work.engine.time
    latest = time.monotonic() + max(0.0, (quota.until - work.run.changed_at).total_seconds())
    while (left := min((quota.until - time.now()).total_seconds(), latest - time.monotonic())) > 0:
        work.lease.allow(min(left, WAIT_SECONDS) + SECONDS_OVER)
        time.sleep(min(left, WAIT_SECONDS))
        if work.should_stop():  # the loop sees why
            return
    work.save(quota_waited(work.run, work.engine.time.now()))


def _stop_at_limit(work: Work) -> None:
    """Stop where a ceiling is reached: money has a code of its own."""
    setting = ceiling_reached(work.run, work.engine.limits) or ""
    why = failure(work.run, limit_code(setting), setting)
    end_run(work, stopped(work.run, replace(why, facts=(("setting", setting),)), work.engine.time.now()))


def _give_up(work: Work) -> None:
    end_run(work, crashed(work.run, work.engine.time.now()))


_PERFORMERS = {
    Action.PREPARE: _prepare,
    Action.BASELINE: run_baseline,
    Action.CONTINUE: continue_work,
    Action.PLAN: _plan,
    Action.TEST: _test,
    Action.COMMIT: _commit,
    Action.REPORT: _report,
    Action.WAIT: _wait,
    Action.LIMIT: _stop_at_limit,
    Action.GIVE_UP: _give_up,
}
