"""Why a request does not run (SEL-5): every barrier at once, followed down its dependencies to the roots."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.domain.backlog.selection import Backlog, Barrier, find_barriers, queue_barrier
from aiflow.domain.issue_ways import is_issue, mending
from aiflow.domain.lifecycle import RunState
from aiflow.domain.next_action import ActionKind, NextAction, set_status
from aiflow.domain.reasons import BY_HAND, way_to_mend
from aiflow.domain.request import InvalidRequest, Request, RequestId, RequestStatus
from aiflow.domain.run_summary import LOST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.run_summary import RunSummary


# Nothing is left of a request's run, whether that is found now or was found by what blocked it (REQ-5).
LOST_RUN = Barrier(LOST)


@dataclass(frozen=True, slots=True)
class Station:
    """One request on the way down: what keeps it from running, whom it waits for, and what fixes it."""

    request_id: RequestId
    depth: int
    waited_for_by: RequestId | None
    request: Request | None
    invalid: tuple[InvalidRequest, ...]
    barriers: tuple[Barrier, ...]
    waits_for: tuple[RequestId, ...]
    run: RunSummary | None
    actions: tuple[NextAction, ...] = ()

    @property
    def stopped_for(self) -> str | None:
        """The reason code for which the request's run waits for a person, if it does."""
        if LOST_RUN in self.barriers:
            return LOST
        return stopped_for(self.request, self.run) if self.request is not None else None

    @property
    def by_hand(self) -> NextAction | None:
        """How its run continues after a person has fixed its work by hand, if that is possible."""
        is_way = self.stopped_for in BY_HAND and bool(self.actions) and not is_issue(self.request_id)
        return NextAction(ActionKind.RESUME, self.request_id).having(keep_changes="") if is_way else None

    @property
    def explained(self) -> Iterator[tuple[Barrier, InvalidRequest | None]]:
        """Each barrier with the broken file it is about, if it is about one."""
        return itertools.zip_longest(self.barriers, self.invalid)

    @property
    def is_root(self) -> bool:
        """Whether what keeps this request is its own, not another request's."""
        return not self.waits_for


def explain(request_id: RequestId, backlog: Backlog) -> tuple[Station, ...]:
    """Return the request itself and everything it waits for, depth first, each once; empty if it does not exist."""
    stations: list[Station] = []
    seen: set[RequestId] = set()
    stack: list[tuple[RequestId, int, RequestId | None]] = [(request_id, 0, None)]
    broken: dict[str, tuple[InvalidRequest, ...]] = {}
    for file in sorted(backlog.invalid, key=lambda file: file.where):
        for name in file.names:
            broken[name] = (*broken.get(name, ()), file)
    while stack:
        current, depth, parent = stack.pop()
        if current in seen:
            continue
        seen.add(current)
        if current not in backlog.by_id and current not in broken and parent is None:
            return ()
        station = _station(current, depth, parent, backlog, broken.get(current, ()))
        stations.append(station)
        stack.extend((wanted, depth + 1, current) for wanted in reversed(station.waits_for))
    return tuple(stations)


def _station(
    request_id: RequestId,
    depth: int,
    parent: RequestId | None,
    backlog: Backlog,
    invalid: tuple[InvalidRequest, ...],
) -> Station:
    """Describe one request on the way down."""
    request = backlog.by_id.get(request_id)
    run = backlog.runs.get(request_id)
    if request is None:
        missing = Barrier("DEPENDS_NOT_FOUND", (("ids", str(request_id)),))
        about_files = tuple(Barrier(file.reason_code) for file in invalid)
        return Station(request_id, depth, parent, None, invalid, about_files or (missing,), (), run)
    barriers = _barriers(request, backlog)
    waits_for = tuple(wanted for wanted in request.depends_on if _is_open(wanted, backlog)) if barriers else ()
    actions = tuple(_actions(request, run, barriers, backlog))
    return Station(request_id, depth, parent, request, (), barriers, waits_for, run, actions)


