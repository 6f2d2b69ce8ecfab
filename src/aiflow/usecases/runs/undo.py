"""Undo an acceptance (REQ-6, GIT-3): a commit on the base that takes a run's work out again, tested as a merge is.

The order is that of an acceptance: all is made beside the base, what is to become it is on disk, then the base moves.
After the move only the record is missing, and it comes last: the next undo, acceptance or sending back finds the
work out of the base and writes it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.domain.activity import Actor, decided
from aiflow.domain.backlog.built_on import built_on
from aiflow.domain.issue_ways import is_issue
from aiflow.domain.lifecycle import RunState
from aiflow.domain.next_action import ActionKind, NextAction, shell
from aiflow.domain.request import RequestId
from aiflow.domain.runs.undoing import is_undone, not_undone, undone
from aiflow.errors import AiflowError, ConflictError, EnvironmentProblemError
from aiflow.messages.details import words
from aiflow.usecases.runs import claims
from aiflow.usecases.runs.baseline import note_passed
from aiflow.usecases.runs.diff import ends_of
from aiflow.usecases.runs.ending import record_verdict
from aiflow.usecases.runs.find import newest_run_id, require_request
from aiflow.usecases.runs.locks import reclaim_locks, take_lock
from aiflow.usecases.runs.merge import PATHS_SHOWN, ROUNDS, merge_title, record_moved
from aiflow.usecases.runs.report import message_facts
from aiflow.usecases.runs.trial import UNDO, discard_merge, test_tree
from aiflow.usecases.runs.work import failure_for, holding, trailers_of, with_trailers

if TYPE_CHECKING:
    from aiflow.domain.backlog.built_on import BuiltOn
    from aiflow.domain.runs.merge import Landing, Merge, Revert
    from aiflow.domain.runs.run import Run, RunError
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.runs.work import Work

# What every message may need, and no error of an undo is about.
_NOT_TOLD = ("setting", "endpoint", "question")
_REQUEST_LINE = "Aiflow-Request: "


def undo_acceptance(engine: Engine, run: Run) -> Run:
    """Take an accepted run's work out of the base branch again and block its request; returns it as it is then.

    It is still accepted if the caller stopped it. Undoing what is undone changes nothing.
    """
    request_id = RequestId(run.request_id)
    reclaim_locks(engine)
    require_request(engine, run)
    _require_file(run)
    engine.journal.append(decided(engine.time.now(), Actor.PERSON, run, decided="undo"))
    lease = take_lock(engine, request_id, run.run_id, beside_others=True)
    with holding(engine, lease, run) as work:
        catch_up(work)
        if is_undone(work.run):
            claims.undo(engine, request_id, run.run_id)
            return work.run
        require_undoable(engine, work.run)
        engine.voice.observe(work.run)
        try:
            _take_out(work)
        except AiflowError as error:
            error.context = {"request_id": run.request_id, "run_id": run.run_id, **error.context}
            if error.reason_code != "LOCK_LOST":
                work.save(not_undone(work.run, failure_for(work.run, error, engine.mask), engine.time.now()))
            raise
    return work.run


def may_be_undone(engine: Engine, run: Run) -> None:
    """Refuse what can be refused by looking; what was undone already is not refused. Changes nothing."""
    _require_file(run)
    if not is_undone(run):
        require_undoable(engine, run)


def find_built_on(engine: Engine, run: Run) -> BuiltOn:
    """Name the requests that depend on a run's work; changes nothing."""
    return built_on(engine.source.load_all()[0], run.request_id)


def require_undoable(engine: Engine, run: Run) -> None:
    """Refuse what is not accepted, what is no longer in the base branch, and what a newer run has followed."""
    if run.state is not RunState.DONE or not run.accepted_as:
        raise _refused(run, words("undo.not_accepted", run_id=run.run_id))
    newest = newest_run_id(engine, RequestId(run.request_id)) or run.run_id
    if newest > run.run_id:
        raise _refused(run, words("refused.newer", newer=newest, run_id=run.run_id))
    if run.was_empty:
        return
    base = run.place.base_branch
    workspace = engine.workspaces(run.run_id)
    if workspace.tip(replace(run.place, branch=base)) is None:
        raise EnvironmentProblemError(reason_code="BASE_BRANCH_MISSING", branch=base, request_id=run.request_id)
    if not workspace.is_ancestor(run.place, run.accepted_as, f"refs/heads/{base}"):
        raise _refused(run, words("undo.not_in_base", commit=run.accepted_as[:12], base=base))


def catch_up(work: Work) -> None:
    """Write down what a kill kept from being written: that a run's work is in the base branch, or out of it again."""
    record_moved(work)
    finish_undo(work)


def finish_undo(work: Work) -> None:
    """Write down that a run's work is out of the base branch, where only that is missing: a kill came before it."""
    landing = work.run.landing
    if not (work.run.accepted_as and landing and landing.undone_as):
        return
    base = f"refs/heads/{work.run.place.base_branch}"
    if work.workspace.is_ancestor(work.run.place, landing.undone_as, base):
        _record(work, landing)


