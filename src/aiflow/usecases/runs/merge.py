"""Bring a finished run's work into the base branch (GIT-3, REQ-6): merge, test the merged tree, then move the base.

Everything up to the move can be thrown away; after it only the record is missing, and doing it all again finds the
work already in the base.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.lifecycle import RunState
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.runs.events import accepted, failure, not_accepted
from aiflow.domain.runs.run import NOTHING_CHANGED
from aiflow.domain.runs.undoing import undone_of
from aiflow.domain.runs.warned import SETTINGS_CHANGED, warned
from aiflow.domain.runs.worktree import OWN_FOLDERS, is_refused
from aiflow.errors import AiflowError, ConflictError, EnvironmentProblemError
from aiflow.messages.details import words
from aiflow.settings import FILE_NAME
from aiflow.usecases.runs.baseline import note_passed
from aiflow.usecases.runs.ending import record_verdict
from aiflow.usecases.runs.report import add_lines
from aiflow.usecases.runs.settle import settle_run
from aiflow.usecases.runs.trial import ACCEPTANCE, discard_merge, put_back, test_tree
from aiflow.usecases.runs.work import failure_for, trailers_of, with_trailers

if TYPE_CHECKING:
    from aiflow.domain.runs.merge import Merge
    from aiflow.domain.runs.run import Run, RunError
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.runs.work import Work

# Somebody else may commit to the base branch while the merged tree is tested; then it is merged and tested again.
ROUNDS = 10
PATHS_SHOWN = 20


def accept_by_itself(work: Work) -> None:
    """Bring a DONE run in if the settings say so and its request is still ours; a person decides about the rest."""
    engine, run = work.engine, work.run
    if engine.settings.text("accept") != "auto" or run.state is not RunState.DONE or run.accepted_as or run.is_idle:
        return
    if engine.source.status(RequestId(run.request_id)) is RequestStatus.RUNNING:
        bring_in(work, is_automatic=True)


def bring_in(work: Work, *, is_automatic: bool) -> None:
    """Bring a DONE run in, or record why not; a stop that was asked for leaves it as it was."""
    try:
        done = _try(work, is_automatic=is_automatic)
    except AiflowError as error:
        if error.reason_code == "LOCK_LOST":
            raise
        done = _not_for(work, error)
    if isinstance(done, _Merged):
        _record_accepted(work, done)
    elif done is not None:
        record_verdict(work, not_accepted(work.run, done, work.engine.time.now()))


class _Merged(NamedTuple):
    """The base's commit that has the work; `is_empty` says that there was nothing to merge.

    With `pull_url` it was merged elsewhere, by that pull request.
    """

    commit: str
    is_empty: bool = False
    pull_url: str = ""


def _try(work: Work, *, is_automatic: bool) -> _Merged | RunError | None:
    """Return the base's commit that has the work, or why there is none; None if it was stopped."""
    run, merging = work.run, work.engine.merging
    discard_merge(work)
    put_back(work)
    if run.merging_as and is_moved(work):
        return _Merged(run.merging_as)
    for _ in range(ROUNDS):
        merge = merging.merge(run.place, merge_message(run), undone_of(run))
        if merge.conflicts:
            return _why(run, "MERGE_CONFLICT", ", ".join(merge.conflicts))
        if merge.commit is None:
            has_work = _has_work(work, merge.base)
            merged = _Merged(merge.base, is_empty=not run.has_commits)
            return merged if has_work else _why(run, "RUN_NOT_ACCEPTABLE", run.place.branch)
        refused = _judge(work, merge, is_automatic=is_automatic)
        if work.should_stop():
            work.require_lock()
            return None
        if refused is not None:
            return refused
        note_passed(work.engine, merge.commit)
        is_whole = work.workspace.tip(run.place) == merge.tip  # nothing was committed there meanwhile
        if is_whole and _move(work, merge):
            return _Merged(merge.commit)
    problem = words("git.kept_moving", branch=run.place.base_branch)
    raise EnvironmentProblemError(reason_code="GIT_FAILED", command="git merge", problem=problem)


def _judge(work: Work, merge: Merge, *, is_automatic: bool) -> RunError | None:
    """Return what keeps a merge out of the base: what only a person may accept, or its tests."""
    _require_mergeable(work.run, merge)
    if FILE_NAME in merge.paths:
        work.run = warned(work.run, SETTINGS_CHANGED)
    for_a_person = _for_a_person(work.run, merge) if is_automatic else None
    return for_a_person or test_tree(work, merge.commit or merge.base, ACCEPTANCE)


