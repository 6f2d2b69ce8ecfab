"""How auto-run stood, by what it wrote in the journal (ERR-4): on, with nothing to do, or off and why."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.activity import ActivityKind, Actor
from aiflow.domain.auto.asleep import SLEPT
from aiflow.domain.lifecycle import AutoRunEvent
from aiflow.domain.morning.night import GapKind, Lull
from aiflow.domain.request import parse_instant
from aiflow.domain.run_summary import CUT_OFF

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime
    from typing import Any

NOTHING_RUNNABLE = "AUTO_NOTHING_RUNNABLE"
DOCTOR_FAILED = "DOCTOR_FAILED"
# A month: what a journal says beyond that is a mistake.
MOST_SECONDS = 31 * 86_400
_ENDS = (AutoRunEvent.STOPPED, AutoRunEvent.NOTHING_LEFT)


class Signs(NamedTuple):
    """What the journal of a night shows: the states of auto-run, and which runs were worked on, as `(request, run)`.

    `asleep` are the times in which the machine slept while an auto-run was on.
    """

    known: tuple[Lull, ...]
    runs: frozenset[tuple[str, str]]
    asleep: tuple[tuple[datetime, datetime], ...] = ()


class AutoNow(NamedTuple):
    """The state of auto-run: whether it is on, and how and when the last one ended, as far as is known."""

    is_on: bool
    reason_code: str | None = None
    ended_at: datetime | None = None


def read_signs(entries: Iterable[Mapping[str, Any]], since: datetime, now: AutoNow) -> Signs:
    """Read a night's entries, oldest first; what was before the first follows from the first, or from now."""
    dated = [(at, entry) for entry in entries if (at := parse_instant(str(entry.get("at", "")))) is not None]
    known: list[Lull] = []
    last, is_on = since, False
    for at, entry in dated:
        state = _state(entry, at)
        if state is not None:
            was_on = is_on if known else not (state.is_start or _was_refused(entry))
            known += _until(state, known, last, now, was_on=was_on)
            is_on = _event(entry) not in _ENDS
        if state is not None or _names_of(entry):
            last = at
    if not known:
        known.append(_before(None, since, now, is_on=now.is_on))
    elif is_on and not now.is_on:
        known.append(Lull(last, GapKind.OFF, CUT_OFF))
    runs = frozenset(names for _, entry in dated if (names := _names_of(entry)))
    asleep = ((at - slept, at) for at, entry in dated if (slept := _slept(entry)))
    return Signs(tuple(known), runs, tuple(asleep))


def _slept(entry: Mapping[str, Any]) -> timedelta | None:
    """Return how long the machine had slept, if an entry says so."""
    seconds = entry["data"].get("seconds") if _event(entry) == SLEPT else None
    if isinstance(seconds, (int, float)) and 0 < seconds < MOST_SECONDS:
        return timedelta(seconds=seconds)
    return None


def _until(state: Lull, known: list[Lull], last: datetime, now: AutoNow, *, was_on: bool) -> Iterator[Lull]:
    """Yield a new state, and before it what held until then, where the states so far do not say it."""
    if not known:
        yield _before(state, last, now, is_on=was_on)
    elif state.is_start and was_on:  # the one before ended without a word: its last sign is all that is known
        yield Lull(last, GapKind.OFF, CUT_OFF)
    yield state


def _was_refused(entry: Mapping[str, Any]) -> bool:
    """Say whether an entry is the end of an auto-run that the doctor did not let begin: it has no other entry."""
    return _event(entry) in _ENDS and entry.get("reason_code") == DOCTOR_FAILED and not entry["data"].get("runs")


def _names_of(entry: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the request and the run that an entry moves, if it moves one."""
    if entry.get("kind") != ActivityKind.TRANSITION or not (entry.get("run_id") and entry.get("request_id")):
        return None
    return str(entry["request_id"]), str(entry["run_id"])


def _event(entry: Mapping[str, Any]) -> object:
    data = entry.get("data")
    return data.get("event") if isinstance(data, dict) and entry.get("kind") == ActivityKind.TRANSITION else None


def _state(entry: Mapping[str, Any], at: datetime) -> Lull | None:
    """Return auto-run's state after one of its entries; None if the entry is not auto-run's or doesn't show it."""
    if entry.get("actor") != Actor.AUTO_RUN:
        return None
    code = entry.get("reason_code")
    reason = str(code) if code else None
    if _event(entry) in _ENDS:
        return _off(at, reason)
    if _event(entry) == AutoRunEvent.STARTED:
        return Lull(at, GapKind.WAITING, is_start=True)
    if entry.get("kind") == ActivityKind.DECISION:
        return Lull(at, GapKind.NOTHING_TO_DO if reason == NOTHING_RUNNABLE else GapKind.WAITING, reason)
    return None


def _off(at: datetime, reason: str | None) -> Lull:
    return Lull(at, GapKind.NOTHING_TO_DO if reason == NOTHING_RUNNABLE else GapKind.OFF, reason)


def _before(first: Lull | None, since: datetime, now: AutoNow, *, is_on: bool) -> Lull:
    """Say what held at the beginning: on, if the first sign is that of one at work."""
    if is_on:
        return Lull(since, GapKind.WAITING)
    is_past = first is None and now.ended_at is not None and now.ended_at <= since
    return _off(since, now.reason_code if is_past else None)
