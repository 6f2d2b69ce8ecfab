"""The night on the clock: which stretches of work there were, and why nothing was worked on between them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from aiflow.domain.lifecycle import RunEvent, RunState
from aiflow.domain.morning.clock import ClockSpan
from aiflow.domain.morning.fates import RunFate, fate_of
from aiflow.domain.morning.night import (
    Gap,
    GapKind,
    Lull,
    draw_bars,
    draw_gaps,
    draw_ticks,
    evening_before,
    span_of,
    sum_up,
)
from aiflow.domain.morning.signs import AutoNow, read_signs
from aiflow.domain.morning.stretches import RunCondition, worked
from aiflow.domain.runs.run import Happening, Run, RunError
from run_builders import new_run

pytestmark = pytest.mark.spec("WEB-1")

MORNING = datetime(2026, 11, 17, 7, 0, tzinfo=UTC)
TOKYO = timezone(timedelta(hours=9))


def hour(clock: float) -> datetime:
    """A moment of the night: 22 is yesterday at 22:00, 3.5 today at 3:30."""
    day = datetime(2026, 11, 17, tzinfo=UTC) - timedelta(days=clock >= 12)
    return day + timedelta(hours=clock)


def line(clock: float, event: str, reason: str | None = None) -> Happening:
    return Happening(hour(clock), event, reason_code=reason)


def a_run(begin: float, *lines: Happening, state: str = "DONE", **fields: Any) -> Run:
    planned = line(begin, RunEvent.PLANNING_STARTED)
    return new_run(created_at=hour(begin), history=(planned, *lines), state=RunState(state), **fields)


DONE = a_run(22, line(23, RunEvent.REPORTED), accepted_as="abc")
STOPPED = a_run(
    22,
    line(23, RunEvent.NEEDS_INPUT, "NEEDS_CLARIFICATION"),
    state="NEEDS_INPUT",
    error=RunError("NEEDS_CLARIFICATION", ""),
)


@pytest.mark.parametrize(
    ("state", "reason", "is_accepted", "fate"),
    [
        ("DONE", None, True, "done"),
        ("DONE", None, False, "waits"),
        ("NEEDS_INPUT", "UNIT_TEST_FAILED", False, "waits"),
        ("NEEDS_INPUT", "CANCELLED", False, "cancelled"),
        ("FAILED", "INTERNAL_ERROR", False, "failed"),
        ("FAILED", "REPLANNED", False, "replaced"),
        ("FAILED", "SENT_BACK", False, "sent_back"),
        ("TESTING", None, False, "running"),
    ],
)
def test_every_end_has_its_word(state: str, reason: str | None, is_accepted: bool, fate: str) -> None:
    assert fate_of(RunState(state), reason, is_accepted=is_accepted) == fate


def test_the_night_begins_yesterday_evening_by_the_local_clock() -> None:
    assert evening_before(MORNING, UTC) == hour(18)
    # It is 16:00 of the same day in Tokyo: 18:00 there is 9:00 here.
    assert evening_before(MORNING, TOKYO) == hour(18) - timedelta(hours=9)


def test_the_span_begins_with_the_first_work_and_is_eight_hours_at_least() -> None:
    runs = (worked(DONE, MORNING),)
    assert span_of(runs, hour(18), MORNING) == (hour(22), MORNING)
    assert span_of((), hour(18), MORNING) == (hour(23), MORNING)
    assert span_of((worked(a_run(1, state="TESTING"), MORNING),), hour(18), MORNING) == (hour(23), MORNING)
    # One that began before the evening and went on is drawn from there.
    assert span_of((worked(a_run(13, line(19, RunEvent.REPORTED)), MORNING),), hour(18), MORNING).begin == hour(18)
    # One that ended before it has no place in it.
    assert span_of((worked(a_run(13, line(14, RunEvent.REPORTED)), MORNING),), hour(18), MORNING).begin == hour(23)


@pytest.mark.parametrize(
    ("begun", "drawn"), [(1, 5), (5, 5), (5.1, 15), (16, 30), (31, 60), (61, 120), (121, 240), (241, 480), (500, 500)]
)
def test_where_nothing_happened_before_the_clock_is_drawn_for_a_shorter_time(begun: float, drawn: float) -> None:
    runs = (worked(a_run(7 - begun / 60, state="TESTING"), MORNING),)
    off, on = Lull(hour(18), GapKind.OFF), Lull(MORNING - timedelta(minutes=begun), GapKind.WAITING)
    assert span_of(runs, hour(18), MORNING, (off, on)).begin == MORNING - timedelta(minutes=drawn)
    # An auto-run that waited for hours before it is a part of the night.
    waited = Lull(hour(2), GapKind.WAITING)
    assert span_of(runs, hour(18), MORNING, (waited,)).begin == min(hour(23), MORNING - timedelta(minutes=drawn))


def test_a_bar_lies_where_its_run_was_at_work() -> None:
    span = ClockSpan(hour(21), hour(7))
    (bar,) = draw_bars((worked(DONE, MORNING),), span)
    assert (bar.fate, bar.begin, bar.end, bar.start, bar.width) == ("done", hour(22), hour(23), 0.1, 0.1)
    assert (bar.request_id, bar.run_id, bar.title, bar.is_last) == ("RQ-1", DONE.run_id, "A title", True)


def test_a_run_that_was_resumed_has_a_bar_for_each_time_and_a_pin_on_the_last() -> None:
    resumed = replace(
        STOPPED,
        history=(
            *STOPPED.history,
            line(5, RunEvent.RESUMED_AT_STEP),
            line(6, RunEvent.NEEDS_INPUT, "UNIT_TEST_FAILED"),
        ),
        error=RunError("UNIT_TEST_FAILED", ""),
    )
    bars = draw_bars((worked(resumed, MORNING, RunCondition(is_waiting=True)),), ClockSpan(hour(21), hour(7)))
    assert [(bar.begin, bar.end) for bar in bars] == [(hour(22), hour(23)), (hour(5), hour(6))]
    assert [(bar.fate, bar.reason_code, bar.is_waiting) for bar in bars] == [
        ("waits", "NEEDS_CLARIFICATION", False),
        ("waits", "UNIT_TEST_FAILED", True),
    ]


def test_a_note_beside_a_stopped_run_lets_it_rest_on() -> None:
    noted = replace(STOPPED, history=(*STOPPED.history, line(1, "SETUP"), line(2, "SETUP")))
    assert [(each.begin, each.end) for each in worked(noted, MORNING).stretches] == [(hour(22), hour(23))]


def test_a_run_at_work_goes_on_to_now_and_one_that_was_cut_off_to_its_last_word() -> None:
    at_work = a_run(22, line(23, RunEvent.PLANNED), state="IMPLEMENTING")
    assert worked(at_work, MORNING).stretches[0].end == MORNING
    cut = worked(at_work, MORNING, RunCondition(is_cut=True))
    assert (cut.fate, cut.stretches[0].end) == (RunFate.WAITS, hour(23))
    recovered = replace(at_work, history=(*at_work.history, line(3, RunEvent.RECOVERED), line(4, RunEvent.IMPLEMENTED)))
    assert [(each.begin, each.end) for each in worked(recovered, MORNING).stretches] == [
        (hour(22), hour(23)),
        (hour(3), MORNING),
    ]


def test_a_replaced_run_and_one_whose_request_a_person_closed() -> None:
    assert worked(replace(STOPPED, replaced_by="RUN-2"), MORNING).fate is RunFate.REPLACED
    finished = replace(DONE, accepted_as=None)
    assert worked(finished, MORNING).fate is RunFate.WAITS
    assert worked(finished, MORNING, RunCondition(is_closed=True)).fate is RunFate.DONE


def test_a_wait_for_quota_is_no_work() -> None:
    waited = a_run(
        22,
        line(22.01, RunEvent.QUOTA_WAIT, "AGENT_QUOTA"),
        line(22.02, RunEvent.QUOTA_BACK),
        line(0, RunEvent.QUOTA_WAIT, "AGENT_QUOTA"),
        line(3, RunEvent.QUOTA_BACK),
        line(4, RunEvent.REPORTED),
        accepted_as="abc",
    )
    run, span = worked(waited, MORNING), ClockSpan(hour(21), hour(7))
    # What takes a moment cuts nothing.
    assert [(each.begin, each.end) for each in run.stretches] == [(hour(22), hour(0)), (hour(3), hour(4))]
    assert {bar.fate for bar in draw_bars((run,), span)} == {"done"}
    gaps = draw_gaps((run,), span, [Lull(hour(18), GapKind.OFF)])
    assert [(gap.kind, gap.begin, gap.end, gap.run_id) for gap in gaps] == [
        ("off", hour(21), hour(22), None),
        ("quota", hour(0), hour(3), waited.run_id),
        ("off", hour(4), hour(7), None),
    ]
    assert sum_up((run,), span).worked_seconds == 3 * 3600


def test_a_run_that_still_waits_for_quota_waits_until_now() -> None:
    waiting = a_run(22, line(23, RunEvent.QUOTA_WAIT, "AGENT_QUOTA"), state="IMPLEMENTING")
    run = worked(waiting, MORNING)
    assert [(each.begin, each.end) for each in run.stretches] == [(hour(22), hour(23))]
    assert [(gap.kind, gap.end) for gap in draw_gaps((run,), ClockSpan(hour(22), MORNING), ())] == [("quota", MORNING)]


def test_asleep_counts_before_everything_else_and_short_gaps_are_none() -> None:
    known = [
        Lull(hour(18), GapKind.WAITING),
        Lull(hour(23.02), GapKind.NOTHING_TO_DO, "X"),
        Lull(hour(6), GapKind.OFF),
    ]
    gaps = draw_gaps((worked(DONE, MORNING),), ClockSpan(hour(22), hour(7)), known, [(hour(1), hour(5))])
    assert [tuple(gap)[:3] for gap in gaps] == [
        ("nothing_to_do", hour(23.02), hour(1)),
        ("asleep", hour(1), hour(5)),
        ("nothing_to_do", hour(5), hour(6)),
        ("off", hour(6), hour(7)),
    ]
    assert gaps[0].reason_code == "X"
    assert gaps[1] == Gap(GapKind.ASLEEP, hour(1), hour(5), 0.333333, 0.444445)


def test_every_full_hour_is_a_tick() -> None:
    ticks = draw_ticks(ClockSpan(hour(21.5), hour(7.5)), UTC)
    assert [tick.at.hour for tick in ticks] == [22, 23, 0, 1, 2, 3, 4, 5, 6, 7]
    assert [tick.place for tick in ticks][:2] == [0.05, 0.15]
    half = timezone(timedelta(hours=5, minutes=30))
    assert [tick.at.minute for tick in draw_ticks(ClockSpan(hour(0), hour(8)), half)] == [0] * 8


@pytest.mark.parametrize(("length", "step"), [(5, 1), (15, 5), (30, 5), (60, 10), (120, 15), (240, 30), (480, 60)])
def test_a_short_time_has_ticks_at_round_minutes(length: int, step: int) -> None:
    end = hour(7) + timedelta(minutes=2, seconds=30)
    ticks = draw_ticks(ClockSpan(end - timedelta(minutes=length), end), UTC)
    assert 2 < len(ticks) <= 8
    assert {tick.at.minute % step + tick.at.second for tick in ticks} == {0}
    assert {later.at - one.at for one, later in itertools.pairwise(ticks)} == {timedelta(minutes=step)}
    assert 0 < ticks[0].place < ticks[-1].place < 1


def test_what_the_night_came_to() -> None:
    again = replace(DONE, run_id="RUN-2", usage=replace(DONE.usage, cost_usd=1.5))
    waits = replace(STOPPED, run_id="RUN-3")
    runs = (worked(DONE, MORNING), worked(again, MORNING), worked(waits, MORNING))
    assert sum_up(runs, ClockSpan(hour(22.5), MORNING)) == (1, 3, 3 * 1800.0, 1.5)
    assert sum_up(runs[:1], ClockSpan(hour(18), MORNING)).cost_usd is None


# --- what the journal tells -------------------------------------------------------------------------------------------


def auto(clock: float, event: str, reason: str | None = None) -> Mapping[str, Any]:
    kind = "decision" if event == "decision" else "transition"
    data = {} if event == "decision" else {"event": event}
    return {"at": hour(clock).isoformat(), "kind": kind, "actor": "auto_run", "reason_code": reason, "data": data}


def told(*entries: Mapping[str, Any], **now: Any) -> list[tuple[datetime, str, str | None]]:
    signs = read_signs(entries, hour(18), AutoNow(**{"is_on": False, **now}))
    return [(each.since, each.kind.value, each.reason_code) for each in signs.known]


def test_auto_run_is_off_until_it_starts_and_from_its_end_on() -> None:
    assert told(auto(22, "started"), auto(22, "decision"), auto(3, "stopped", "AUTO_COST_LIMIT")) == [
        (hour(18), "off", None),
        (hour(22), "waiting", None),
        (hour(22), "waiting", None),
        (hour(3), "off", "AUTO_COST_LIMIT"),
    ]


def test_an_auto_run_that_the_doctor_refused_was_not_on_before() -> None:
    refused = auto(22, "stopped", "DOCTOR_FAILED")
    assert told({**refused, "data": {"event": "stopped", "runs": 0}}) == [
        (hour(18), "off", None),
        (hour(22), "off", "DOCTOR_FAILED"),
    ]
    assert told({**refused, "data": {"event": "stopped", "runs": 1}})[0] == (hour(18), "waiting", None)


def test_nothing_to_do_is_said_while_it_watches_and_where_it_ended_for_that() -> None:
    assert told(auto(1, "decision", "AUTO_NOTHING_RUNNABLE"), is_on=True)[1:] == [
        (hour(1), "nothing_to_do", "AUTO_NOTHING_RUNNABLE")
    ]
    ended = told(auto(1, "nothing_left", "AUTO_NOTHING_RUNNABLE"))
    assert ended == [(hour(18), "waiting", None), (hour(1), "nothing_to_do", "AUTO_NOTHING_RUNNABLE")]


def test_one_that_died_is_off_from_its_last_sign_on() -> None:
    moved = {
        "at": hour(2).isoformat(),
        "kind": "transition",
        "actor": "engine",
        "request_id": "RQ-1",
        "run_id": "RUN-1",
        "data": {"event": "PLANNED"},
    }
    assert told(auto(22, "started"), moved, auto(5, "started"), is_on=True) == [
        (hour(18), "off", None),
        (hour(22), "waiting", None),
        (hour(2), "off", "AUTO_CUT_OFF"),
        (hour(5), "waiting", None),
    ]
    assert told(auto(22, "started"), moved)[-1] == (hour(2), "off", "AUTO_CUT_OFF")
    assert read_signs([moved], hour(18), AutoNow(is_on=False)).runs == {("RQ-1", "RUN-1")}


def test_without_a_sign_it_is_as_it_is_now() -> None:
    assert told(is_on=True) == [(hour(18), "waiting", None)]
    assert told(reason_code="AUTO_COST_LIMIT", ended_at=hour(13)) == [(hour(18), "off", "AUTO_COST_LIMIT")]
    assert told(reason_code="AUTO_NOTHING_RUNNABLE", ended_at=hour(13))[0][1] == "nothing_to_do"
    assert told({"at": "?", "actor": "auto_run"}) == [(hour(18), "off", None)]


def test_a_sleep_is_no_work_whatever_the_run_waited_for() -> None:
    slept = {**auto(5, "slept"), "data": {"event": "slept", "seconds": 4 * 3600}}
    signs = read_signs([slept, {**slept, "data": {"event": "slept", "seconds": "long"}}], hour(18), AutoNow(is_on=True))
    assert signs.asleep == ((hour(1), hour(5)),)
    at_work = a_run(22, line(0, RunEvent.QUOTA_WAIT, "AGENT_QUOTA"), line(2, RunEvent.QUOTA_BACK), state="IMPLEMENTING")
    run = worked(at_work, MORNING, asleep=signs.asleep)
    assert [(each.begin, each.end) for each in run.stretches] == [(hour(22), hour(0)), (hour(5), hour(7))]
    gaps = draw_gaps((run,), ClockSpan(hour(22), hour(7)), signs.known, signs.asleep)
    assert [(gap.kind, gap.begin, gap.end) for gap in gaps] == [
        ("quota", hour(0), hour(1)),
        ("asleep", hour(1), hour(5)),
    ]