def _has_work(work: Work, base: str) -> bool:
    """Return whether the base has what the run committed: its branch may have been set back by hand."""
    run = work.run
    return not run.has_commits or work.workspace.is_ancestor(run.place, run.tip, base)


def _require_mergeable(run: Run, merge: Merge) -> None:
    """Refuse files where aiflow keeps its own: in the base they would be taken for a lock or a run (REQ-8)."""
    paths = [path for path in merge.paths if is_refused(path, OWN_FOLDERS, ignores_case=merge.ignores_case)]
    if paths:
        more = f" (+{len(paths) - PATHS_SHOWN})" if len(paths) > PATHS_SHOWN else ""
        detail = words("refused.own_files", files=f"{', '.join(paths[:PATHS_SHOWN])}{more}")
        names = {"request_id": run.request_id, "run_id": run.run_id}
        raise ConflictError(reason_code="RUN_NOT_ACCEPTABLE", **names, detail=detail)


def _for_a_person(run: Run, merge: Merge) -> RunError | None:
    """Return what only a person may accept: changed settings, nothing at all, conflicts that no marker shows."""
    if not merge.paths:  # its steps undid each other
        return _why(run, NOTHING_CHANGED, "")
    if FILE_NAME in merge.paths:
        return _why(run, SETTINGS_CHANGED, FILE_NAME)
    unmarked = sorted({path for step in run.steps.values() for path in step.unmarked})
    return _why(run, "CONFLICT_TO_REVIEW", ", ".join(unmarked)) if unmarked else None


def is_moved(work: Work) -> bool:
    """Return whether the base has the run's merge though no record says so: a kill came between the two."""
    return is_in_base(work.engine, work.run)


def is_in_base(engine: Engine, run: Run) -> bool:
    """Return the same for a run that no process works on; changes nothing."""
    if run.state is not RunState.DONE or run.accepted_as or not run.merging_as:
        return False
    base = f"refs/heads/{run.place.base_branch}"
    return engine.workspaces(run.run_id).is_ancestor(run.place, run.merging_as, base)


def record_moved(work: Work) -> None:
    """Record that the work is in, where only that is missing: it must not be taken for unmerged work."""
    if is_moved(work) and work.run.merging_as:
        _record_accepted(work, _Merged(work.run.merging_as))
        settle_run(work, work.run)


def _move(work: Work, merge: Merge) -> bool:
    if merge.commit:
        work.save(replace(work.run, merging_as=merge.commit))  # a kill after the move leaves it as the only record
    with work.lease.writing():
        return work.engine.merging.move_base(work.run.place, merge)


def merge_message(run: Run) -> str:
    """Return what the commit says that brings a run's work in."""
    return with_trailers(merge_title(run), trailers_of(run))


def merge_title(run: Run) -> str:
    """Return the first line of that."""
    return f"Merge {run.request_id}: {run.title or run.run_id}"


def _why(run: Run, reason_code: str, summary: str) -> RunError:
    why = failure(run, reason_code, summary)
    return replace(why, facts=(("branch", run.place.branch), ("detail", summary)))


def _not_for(work: Work, error: AiflowError) -> RunError:
    """Take an error for the reason why the work is not in yet."""
    return failure_for(work.run, error, work.engine.mask)


def record_merged_elsewhere(work: Work, commit: str, url: str) -> None:
    """Write down that a person merged the work where its pull request is; the base here may not have it yet."""
    _record_accepted(work, _Merged(commit, pull_url=url))


def _record_accepted(work: Work, merged: _Merged) -> None:
    """Write down that the work is in."""
    engine, commit = work.engine, merged.commit
    run = accepted(work.run, commit, engine.time.now(), is_empty=merged.is_empty)
    with work.lease.writing():
        engine.runs.write_errors(run, None)
        form = "_elsewhere" if merged.pull_url else "_empty" if merged.is_empty else ""
        facts = {"base": run.place.base_branch, "commit": commit[:12], "url": merged.pull_url}
        told = engine.voice.texts(f"report.accepted{form}", **facts)
        if told not in (engine.runs.report(run) or ""):  # a kill may have come before the record
            add_lines(engine, run, [f"{run.changed_at.isoformat(timespec='seconds')} {told}", ""])
    work.save(run)