def _take_out(work: Work) -> None:
    """Make the commit, test it and move the base to it; a stop that was asked for leaves the run accepted."""
    engine, run = work.engine, work.run
    discard_merge(work)
    if run.was_empty:
        _record(work, None)
        return
    landing = _landing(engine, run)
    for _ in range(ROUNDS):
        revert = engine.merging.revert(run.place, landing, _message(run, landing))
        merge = revert.merge
        if merge.conflicts:
            raise _conflict(engine, run, revert)
        if merge.commit is not None and not _has_passed(work, merge.commit):
            return
        # Somebody may have taken it out by hand: then it is out since the base that says so.
        out = replace(landing, undone_as=merge.commit or merge.base)
        if _move(work, merge, out):
            _record(work, out)
            return
    problem = words("git.kept_moving", branch=run.place.base_branch)
    raise EnvironmentProblemError(reason_code="GIT_FAILED", command="git revert", problem=problem)


def _landing(engine: Engine, run: Run) -> Landing:
    found = engine.merging.landing(run.place, run.accepted_as or "", ends_of(run))
    if found is None:
        raise _refused(run, words("undo.unknown", base=run.place.base_branch))
    return found


def _has_passed(work: Work, commit: str) -> bool:
    """Test the base without the work, and refuse what fails; False if the caller stopped that."""
    why = test_tree(work, commit, UNDO)
    if work.should_stop():
        work.require_lock()
        return False
    if why is not None:
        raise _failed(work.engine, work.run, why)
    note_passed(work.engine, commit)
    return True


def _move(work: Work, merge: Merge, out: Landing) -> bool:
    work.save(replace(work.run, landing=out))  # a kill after the move leaves it as the only record
    with work.lease.writing():
        return work.engine.merging.move_base(work.run.place, merge)


def _record(work: Work, landing: Landing | None) -> None:
    """Write down that the work is out: its branch is there, its request blocked, and last the run says so."""
    engine, run = work.engine, work.run
    with work.lease.writing():
        engine.merging.keep_branch(run.place, landing.tip if landing else run.tip)
    claims.undo(engine, run.request_id, run.run_id)
    record_verdict(work, undone(run, landing, engine.time.now()))


def _message(run: Run, landing: Landing) -> str:
    """Return what the commit says, as git words a revert."""
    body = f"This reverts commit {landing.after}, reversing\nchanges made to {landing.before}."
    return with_trailers(f'Revert "{merge_title(run)}"\n\n{body}', trailers_of(run))


def _require_file(run: Run) -> None:
    """Refuse an issue: closing it made it done, and only a person can say at GitHub that it is not."""
    if is_issue(run.request_id):
        commit = (run.accepted_as or run.merging_as or "COMMIT")[:12]
        by_hand = (shell(f"git revert -m 1 {commit}"), NextAction(ActionKind.SHOW, run.request_id))
        raise _refused(run, words("undo.issue"), *by_hand)


def _refused(run: Run, detail: object, *commands: NextAction) -> ConflictError:
    commands = commands or tuple(NextAction(kind, run.request_id) for kind in (ActionKind.SHOW, ActionKind.WHY))
    names = {"request_id": run.request_id, "run_id": run.run_id}
    return ConflictError(reason_code="NOT_UNDOABLE", **names, detail=detail, commands=commands)


def _conflict(engine: Engine, run: Run, revert: Revert) -> ConflictError:
    """Name the files, and what changed them since."""
    paths = revert.merge.conflicts
    more = f" (+{len(paths) - PATHS_SHOWN})" if len(paths) > PATHS_SHOWN else ""
    later = ", ".join(dict.fromkeys(map(_whose, revert.later))) or "-"
    return ConflictError(
        reason_code="UNDO_CONFLICT",
        request_id=run.request_id,
        run_id=run.run_id,
        branch=run.place.base_branch,
        commit=(run.accepted_as or "")[:12],
        files=f"{', '.join(paths[:PATHS_SHOWN])}{more}",
        later=engine.mask(later),
    )


def _whose(message: str) -> str:
    """Return the request that a commit was made for, or else what its first line says."""
    lines = message.splitlines() or [""]
    named = (line.removeprefix(_REQUEST_LINE) for line in reversed(lines) if line.startswith(_REQUEST_LINE))
    return next(named, f"“{lines[0]}”")


def _failed(engine: Engine, run: Run, why: RunError) -> ConflictError:
    """Say what fails without the work."""
    facts = message_facts(run, why, engine.voice.texts)
    told = {name: fact for name, fact in facts.items() if fact and name not in _NOT_TOLD}
    return ConflictError(reason_code=why.reason_code, **{**told, "commit": (run.accepted_as or "")[:12]})