def mending_actions(request: Request, backlog: Backlog) -> tuple[NextAction, ...]:
    """Return what fixes the barriers of one request, without following its dependencies."""
    return tuple(_actions(request, backlog.runs.get(request.id), _barriers(request, backlog), backlog))


def _barriers(request: Request, backlog: Backlog) -> tuple[Barrier, ...]:
    if request.status is RequestStatus.DONE:
        return ()
    held = queue_barrier(backlog)
    found = tuple(find_barriers(request, backlog)) or ((held,) if held else ())
    is_lost = request.id in backlog.lost or stopped_for(request, backlog.runs.get(request.id)) == LOST
    return (*found, LOST_RUN) if is_lost else found


def _is_open(request_id: RequestId, backlog: Backlog) -> bool:
    """Return whether a dependency still keeps others waiting."""
    request = backlog.by_id.get(request_id)
    return request is None or request.status is not RequestStatus.DONE


def _actions(
    request: Request, run: RunSummary | None, barriers: tuple[Barrier, ...], backlog: Backlog
) -> Iterator[NextAction]:
    """Yield the actions that fix a request's barriers, if any."""
    codes = {barrier.reason_code for barrier in barriers}
    is_free = codes == {"REQUEST_LOCKED"} and request.id in backlog.dead_locks
    if (request.id in backlog.interrupted and LOST_RUN not in barriers) or is_free:
        yield NextAction(ActionKind.RUN, request.id)
        return
    if "REQUEST_LOCKED" in codes and request.id not in backlog.lost:
        return
    code = LOST if LOST_RUN in barriers else stopped_for(request, run)
    cause, way = (run.cause, run.way_on) if run else (None, None)
    mended = way_to_mend(code, request.id, cause, way) if code else None
    if is_issue(request.id):
        is_to_accept = mended is not None and mended.kind is ActionKind.ACCEPT
        has_run = run is not None and code is not None
        yield from (mended,) if mended and is_to_accept else mending(request, frozenset(codes), has_run=has_run)
        return
    if mended is not None:
        yield mended
    elif "NOT_READY" in codes and code is None:
        yield set_status(request.id, RequestStatus.READY.value)
    if codes & {"DEPENDS_NOT_FOUND", "DEPENDS_CYCLE"}:
        kept = _without_trouble(request, backlog)
        yield NextAction(ActionKind.SET, request.id, options=(("depends_on", kept),))


def stopped_for(request: Request, run: RunSummary | None) -> str | None:
    """Return the reason code for which a request's run waits for a person, if it does."""
    if run is None or run.is_active or request.status is RequestStatus.DONE:
        return None
    if run.state is RunState.NEEDS_INPUT:
        return run.why or "LATEST_RUN_NEEDS_INPUT"
    # Sent back and still blocked: a kill came between, and nothing is left to do but to make it ready.
    if request.status is not RequestStatus.BLOCKED or run.reason_code == "SENT_BACK":
        return None
    if request.kept is not None and request.kept.reason_code == "AWAITING_CLOSE":  # an issue's, accepted already
        return request.kept.reason_code
    return run.reason_code or ("AWAITING_ACCEPTANCE" if run.state is RunState.DONE else LOST)


def _without_trouble(request: Request, backlog: Backlog) -> str:
    """Return the dependency list without those that do not exist or lead round in a circle."""
    bad = {wanted for wanted in request.depends_on if wanted not in backlog.by_id and wanted not in backlog.invalid_ids}
    bad |= _round_in_a_circle(request, backlog)
    return ",".join(wanted for wanted in request.depends_on if wanted not in bad)


def _round_in_a_circle(request: Request, backlog: Backlog) -> set[RequestId]:
    """Return the dependencies to give up so that a request no longer waits for itself."""
    cycle = backlog.cycles.get(request.id, ())
    if cycle[:1] == (request.id,):
        return {cycle[1 % len(cycle)]}
    # A large knot names one cycle for all its members: each member leads back here.
    return {wanted for wanted in request.depends_on if cycle and backlog.cycles.get(wanted) is cycle}
