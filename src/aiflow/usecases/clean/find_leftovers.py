"""Find out what is left of which run (GIT-5): runs, requests, locks and git's own lists put together.

Looking changes nothing. Git is asked a few things for all runs at once; only a worktree that may go is looked into.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aiflow.domain.clean.cleaning import is_old, why_untouched
from aiflow.domain.clean.leftovers import Found, Remains, RunStanding, TreeState, standing_of
from aiflow.domain.lifecycle import RunOutcome, RunState
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.run_summary import LOST, made_at
from aiflow.domain.runs.worktree import Place, branch_name
from aiflow.errors import AiflowError, NotFoundError
from aiflow.usecases.read_backlog import is_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from aiflow.domain.clean.cleaning import CleanRules
    from aiflow.domain.lock import Lock
    from aiflow.domain.run_summary import RunSummary
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.engine import Engine

# A file that cannot be read right now says nothing about its request: its runs are not over.
_UNREADABLE = RequestStatus.DRAFT
_OPEN = frozenset(RequestStatus) - {RequestStatus.DONE, RequestStatus.ARCHIVED}


@dataclass(frozen=True, slots=True)
class History:
    """The runs of one request, newest first, the one that speaks for it, and its status; None if it is gone."""

    request_id: RequestId
    runs: tuple[RunSummary, ...]
    speaker: str | None
    status: RequestStatus | None


def find_runs(engine: Engine, names: frozenset[str], rules: CleanRules) -> list[Found]:
    """Find every run that left something, those of some requests (or runs) or all; what may go is looked into."""
    locks = engine.locks.held()[0]
    histories = _histories(engine)
    loaded = _load_old(engine, histories, rules)
    bases = frozenset(run.place.base_branch for run in loaded.values())
    remains = engine.housekeeping.survey(bases | {engine.settings.text("base_branch")})
    twice = {each for each, count in Counter(run.run_id for one in histories for run in one.runs).items() if count > 1}
    known = [
        _found(engine, history, summary, (loaded.get((history.request_id, summary.run_id)), remains))
        for history in histories
        for summary in history.runs
    ]
    everything = [*known, *_orphans(remains, {each.run_id for each in known})]
    _require_known(engine, names, everything)
    wanted = [each for each in everything if not names or names & {each.request_id, each.run_id}]
    locked = [replace(each, is_locked=is_locked(each, locks), is_ambiguous=each.run_id in twice) for each in wanted]
    return [
        each
        if why_untouched(each, rules) is not None
        else with_worktree(engine, each, loaded.get((each.request_id or "", each.run_id)))
        for each in locked
    ]


def look_again(engine: Engine, found: Found, locks: Mapping[RequestId, Lock]) -> Found | None:
    """Look at one run again, right before something of it goes; None if anything happened to it meanwhile."""
    locked = replace(found, is_locked=is_locked(found, locks))
    run = engine.runs.load(found.request_id, found.run_id) if found.request_id else None
    if found.standing is RunStanding.ORPHANED:
        return with_worktree(engine, locked, None) if run is None else None
    history = _history(engine, RequestId(found.request_id or ""))
    summary = next((each for each in history.runs if each.run_id == found.run_id), None)
    if summary is None or _changed_at(summary) != found.changed_at:
        return None
    is_merged = found.branch is not None and found.branch.is_merged
    fresh = replace(locked, standing=_standing(history, summary, run, is_merged=is_merged))
    return with_worktree(engine, fresh, run)


def is_locked(found: Found, locks: Mapping[RequestId, Lock]) -> bool:
    """Return whether a run's request is locked; if its request is unknown, any lock counts."""
    if found.request_id is None:
        return bool(locks)
    return found.request_id in locks or any(lock.run_id == found.run_id for lock in locks.values())


def with_worktree(engine: Engine, found: Found, run: Run | None) -> Found:
    """Look into a run's worktree, if there is one."""
    own = Place(found.run_id, "", branch_name(found.request_id or "", found.run_id), "", "")
    place = replace(run.place, branch=own.branch) if run is not None else own
    is_elsewhere = run is not None and run.place.path != engine.workshop.worktree_path(run.run_id)
    # Made elsewhere, or the file was edited: if anything is there, it is not ours to judge.
    if is_elsewhere and _state(engine, place, None) is not TreeState.MISSING:
        return replace(found, worktree=place.path, tree_state=TreeState.ELSEWHERE)
    if found.worktree is None:
        return found
    return replace(found, tree_state=_state(engine, replace(place, path=found.worktree), _restorable(found, run)))


def _state(engine: Engine, place: Place, kept: str | None) -> TreeState:
    """Look into a worktree; one that cannot be looked into keeps the others from nothing."""
    try:
        return engine.housekeeping.state_of(place, kept)
    except AiflowError:
        return TreeState.BROKEN


def _restorable(found: Found, run: Run | None) -> str | None:
    """Return the commit from which `resume` lays an unfinished step out again, if it would."""
    if run is None or found.branch is None or found.branch.commit != run.tip:
        return None
    return run.work.kept if run.work.kept in {ref.commit for ref in found.refs} else None


def _histories(engine: Engine) -> list[History]:
    valid, invalid = engine.source.load_all()
    statuses: dict[str, RequestStatus] = {name: _UNREADABLE for broken in invalid for name in broken.names}
    statuses |= {request.id: request.status for request in valid}
    return [
        History(owner, engine.runs.all_of(owner), speaker.run_id, statuses.get(owner))
        for owner, speaker in engine.runs.latest().items()
    ]


