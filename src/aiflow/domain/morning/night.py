"""The night (WEB-1): every run on the clock, and why nothing ran between them, as far as that was recorded."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.morning.clock import ClockSpan, at_local
from aiflow.domain.morning.fates import RunFate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import tzinfo

EVENING = time(18)
USUAL_SPAN = timedelta(hours=8)
# Where everything happened lately, as on a first evening, the clock is drawn for a shorter time: the first that fits.
SHORT_SPANS = tuple(timedelta(minutes=minutes) for minutes in (5, 15, 30, 60, 120, 240))
TICK_STEPS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 10, 15, 30, 60))
MOST_TICKS = 8
# A shorter gap is not shown and cuts no bar: it would not be visible.
LEAST_GAP = timedelta(minutes=3)


class GapKind(StrEnum):
    """Why nothing was worked on."""

    QUOTA = "quota"
    ASLEEP = "asleep"
    WAITING = "waiting"
    NOTHING_TO_DO = "nothing_to_do"
    OFF = "off"


class Bar(NamedTuple):
    """One stretch of a run's work, as it lies on the clock; `is_last` of a run's last one, which has the pin.

    `start` and `width` are shares of the span, from 0 to 1.
    """

    request_id: str
    title: str
    run_id: str
    fate: RunFate
    reason_code: str | None
    is_waiting: bool
    is_last: bool
    begin: datetime
    end: datetime
    start: float
    width: float


class Gap(NamedTuple):
    """A time in which nothing was worked on, and why; `reason_code` is how auto-run had ended, where it had."""

    kind: GapKind
    begin: datetime
    end: datetime
    start: float
    width: float
    reason_code: str | None = None
    request_id: str | None = None
    run_id: str | None = None


class Tick(NamedTuple):
    """A round time of the local clock, and where it lies in the span, from 0 to 1."""

    at: datetime
    place: float


class NightNumbers(NamedTuple):
    """What the night came to: requests done, runs, seconds of work, and the cost, None if no agent reported one."""

    done: int
    runs: int
    worked_seconds: float
    cost_usd: float | None


class Night(NamedTuple):
    """The night: from when to when, what lies in it, and what it came to; `left_out` runs have no bar."""

    since: datetime
    begin: datetime
    end: datetime
    bars: tuple[Bar, ...]
    gaps: tuple[Gap, ...]
    ticks: tuple[Tick, ...]
    numbers: NightNumbers
    left_out: int = 0


class Worked(NamedTuple):
    """A run as the night is drawn from it: its stretches of work, and its waits for the agent's quota, oldest first."""

    request_id: str
    title: str
    run_id: str
    fate: RunFate
    is_waiting: bool
    stretches: tuple[Stretch, ...]
    quota_waits: tuple[tuple[datetime, datetime], ...] = ()
    cost_usd: float = 0.0


class Stretch(NamedTuple):
    """A time in which a run was worked on, and what it came to then."""

    begin: datetime
    end: datetime
    fate: RunFate
    reason_code: str | None = None


class Lull(NamedTuple):
    """What is recorded to hold from a moment on, where no run is at work; `is_start` where an auto-run begins."""

    since: datetime
    kind: GapKind
    reason_code: str | None = None
    is_start: bool = False


def evening_before(now: datetime, zone: tzinfo | None = None) -> datetime:
    """Return when the night began: yesterday at 18:00 by the local clock."""
    return at_local(now.astimezone(zone).date() - timedelta(days=1), EVENING, zone)


def draw_bars(runs: Sequence[Worked], span: ClockSpan) -> tuple[Bar, ...]:
    """Lay the stretches of all runs on the clock, oldest first; what is outside the span is cut off."""
    bars: list[Bar] = []
    for run in runs:
        inside = [stretch for stretch in run.stretches if stretch.end >= span.begin and stretch.begin <= span.end]
        for number, stretch in enumerate(inside, 1):
            is_last = number == len(inside)
            begin, end = max(stretch.begin, span.begin), min(stretch.end, span.end)
            place = (span.place(begin), span.share(begin, end))
            names = (run.request_id, run.title, run.run_id, stretch.fate, stretch.reason_code)
            bars.append(Bar(*names, run.is_waiting and is_last, is_last, begin, end, *place))
    return tuple(sorted(bars, key=lambda bar: (bar.begin, bar.run_id)))


