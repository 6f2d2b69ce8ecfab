"""What waits for a person, in full (WEB-1): questions first, then what stopped, then what is to be accepted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.agents.answers import Role
from aiflow.domain.backlog.explanation import mending_actions
from aiflow.domain.backlog.selection import queue_order
from aiflow.domain.lifecycle import RunState
from aiflow.domain.morning.excerpt import take_excerpt
from aiflow.domain.morning.unblocking import Unblocks, dependants_of, unblocked_by
from aiflow.domain.morning.waiting import (
    AWAITING,
    StoppedWhere,
    WaitingItem,
    WaitingList,
    stat_of,
)
from aiflow.domain.reasons import Category, reason_for
from aiflow.domain.run_summary import LOST, worked_seconds
from aiflow.domain.runs.resume import PLANNING
from aiflow.domain.runs.stopped import as_stopped
from aiflow.domain.runs.ways import RunSurroundings, Way, ways_on
from aiflow.domain.wait_kind import WaitKind, kind_of
from aiflow.usecases.auto.summary import CUT, read_open, waiting_requests
from aiflow.usecases.runs.diff import ends_of
from aiflow.usecases.runs.report import words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from aiflow.domain.backlog.selection import Backlog
    from aiflow.domain.morning.waiting import DiffStat
    from aiflow.domain.request import Request
    from aiflow.domain.run_summary import RunSummary
    from aiflow.domain.runs.run import Run, RunError
    from aiflow.messages import Texts
    from aiflow.usecases.engine import Engine

SHOWN = 20
_ROLES = {
    RunState.PLANNING.value: Role.PLANNER,
    RunState.IMPLEMENTING.value: Role.IMPLEMENTER,
    RunState.TESTING.value: Role.QA,
}
_KINDS = {kind: rank for rank, kind in enumerate(WaitKind)}


class _Found(NamedTuple):
    """One that waits, as far as it is known without its run's files."""

    kind: WaitKind
    request: Request
    latest: RunSummary | None
    code: str

    @property
    def since(self) -> datetime | None:
        """Since when it waits."""
        return self.latest.changed_at if self.latest is not None else self.request.updated_at


def tell_waiting(
    engine: Engine,
    texts: Texts,
    backlog: Backlog | None = None,
    limit: int = SHOWN,
) -> WaitingList:
    """Return what waits for a person, the first so many in full; `backlog` is one that was read already."""
    known = backlog or read_open(engine)
    found = sorted(_find(known), key=_order)
    shown = [(each, _load(engine, each)) for each in found[:limit]]
    diffs = _diffs(engine, shown)
    dependants = dependants_of(known.requests)
    items = (
        _item(engine, texts, known, each, run)._replace(
            diff=diffs.get(each.request.id), unblocks=unblocked_by(each.request.id, known, dependants)
        )
        for each, run in shown
    )
    counts = Counter(each.kind for each in found)
    return WaitingList(tuple(items), len(found), tuple((kind, counts[kind]) for kind in WaitKind))


def _find(backlog: Backlog) -> Iterator[_Found]:
    """Yield what waits for a person, by what selection knows of each request."""
    for request, latest, code in waiting_requests(backlog):
        if code in (LOST, CUT):
            yield _Found(WaitKind.STOPPED, request, latest, code)
        else:
            own = latest.reason_code if latest is not None else None
            yield _Found(kind_of(latest), request, latest, own or code)


def _order(each: _Found) -> tuple[int, float, tuple[object, ...]]:
    """Sort key: what is asked first, of the same kind the oldest first."""
    since = each.since
    return _KINDS[each.kind], since.timestamp() if since is not None else 0.0, queue_order(each.request)


def _load(engine: Engine, each: _Found) -> Run | None:
    return engine.runs.load(each.request.id, each.latest.run_id) if each.latest is not None else None


def _diffs(engine: Engine, shown: Sequence[tuple[_Found, Run | None]]) -> dict[str, DiffStat]:
    """Read what there is to accept, of all that is shown at once."""
    done = [run for each, run in shown if run is not None and each.kind is WaitKind.ACCEPTANCE]
    sizes = engine.merging.sizes([ends_of(run) for run in done]) if done else ()
    return {run.request_id: stat_of(files) for run, files in zip(done, sizes, strict=True)}


def _item(engine: Engine, texts: Texts, backlog: Backlog, each: _Found, run: Run | None) -> WaitingItem:
    """Return all that is known about one; its diff and what it unblocks come from elsewhere."""
    request = each.request
    why = run.error if run is not None and each.code not in (CUT, LOST) else None
    history = [(line.at, line.event) for line in run.history] if run is not None else []
    return WaitingItem(
        kind=each.kind,
        request_id=request.id,
        title=request.title,
        run_id=each.latest.run_id if each.latest is not None else None,
        since=each.since,
        reason_code=each.code if why is not None or each.kind is not WaitKind.ACCEPTANCE else AWAITING,
        cause=why.cause if why is not None else None,
        summary=words_of(why, texts) if why is not None else "",
        where=_where(engine, run, why) if run is not None else StoppedWhere(),
        question=why.question if why is not None else None,
        choices=why.choices if why is not None else (),
        excerpt=take_excerpt(why.evidence.stderr_snippet) if why is not None else None,
        diff=None,
        unblocks=Unblocks(),
        ways=_ways(backlog, each, run),
        base_branch=run.place.base_branch if run is not None else "",
        worked_seconds=worked_seconds(run.created_at, history) if run is not None else 0.0,
        cost_usd=(run.usage.cost_usd or None) if run is not None else None,
        is_overdue=request.is_overdue,
    )


def _ways(backlog: Backlog, each: _Found, run: Run | None) -> tuple[Way, ...]:
    """Return the next steps of its run; if it has none, or its request does not show its end yet, what fixes that."""
    if run is None or (each.code in (LOST, CUT) and not run.is_active):
        return tuple(Way(action, is_recommended=True) for action in mending_actions(each.request, backlog)[:1])
    return ways_on(run, RunSurroundings(status=each.request.status))


def _where(engine: Engine, run: Run, why: RunError | None) -> StoppedWhere:
    """Say where a run stopped, and how often that may be done again."""
    step, seen = run.current_step, why.evidence if why is not None else None
    role = _role(why) if why is not None else None
    return StoppedWhere(
        step_id=(seen.step_id if seen is not None else None) or run.current_step_id,
        step_title=step.title if step is not None else "",
        step_number=(run.current_index or 0) + 1 if step is not None else 0,
        steps=len(run.plan),
        role=role.value if role is not None else None,
        attempt=run.calls_of(Role.IMPLEMENTER if step is not None else Role.PLANNER),
        attempts_allowed=engine.limits.role_attempts,
        retries=as_stopped(run, None).retries.get(step.id if step is not None else PLANNING, 0),
        retries_allowed=run.step_retries,
        command=seen.command if seen is not None else None,
        exit_code=seen.exit_code if seen is not None else None,
    )


def _role(why: RunError) -> Role | None:
    """Return who asked or failed; tests and set-up have no role."""
    code = why.cause or why.reason_code
    is_role = why.question is not None or code == "QA_REJECTED" or reason_for(code).category is Category.AGENT
    return _ROLES.get(why.evidence.failed_at_state) if is_role else None
