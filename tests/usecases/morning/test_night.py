"""The night of a checkout: an auto-run's own journal and its runs' own histories, on the clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.activity import Actor, moved
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.agents.usage import Usage
from aiflow.domain.auto.stopping import Limits
from aiflow.domain.lifecycle import RunEvent
from aiflow.domain.lock import Lock
from aiflow.domain.morning.night import GapKind, Night
from aiflow.domain.request import RequestId
from aiflow.domain.runs.events import accepted, happen
from aiflow.domain.runs.run import Run
from aiflow.messages import Texts
from aiflow.usecases.auto.run import auto_run
from aiflow.usecases.auto.shift import AutoTerms
from aiflow.usecases.morning import night as module
from aiflow.usecases.morning.night import tell_night
from aiflow.usecases.shapes.morning import night_shape
from memory_engine import MemoryCheckout, MemoryProcess, obliging

pytestmark = pytest.mark.spec("WEB-1")
TEXTS = Texts("en")


def resumed(run: Run, now: datetime) -> Run:
    """Take a run that is done up again, as `resume --update` does."""
    return happen(run, RunEvent.RESUMED_AT_TESTS, now)


CALL_MINUTES = 10


class Scene:
    """A checkout in which every call of an agent takes ten minutes, and now is a moment of played time."""

    def __init__(self) -> None:
        self.checkout = MemoryCheckout()
        self.time = PlayedTime(seconds=18 * 3600.0)  # 3 January, 21:04
        self.reply: Callable[[AgentReply, AgentCall], AgentReply] = lambda reply, _call: reply
        self.process = MemoryProcess(self.checkout, 7, self.time, self.script)

    def script(self, call: AgentCall, output: Any, should_stop: Any) -> AgentReply:
        self.time.sleep(CALL_MINUTES * 60)
        return self.reply(obliging(self.checkout)(call, output, should_stop), call)

    def auto(self) -> None:
        auto_run(self.process.engine(), AutoTerms(self.checkout.session, Limits(stop_after_failed=0), TEXTS))

    def tell(self) -> Night:
        return tell_night(self.process.engine(), self.checkout.session, self.checkout.journal, UTC)


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    for request_id in ("RQ-1", "RQ-2"):
        scene.checkout.add(request_id)
    return scene


def test_a_night_of_two_runs_and_its_silence_behind(scene: Scene) -> None:
    began = scene.time.now()
    scene.auto()
    ended = scene.time.now()
    scene.time.sleep(8 * 3600)
    night = scene.tell()
    assert (night.begin, night.end) == (began, scene.time.now())
    assert [bar.request_id for bar in night.bars] == ["RQ-1", "RQ-2"]
    assert [(bar.fate, bar.is_waiting) for bar in night.bars] == [("waits", True)] * 2
    assert (night.bars[0].title, night.bars[0].start) == ("A title", 0.0)
    assert night.bars[1].begin >= night.bars[0].end == began + timedelta(minutes=3 * CALL_MINUTES)
    assert [(gap.kind, gap.begin, gap.reason_code) for gap in night.gaps] == [
        ("nothing_to_do", ended, "AUTO_NOTHING_RUNNABLE")
    ]
    assert (night.numbers.done, night.numbers.runs, night.numbers.cost_usd) == (0, 2, None)
    assert night.numbers.worked_seconds == 6 * CALL_MINUTES * 60
    shape = night_shape(night)
    assert shape["bars"][0]["run_id"] == night.bars[0].run_id
    assert shape["numbers"]["runs"] == 2


def test_what_is_accepted_is_done_and_costs_are_told(scene: Scene) -> None:
    scene.reply = lambda reply, _call: replace(reply, usage=Usage(cost_usd=0.5))
    scene.auto()
    scene.checkout.add("RQ-1", "done")
    night = scene.tell()
    assert [(bar.fate, bar.is_waiting) for bar in night.bars] == [("done", False), ("waits", True)]
    assert (night.numbers.done, night.numbers.cost_usd) == (1, 3.0)


def test_an_old_run_is_in_it_only_if_it_was_worked_on_tonight(scene: Scene) -> None:
    scene.auto()
    first, second = (bar.run_id for bar in scene.tell().bars)
    scene.time.sleep(48 * 3600)
    assert (scene.tell().bars, scene.tell().numbers) == ((), (0, 0, 0.0, None))
    engine = scene.process.engine()
    for run_id in (first, second):
        run = engine.runs.load(engine.runs.find(run_id) or "", run_id)
        assert run is not None
        is_first = run_id == first
        changed = accepted(run, "abc", scene.time.now()) if is_first else resumed(run, scene.time.now())
        engine.runs.save(changed)
        engine.journal.append(moved(scene.time.now(), Actor.ENGINE, run, None, event=changed.history[-1].event))
    lease = engine.locks.acquire_request(RequestId("RQ-2"), second)
    assert not isinstance(lease, Lock)
    scene.time.sleep(600)
    night = scene.tell()
    # The one was only accepted, the other one goes on.
    assert [(bar.run_id, bar.fate) for bar in night.bars] == [(second, "running")]
    assert night.numbers == (1, 1, 600.0, None)
    lease.release()
    assert [(bar.fate, bar.is_waiting) for bar in scene.tell().bars] == [("waits", True)]


def test_only_so_many_runs_are_drawn(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.auto()
    monkeypatch.setattr(module, "MOST_DRAWN", 1)
    night = scene.tell()
    assert ([bar.request_id for bar in night.bars], night.left_out) == (["RQ-2"], 1)


def test_a_night_without_a_run(scene: Scene) -> None:
    night = scene.tell()
    assert (night.bars, night.end - night.begin) == ((), timedelta(hours=8))
    assert [(gap.kind, gap.start, gap.width) for gap in night.gaps] == [("off", 0.0, 1.0)]


def moves_the_clock(scene: Scene, by: timedelta) -> None:
    """Have the time of day jump while the first implementer is at work; the clock that stands still in a sleep does."""
    plain_script = scene.process.script

    def script(call: AgentCall, output: Any, should_stop: Callable[[], bool]) -> AgentReply:
        if call.brief.id == "RQ-1" and call.role is Role.IMPLEMENTER:
            should_stop()
            scene.time.set_by += by
            should_stop()
        return plain_script(call, output, should_stop)

    scene.process.script = script


def test_a_machine_that_slept_is_told_by_its_clocks(scene: Scene) -> None:
    moves_the_clock(scene, timedelta(hours=4))
    began = scene.time.now()
    scene.auto()
    night = scene.tell()
    (asleep,) = (gap for gap in night.gaps if gap.kind is GapKind.ASLEEP)
    assert asleep.begin == began + timedelta(minutes=CALL_MINUTES)
    assert asleep.end - asleep.begin == timedelta(hours=4)
    assert [bar.request_id for bar in night.bars] == ["RQ-1", "RQ-1", "RQ-2"]
    assert night.numbers.worked_seconds == 6 * CALL_MINUTES * 60


@pytest.mark.parametrize("by", [timedelta(), timedelta(hours=-1), timedelta(seconds=90)])
def test_a_long_call_and_a_clock_that_is_set_right_are_no_sleep(scene: Scene, by: timedelta) -> None:
    moves_the_clock(scene, by)
    scene.auto()
    assert all(gap.kind is not GapKind.ASLEEP for gap in scene.tell().gaps)
