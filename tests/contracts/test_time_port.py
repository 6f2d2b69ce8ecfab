"""The `Time` port (HOUSE §5), the same for the machine's time and for one that is played."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.adapters.system_time import SystemTime
from aiflow.ports import Time


@pytest.fixture(params=[SystemTime, PlayedTime])
def time(request: pytest.FixtureRequest) -> Time:
    made: Time = request.param()
    return made


def wait_for(time: Time, is_so: Callable[[], bool]) -> None:
    """Let time pass until something is so, however slow the machine is."""
    until = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)


def test_time_passes_while_somebody_sleeps(time: Time) -> None:
    began, at = time.monotonic(), time.now()
    assert at.tzinfo is not None
    time.sleep(0.02)
    assert time.monotonic() - began >= 0.02
    assert time.now() - at >= timedelta(seconds=0.01)
    with time.mutex():
        pass


def test_what_goes_on_beside_the_work_has_its_turns_until_it_is_closed(time: Time) -> None:
    turns: list[float] = []

    def act() -> float:
        turns.append(time.monotonic())
        return 0.05

    beside = time.beside("test", act)
    beside.close()  # one that never began
    beside = time.beside("test", act)
    began = time.monotonic()
    beside.start(0.1)
    wait_for(time, lambda: len(turns) >= 2)
    assert turns[0] - began >= 0.09
    beside.close()
    beside.close()
    had = len(turns)
    time.sleep(0.15)
    assert len(turns) == had


def test_a_poke_is_a_turn_at_once(time: Time) -> None:
    turns: list[float] = []

    def act() -> float:
        turns.append(time.monotonic())
        return 60.0

    beside = time.beside("test", act)
    beside.start(60.0)
    beside.poke()
    wait_for(time, lambda: len(turns) == 1)
    beside.close()


@pytest.mark.spec("QUE-7")
def test_a_turn_that_raises_is_not_the_last(time: Time) -> None:
    turns = 0

    def act() -> float:
        nonlocal turns
        turns += 1
        if turns == 1:
            raise BrokenPipeError
        return 60.0

    beside = time.beside("test", act)
    beside.start()
    wait_for(time, lambda: turns == 2)
    time.sleep(0.1)
    beside.close()
    assert turns == 2, "it neither ends nor spins"
