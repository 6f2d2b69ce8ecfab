"""An auto-run that begins at a time that was set (`auto --at`)."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from aiflow.adapters.memory.time import BEGINNING, PlayedTime
from aiflow.cli.options import next_moment
from aiflow.domain.agents.call import AgentReply
from aiflow.errors import AiflowError
from aiflow.usecases.auto.begin_later import wait_for_start
from aiflow.usecases.engine import Engine
from memory_engine import MemoryCheckout, MemoryProcess
from real_engine import engine_at

pytestmark = pytest.mark.spec("AUT-3")


def healthy(clock: PlayedTime) -> Engine:
    return MemoryProcess(MemoryCheckout(), 1, clock, lambda *_: AgentReply()).engine()


def test_it_waits_until_then_and_no_longer_than_the_person_wants() -> None:
    clock = PlayedTime()
    assert wait_for_start(healthy(clock), BEGINNING + timedelta(hours=3), lambda: False)
    assert 3 * 3600 <= clock.seconds < 3 * 3600 + 2
    clock = PlayedTime()
    assert not wait_for_start(healthy(clock), BEGINNING + timedelta(hours=3), lambda: clock.seconds > 0)
    assert clock.seconds < 2


def test_what_would_be_refused_then_is_refused_while_the_person_is_there(repository: Path) -> None:
    with pytest.raises(AiflowError) as refused:  # there is no commit
        wait_for_start(engine_at(repository), datetime.now().astimezone() + timedelta(hours=9), lambda: True)
    assert refused.value.reason_code


@pytest.mark.parametrize(
    ("clock", "now", "then"),
    [
        ((22, 0), "2026-11-18T09:00+01:00", "2026-11-18T22:00+01:00"),
        ((7, 0), "2026-11-18T22:00+01:00", "2026-11-19T07:00+01:00"),
        ((9, 0), "2026-11-18T09:00+01:00", "2026-11-19T09:00+01:00"),
        ((7, 0), "2026-03-28T22:00+01:00", "2026-03-29T07:00+02:00"),  # the clocks go forward in this night
    ],
)
def test_a_time_of_day_is_the_next_one_that_the_clock_shows(
    clock: tuple[int, int], now: str, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert next_moment(clock, datetime.fromisoformat(now)) == datetime.fromisoformat(then)
    finally:
        monkeypatch.undo()
        time.tzset()
