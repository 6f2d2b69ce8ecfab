"""When a run was worked on, by its own history: between its stops, its crashes and its waits for a quota (RUN-13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.lifecycle import RunEvent, RunState
from aiflow.domain.morning.fates import REPLANNED, RunFate, fate_of
from aiflow.domain.morning.night import LEAST_GAP, Stretch, Worked
from aiflow.domain.run_summary import RESTING, WORKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from aiflow.domain.runs.run import Happening, Run

_STATES = {RunEvent.REPORTED: RunState.DONE, RunEvent.NEEDS_INPUT: RunState.NEEDS_INPUT}


class RunCondition(NamedTuple):
    """What the backlog shows about a run: its process is gone, its request is done, it waits for a person.

    `is_continued` if the next auto-run continues it.
    """

    is_cut: bool = False
    is_closed: bool = False
    is_waiting: bool = False
    is_continued: bool = False


def worked(
    run: Run,
    now: datetime,
    standing: RunCondition = RunCondition(),  # noqa: B008
    asleep: Sequence[tuple[datetime, datetime]] = (),
) -> Worked:
    """Return when a run was worked on: not while it waited for a quota, nor while the machine was asleep."""
    is_cut, is_closed, is_waiting, is_continued = standing
    reason = run.error.reason_code if run.error else None
    is_accepted = is_closed or run.accepted_as is not None
    fate = RunFate.REPLACED if run.replaced_by else fate_of(run.state, reason, is_accepted=is_accepted)
    if is_continued:
        fate = RunFate.CONTINUES
    elif is_cut and fate is RunFate.RUNNING:
        fate = RunFate.WAITS
    waits = tuple(_quota_waits(run, now))
    cuts = sorted(wait for wait in (*waits, *asleep) if wait[1] - wait[0] >= LEAST_GAP)
    *before, last = _stretches(run, now, is_cut=is_cut)
    code = REPLANNED if fate is RunFate.REPLACED else reason
    sittings = (*before, last._replace(fate=fate, reason_code=code))
    stretches = tuple(part for sitting in sittings for part in _without(sitting, cuts))
    return Worked(run.request_id, run.title, run.run_id, fate, is_waiting, stretches, waits, run.usage.cost_usd)


def _stretches(run: Run, now: datetime, *, is_cut: bool) -> Iterator[Stretch]:
    """Yield the times in which somebody had the run; after a crash the last thing that it wrote is its end."""
    begin: datetime | None = run.created_at
    last = run.created_at
    for line in run.history:
        if line.event in RESTING:
            if begin is not None:
                yield Stretch(begin, max(begin, line.at), _fate_of(line), line.reason_code)
            begin = None
        elif line.event == RunEvent.RECOVERED:
            if begin is not None:
                yield Stretch(begin, last, RunFate.WAITS, "PROCESS_CRASHED")
            begin = line.at
        elif line.event in WORKING and begin is None:
            begin = line.at
        last = line.at
    if begin is not None:
        yield Stretch(begin, max(begin, last if is_cut else now), RunFate.WAITS if is_cut else RunFate.RUNNING)


def _fate_of(line: Happening) -> RunFate:
    state = _STATES.get(RunEvent(line.event), RunState.FAILED)
    return fate_of(state, line.reason_code)


def _quota_waits(run: Run, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield when a run waited for its agent's quota: until whatever happened next."""
    began: datetime | None = None
    for line in run.history:
        if began is not None:
            yield began, max(began, line.at)
        began = line.at if line.event == RunEvent.QUOTA_WAIT else None
    if began is not None:
        yield began, max(began, now if run.is_active else began)


def _without(stretch: Stretch, cuts: list[tuple[datetime, datetime]]) -> Iterator[Stretch]:
    """Yield what is left of a stretch between waits; one that ends in a wait ends where that began."""
    begin = stretch.begin
    for cut_from, cut_to in cuts:
        if cut_to <= begin or cut_from >= stretch.end:
            continue
        if cut_from > begin:
            yield stretch._replace(begin=begin, end=cut_from)
        begin = max(begin, cut_to)
    if begin < stretch.end or begin == stretch.begin:
        yield stretch._replace(begin=begin)
