"""Runners: who shows as alive, and who is lost by the clock of whoever looks (QUE-7, QUE-10)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.queue.runner import HeartbeatWatch, Runner, RunnerStatus, gives_up_seconds, is_alive
from task_builders import NOW, a_runner, later

TIMEOUT = 120.0


@pytest.mark.spec("QUE-7")
@pytest.mark.parametrize(
    ("status", "seconds", "alive"),
    [
        (RunnerStatus.RUNNING, 0, True),
        (RunnerStatus.RUNNING, 119.999, True),
        (RunnerStatus.RUNNING, 120, False),
        (RunnerStatus.RUNNING, -300, True),
        (RunnerStatus.STOPPED, 0, False),
    ],
)
def test_alive_is_running_with_a_young_heartbeat(status: RunnerStatus, seconds: float, alive: bool) -> None:
    assert is_alive(a_runner(status=status), later(seconds), TIMEOUT) is alive


@pytest.mark.parametrize(
    ("status", "task_id", "at_rest"),
    [
        (RunnerStatus.RUNNING, None, False),
        (RunnerStatus.STOPPED, "TASK-0001", False),
        (RunnerStatus.STOPPED, None, True),
    ],
)
def test_at_rest_is_stopped_with_nothing_at_work(status: RunnerStatus, task_id: str | None, at_rest: bool) -> None:
    assert a_runner(status=status, task_id=task_id).is_at_rest is at_rest


def watch(looks: list[tuple[float, int]]) -> tuple[HeartbeatWatch, Runner]:
    """Look at one runner at moments of our clock, with the count it has then."""
    vigil, runner = HeartbeatWatch(), a_runner()
    for seconds, beats in looks:
        runner = replace(runner, beats=beats)
        vigil = vigil.look([runner], seconds, TIMEOUT)
    return vigil, runner


@pytest.mark.spec("QUE-7")
@pytest.mark.parametrize(
    ("looks", "now", "lost"),
    [
        ([], 1000, False),
        ([(0, 1)], 119, False),
        ([(0, 1)], 120, True),
        ([(0, 1), (50, 1), (100, 1)], 119, False),
        ([(0, 1), (50, 1), (100, 1)], 120, True),
        ([(0, 1), (50, 2), (100, 2)], 169, False),
        ([(0, 1), (50, 2), (100, 2)], 170, True),
        # A count that was set back is a change too: another process under the same name.
        ([(0, 7), (50, 1), (100, 1)], 120, False),
        # We slept: everybody's time begins anew.
        ([(0, 1), (50, 1), (7000, 1)], 7000, False),
        ([(0, 1), (50, 1), (7000, 1)], 7119, False),
        ([(0, 1), (50, 1), (7000, 1), (7050, 1), (7100, 1)], 7120, True),
        ([(0, 1), (60, 1)], 120, True),
        ([(0, 1), (60.1, 1)], 120, False),
    ],
)
def test_lost_is_an_unchanged_count_for_as_long_as_the_timeout_by_our_clock(
    looks: list[tuple[float, int]], now: float, lost: bool
) -> None:
    vigil, runner = watch(looks)
    assert vigil.is_lost(runner, now, TIMEOUT) is lost


@pytest.mark.spec("QUE-7")
def test_a_runner_that_moved_since_the_last_look_is_not_lost() -> None:
    vigil, runner = watch([(0, 1), (50, 1), (100, 1)])
    assert not vigil.is_lost(replace(runner, beats=2), 500, TIMEOUT)
    assert not vigil.is_lost(replace(runner, runner_id="new"), 500, TIMEOUT)


def test_who_is_gone_is_forgotten() -> None:
    vigil = HeartbeatWatch().look([a_runner("a"), a_runner("b")], 0, TIMEOUT).look([a_runner("b")], 10, TIMEOUT)
    assert set(vigil.seen) == {"b"}
    assert vigil.looked_seconds == 10


@pytest.mark.spec("QUE-7")
@given(st.lists(st.floats(0.1, TIMEOUT * 3), min_size=1, max_size=30), st.data())
def test_whoever_beats_between_looks_is_never_lost(pauses: list[float], data: st.DataObject) -> None:
    seconds, vigil = 0.0, HeartbeatWatch()
    for beats, pause in enumerate(pauses):
        seconds += pause
        runner = a_runner(beats=beats, last_heartbeat=later(data.draw(st.floats(-1e6, 1e6))))
        vigil = vigil.look([runner], seconds, TIMEOUT)
        assert not vigil.is_lost(runner, seconds, TIMEOUT)


@pytest.mark.spec("QUE-7")
@given(st.lists(st.floats(0.1, TIMEOUT / 2 - 1), min_size=1, max_size=30))
def test_whoever_stands_still_is_lost_at_the_timeout_and_not_before(pauses: list[float]) -> None:
    seconds, vigil, runner = 0.0, HeartbeatWatch().look([a_runner()], 0, TIMEOUT), a_runner()
    for pause in pauses:
        seconds += pause
        vigil = vigil.look([runner], seconds, TIMEOUT)
        assert vigil.is_lost(runner, seconds, TIMEOUT) == (seconds >= TIMEOUT)


@pytest.mark.spec("QUE-10")
@given(st.floats(1, 1e6))
def test_a_runner_gives_up_before_anybody_may_take_over(timeout_seconds: float) -> None:
    assert gives_up_seconds(timeout_seconds) == pytest.approx(timeout_seconds * 0.75)


def test_the_heartbeats_own_time_counts_for_nobody_but_people() -> None:
    one, other = a_runner(last_heartbeat=NOW), a_runner(last_heartbeat=later(-9999))
    assert HeartbeatWatch().look([one], 5, TIMEOUT) == HeartbeatWatch().look([other], 5, TIMEOUT)