def draw_gaps(
    runs: Sequence[Worked],
    span: ClockSpan,
    known: Sequence[Lull],
    asleep: Sequence[tuple[datetime, datetime]] = (),
) -> tuple[Gap, ...]:
    """Explain every time in which nothing was worked on: asleep first, then a quota, then how auto-run stood.

    `known` says how that stood, oldest first, beginning before the span.
    """
    busy = [(stretch.begin, stretch.end) for run in runs for stretch in run.stretches]
    gaps: list[Gap] = []
    told: list[tuple[datetime, datetime]] = list(busy)
    for begin, end in _outside(asleep, [], span):
        gaps.append(_gap(GapKind.ASLEEP, begin, end, span))
        told.append((begin, end))
    for run in runs:
        for begin, end in _outside(run.quota_waits, told, span):
            gaps.append(_gap(GapKind.QUOTA, begin, end, span)._replace(request_id=run.request_id, run_id=run.run_id))
        told += run.quota_waits
    for state, begin, end in _periods(known, span):
        for first, last in _outside([(begin, end)], told, span):
            gaps.append(_gap(state.kind, first, last, span)._replace(reason_code=state.reason_code))
    return tuple(sorted(gaps, key=lambda gap: gap.begin))


def _gap(kind: GapKind, begin: datetime, end: datetime, span: ClockSpan) -> Gap:
    return Gap(kind, begin, end, span.place(begin), span.share(begin, end))


def _periods(known: Sequence[Lull], span: ClockSpan) -> Iterator[tuple[Lull, datetime, datetime]]:
    """Yield what held from when to when; the same again is no change."""
    changes = [next(same) for _, same in groupby(known, key=lambda each: (each.kind, each.reason_code))]
    ends = (*(each.since for each in changes[1:]), span.end)
    return ((state, state.since, end) for state, end in zip(changes, ends, strict=False))


def _outside(
    times: Iterable[tuple[datetime, datetime]], told: Sequence[tuple[datetime, datetime]], span: ClockSpan
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the parts of some times that lie in the span and outside what is already shown, unless too short."""
    taken = sorted(told)
    for begin, end in times:
        at, last = max(begin, span.begin), min(end, span.end)
        for busy_from, busy_to in taken:
            if busy_to <= at:
                continue
            if busy_from >= last:
                break
            if busy_from - at >= LEAST_GAP:
                yield at, busy_from
            at = max(at, busy_to)
        if last - at >= LEAST_GAP:
            yield at, last


def draw_ticks(span: ClockSpan, zone: tzinfo | None = None) -> tuple[Tick, ...]:
    """Return the round times of the local clock in a span: every full hour, or minutes where it is short."""
    fitting = (each for each in TICK_STEPS if (span.end - span.begin) / each <= MOST_TICKS)
    step = next(fitting, TICK_STEPS[-1])
    at = span.begin.astimezone(zone).replace(minute=0, second=0, microsecond=0)
    ticks: list[Tick] = []
    while (at := (at + step).astimezone(zone)) <= span.end:
        if at > span.begin:
            ticks.append(Tick(at, span.place(at)))
    return tuple(ticks)


def span_of(runs: Sequence[Worked], since: datetime, now: datetime, known: Sequence[Lull] = ()) -> ClockSpan:
    """Return the time to draw: from the first work since the evening to now, and as a rule eight hours at least.

    It is less where nothing happened before: no work, and by what is `known` no auto-run either.
    """
    begins = [max(stretch.begin, since) for run in runs for stretch in run.stretches if stretch.end >= since]
    if not begins:
        return ClockSpan(now - USUAL_SPAN, now)
    heard = (max(state.since, since) for state in known if state.kind is GapKind.WAITING)
    passed = now - min(*begins, *heard, now)
    least = next((each for each in SHORT_SPANS if passed <= each), USUAL_SPAN)
    return ClockSpan(min(*begins, now - least), now)


def sum_up(runs: Sequence[Worked], span: ClockSpan) -> NightNumbers:
    """Say what the night came to; what was only accepted in it counts as done, and not as a run of it."""
    seconds = {run.run_id: round(sum(_seconds(stretch, span) for stretch in run.stretches), 3) for run in runs}
    at_work = [run for run in runs if seconds[run.run_id] > 0]
    return NightNumbers(
        len({run.request_id for run in runs if run.fate is RunFate.DONE}),
        len(at_work),
        round(sum(seconds.values()), 3),
        round(sum(run.cost_usd for run in at_work), 6) or None,
    )


def _seconds(stretch: Stretch, span: ClockSpan) -> float:
    """Return how long of a stretch is in the span."""
    return max(0.0, (min(stretch.end, span.end) - max(stretch.begin, span.begin)).total_seconds())