def _history(engine: Engine, request_id: RequestId) -> History:
    try:
        status: RequestStatus | None = engine.source.load(request_id).status
    except NotFoundError:
        status = None
    except AiflowError:
        status = _UNREADABLE
    speaker = engine.runs.latest([request_id]).get(request_id)
    return History(request_id, engine.runs.all_of(request_id), speaker.run_id if speaker else None, status)


def _load_old(engine: Engine, histories: list[History], rules: CleanRules) -> dict[tuple[str, str], Run]:
    """Read the runs that are old enough; one whose file is damaged is not among them."""
    wanted = [
        (history.request_id, run.run_id)
        for history in histories
        for run in history.runs
        if not run.is_active and is_old(_changed_at(run), rules.now, rules.after_days)
    ]
    return {pair: run for pair in wanted if (run := engine.runs.load(*pair)) is not None}


def _changed_at(run: RunSummary) -> datetime | None:
    return run.changed_at or made_at(run.run_id)


def _found(engine: Engine, history: History, summary: RunSummary, known: tuple[Run | None, Remains]) -> Found:
    request_id, run_id = history.request_id, summary.run_id
    run, remains = known
    branch = remains.branches.get(branch_name(request_id, run_id))
    is_newest = run_id == history.runs[0].run_id
    is_merged = branch is not None and branch.is_merged
    return Found(
        run_id=run_id,
        request_id=request_id,
        standing=_standing(history, summary, run, is_merged=is_merged),
        changed_at=_changed_at(summary),
        worktree=remains.worktrees.get(run_id),
        branch=branch,
        checked_out_at=remains.checked_out.get(branch_name(request_id, run_id)),
        refs=remains.refs.get(run_id, ()),
        leftovers=remains.leftovers.get(run_id, ()),
        folder=f"{remains.runs_folder}/{request_id}/{run_id}",
        is_last=is_newest and (history.status is None or history.status in _OPEN),
        names=_names(run) if run is not None else (),
        is_wanted=run is not None and history.status in _OPEN and _is_wanted(engine, history, run),
    )


def _names(run: Run) -> tuple[str, ...]:
    continued = run.continues.run_id if run.continues else None
    return tuple(filter(None, (run.replaces, continued)))


def _is_wanted(engine: Engine, history: History, run: Run) -> bool:
    """Return whether the next run continues a run's branch, or the newest one has not come to that yet (REQ-6a)."""
    # Nothing is left of one that was lost: whatever follows it continues from the one before.
    newest = next((each.run_id for each in history.runs if each.reason_code != LOST), "")
    if run.run_id == newest:
        return run.outcome is RunOutcome.SENT_BACK and run.is_continued_next
    if run.continued_by != newest:
        return False
    follower = engine.runs.load(history.request_id, newest)
    return follower is not None and follower.has_to_continue


def _standing(history: History, summary: RunSummary, run: Run | None, *, is_merged: bool) -> RunStanding:
    is_brought_in = summary.state is RunState.DONE and history.status is RequestStatus.DONE and is_merged
    return standing_of(
        summary.state,
        summary.reason_code,
        history.status,
        is_accepted=is_brought_in or (run is not None and run.accepted_as is not None),
        is_current=summary.run_id in (history.runs[0].run_id, history.speaker),
    )


def _orphans(remains: Remains, known: set[str]) -> Iterator[Found]:
    """Find what belongs to runs whose files are gone (REQ-7), here and in every other checkout."""
    owners: dict[str, list[str]] = {}
    for name in {*remains.branches, *remains.checked_out}:
        if name.startswith("aiflow/") and name.count("/") == 2:
            owners.setdefault(name.rpartition("/")[2], []).append(name)
    of_branches = {name.rpartition("/")[2] for name in remains.branches}
    lost = {*remains.worktrees, *remains.refs, *remains.leftovers, *of_branches} - known - remains.foreign
    for run_id in lost:
        names = owners.get(run_id, [])
        if len(names) > 1:
            continue
        branch = remains.branches.get(names[0]) if names else None
        refs = remains.refs.get(run_id, ())
        dates = (made_at(run_id), *(ref.changed_at for ref in (*refs, *filter(None, (branch,)))))
        yield Found(
            run_id=run_id,
            request_id=names[0].split("/")[1] if names else None,
            standing=RunStanding.ORPHANED,
            changed_at=max(filter(None, dates), default=None),
            worktree=remains.worktrees.get(run_id),
            branch=branch,
            checked_out_at=remains.checked_out.get(names[0]) if names else None,
            refs=refs,
            leftovers=remains.leftovers.get(run_id, ()),
            is_surely_ours=remains.is_whole,
        )


def _require_known(engine: Engine, names: frozenset[str], found: list[Found]) -> None:
    """Refuse a name that nothing has; a request that never ran is known, and has nothing to clean."""
    known = {name for each in found for name in (each.request_id, each.run_id)}
    for name in sorted(names - known):
        if name.startswith("RUN-"):
            raise NotFoundError(reason_code="RUN_NOT_FOUND", name=name, request_id=name)
        if not is_known(engine.source, RequestId(name)):
            raise NotFoundError(request_id=name)
