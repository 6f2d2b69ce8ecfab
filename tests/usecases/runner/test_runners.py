"""A runner's parts by themselves: its heartbeat, its eye on others, how a task ends, all with the queue in memory."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from aiflow.adapters.markdown_requests.source import FileSource
from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.adapters.memory.queue import MemoryStore
from aiflow.adapters.memory.requests import MemoryRequests
from aiflow.adapters.memory.runs import MemoryRuns
from aiflow.adapters.system_time import SystemTime
from aiflow.domain.agents.answers import Role
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.details import Detail
from aiflow.domain.lifecycle import RunState, TaskEvent, TaskStatus
from aiflow.domain.next_action import ActionKind, NextAction
from aiflow.domain.queue.delivery import FORCE, SET, STEP_ID, DeliveryWay, given_up, goal_of, is_about, way_of
from aiflow.domain.queue.runner import KEPT_AT_REST, Runner, RunnerStatus
from aiflow.domain.queue.task import Checkout, Task, TaskAction, TaskEnd
from aiflow.domain.request import RequestId
from aiflow.domain.run_summary import TaskRef
from aiflow.domain.runs.resume import Goal, ResumeMode
from aiflow.domain.runs.run import Run
from aiflow.errors import AiflowError, ConflictError, EnvironmentProblemError
from aiflow.messages import Texts
from aiflow.ports.tasks import Claimant
from aiflow.settings import settle
from aiflow.usecases.backlog.create import title_of
from aiflow.usecases.engine import Voice
from aiflow.usecases.runner.desk import Outage, Pace, RunnerNews, sit_down
from aiflow.usecases.runner.execute import execute_task
from aiflow.usecases.runner.finish import finish_task
from aiflow.usecases.runner.heartbeat import CutOff, Heartbeat, TaskHold
from aiflow.usecases.runner.reap import Reaper, bury, end_strays
from aiflow.usecases.runner.task_end import end_for_error, end_of_auto, end_of_run
from aiflow.usecases.runner.work_tasks import at_post
from engines import engine_of
from memory_engine import request_text
from run_builders import LIMITS, at, done, in_step, why
from waiting import wait_until

QUEUED = TaskStatus.QUEUED
HERE, THERE = Checkout("here", "/app"), Checkout("there", "/app")
SECRET = "sk-ant-0123456789"
AWAY = EnvironmentProblemError(reason_code="STORE_UNREACHABLE", endpoint="x", problem="refused")


class Wake:
    """Nobody to wake; what was told is kept."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def wait(self, seconds: float) -> tuple[str, ...]:
        time.sleep(min(seconds, 0.01))
        return ()

    def poke(self, namespace: str, task_id: str) -> int:
        self.told.append(task_id)
        return 1

    def close(self) -> None:
        pass


class Flaky:
    """A part of a store that can go away; `before` is called ahead of every call."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.is_away = False
        self.calls: list[str] = []
        self.before: dict[str, Callable[[], object]] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.real, name)
        if not callable(found):
            return found

        def call(*args: Any, **more: Any) -> Any:
            self.calls.append(name)
            self.before.pop(name, lambda: None)()
            if self.is_away:
                raise AWAY
            return found(*args, **more)

        return call


class NoLocks:
    """Nobody runs here."""

    def reclaim(self) -> list[object]:
        return []

    def held(self) -> tuple[dict[str, object], None]:
        return {}, None


class Scene:
    """One runner, the store in memory, and what it told."""

    def __init__(self, timeout_seconds: float = 60.0, poll_seconds: float = 0.01) -> None:
        self.store, self.journal, self.wake = MemoryStore(), MemoryJournal(), Wake()
        self.queue, self.records = Flaky(self.store.queue("app")), Flaky(self.store.runners("app"))
        self.requests = MemoryRequests()
        self.news: list[RunnerNews] = []
        self.asked = StopRequest.NONE
        self.now = at(60)
        used: dict[str, Any] = {
            "journal": self.journal,
            "time": SystemTime(lambda: self.now),
            "settings": settle({}),
            "locks": NoLocks(),
            "runs": MemoryRuns(),
            "source": FileSource(self.requests),
            "mask": lambda text: text.replace(SECRET, "***"),
        }
        engine = engine_of(Voice(Texts("en")), **used)
        self.desk = sit_down(
            engine,
            self.runner("me"),
            Pace(poll_seconds, timeout_seconds),
            queue=cast(Any, self.queue),
            runners=cast(Any, self.records),
            wake=self.wake,
            auto_records=cast(Any, None),
            new_task_id=lambda _now: "TASK-NEW",
            asked=lambda: self.asked,
            tell=self.news.append,
        )
        self.heartbeat = Heartbeat(self.desk)

    def runner(self, runner_id: str, checkout: Checkout = HERE, **more: Any) -> Runner:
        return Runner("app", runner_id, checkout, at(0), at(0), **more)

    def add(self, task_id: str = "T-1", request_id: str = "RQ-1", **more: Any) -> Task:
        fields: dict[str, Any] = {"action": TaskAction.START, "checkout": HERE} | more
        prompt = fields.pop("prompt", "")
        task = Task("app", task_id, request_id=request_id, created_at=at(0), updated_at=at(0), place_at=at(0), **fields)
        return cast(Task, self.queue.real.enqueue(task, prompt))

    def claim(self, runner_id: str = "me", checkout: Checkout = HERE) -> Task:
        claimed = self.queue.real.claim(Claimant(runner_id, checkout), self.now)
        assert claimed is not None
        return cast(Task, claimed)

    def task(self, task_id: str = "T-1") -> Task:
        found = self.queue.real.get(task_id)
        assert found is not None
        return cast(Task, found)

    @property
    def record(self) -> Runner:
        return next(each for each in self.store.runners("app").all() if each.runner_id == "me")

    def told(self) -> list[str]:
        return [news.kind.value for news in self.news]

    def refusals(self) -> list[tuple[str, object]]:
        lines = [entry for entry in self.journal.entries if entry.reason_code == "LOCK_MISMATCH"]
        return [(entry.kind.value, entry.data["task_id"]) for entry in lines]


# --- the heartbeat ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("QUE-7")
def test_it_beats_all_through_a_task_and_says_what_it_has_at_work() -> None:
    scene = Scene()
    scene.add()
    scene.heartbeat.start()
    assert (scene.record.beats, scene.record.task_id, str(scene.record.status)) == (1, None, "running")
    scene.heartbeat.take(scene.claim())
    wait_until(lambda: scene.record.task_id == "T-1" and scene.record.beats > 5)
    scene.heartbeat.say_stopped()
    wait_until(lambda: str(scene.record.status) == "stopped")
    assert scene.record.task_id == "T-1"  # it still finishes it
    scene.heartbeat.put_down()
    wait_until(lambda: scene.record.is_at_rest)
    scene.heartbeat.close()
    beats = scene.record.beats
    time.sleep(0.05)
    assert scene.record.beats == beats


@pytest.mark.spec("QUE-7", "QUE-9")
def test_its_record_says_why_it_takes_nothing_for_as_long_as_that_is_so() -> None:
    scene = Scene(poll_seconds=10)  # what is news does not wait for the next beat
    scene.heartbeat.start()
    scene.heartbeat.hold_up("AGENT_NOT_FOUND: no claude")
    wait_until(lambda: scene.record.held_up == "AGENT_NOT_FOUND: no claude")
    scene.heartbeat.hold_up(None)
    wait_until(lambda: scene.record.held_up is None)
    scene.heartbeat.hold_up("AGENT_NOT_FOUND: no claude")
    scene.heartbeat.close()
    assert scene.record.held_up is None


@pytest.mark.spec("QUE-7")
def test_the_run_is_named_in_the_task_as_soon_as_it_is_known() -> None:
    scene = Scene()
    scene.add()
    scene.heartbeat.start()
    scene.heartbeat.take(scene.claim())
    scene.heartbeat.note_run(in_step())
    wait_until(lambda: scene.task().run_id == in_step().run_id)
    scene.heartbeat.close()


@pytest.mark.spec("QUE-8", "QUE-6")
@pytest.mark.parametrize(
    ("what", "cut_off"),
    [
        ("cancel", CutOff.CANCELLED),
        ("end_lost", CutOff.LOST),
        ("remove", CutOff.LOST),
        ("claimed anew", CutOff.LOST),
    ],
)
def test_what_becomes_of_its_task_is_seen(what: str, cut_off: CutOff) -> None:
    scene = Scene()
    scene.add()
    scene.heartbeat.start()
    task = scene.claim()
    hold = scene.heartbeat.take(task)
    wait_until(lambda: scene.record.beats > 2)
    assert scene.heartbeat.why_end() is None
    if what == "cancel":
        scene.queue.real.cancel("T-1", "why", scene.now)
    elif what == "end_lost":
        scene.queue.real.end_lost(task, TaskEnd(TaskEvent.FAILED, "RUNNER_LOST"), scene.now)
    elif what == "remove":
        scene.store.tasks.clear()
    else:
        scene.store.tasks["app", "T-1"] = replace(task, claim_token="another")
    wait_until(lambda: scene.heartbeat.why_end() is cut_off)
    assert hold.cut_off is cut_off
    scene.heartbeat.close()


@pytest.mark.timing
@pytest.mark.spec("QUE-10")
def test_without_the_store_the_work_goes_on_until_three_quarters_of_the_timeout(
    allowed: Callable[[float], float],
) -> None:
    scene = Scene(timeout_seconds=2.0)
    scene.add()
    scene.heartbeat.start()
    scene.heartbeat.take(scene.claim())
    wait_until(lambda: scene.record.task_id == "T-1")
    scene.records.is_away = True
    began = time.monotonic()
    assert scene.heartbeat.why_end() is None
    wait_until(lambda: scene.heartbeat.why_end() is not None)
    assert 1.2 <= time.monotonic() - began <= allowed(1.8)
    assert scene.heartbeat.why_end() is CutOff.STORE_AWAY
    assert scene.records.calls.count("save") > 5  # it went on trying
    scene.records.is_away = False
    beats = scene.record.beats
    wait_until(lambda: scene.record.beats > beats)
    assert scene.heartbeat.why_end() is CutOff.STORE_AWAY  # what has ended does not begin again
    scene.heartbeat.close()
    # Each was said as it happened, and once.
    assert scene.told() == ["store_away", "cut_off", "store_back"]
    doctor = NextAction(ActionKind.DOCTOR, options=(("full", ""),))
    assert scene.news[0].facts == {"problem": "refused", "command": doctor}
    assert (scene.news[1].task, scene.news[1].facts) == (scene.task(), {"seconds": "2"})


@pytest.mark.spec("QUE-10")
def test_whoever_misses_the_store_it_is_told_once_and_over_when_all_are_answered() -> None:
    outage = Outage(SystemTime().mutex())
    assert [outage.begins("work"), outage.begins("heartbeat"), outage.begins("work")] == [True, False, False]
    assert [outage.ends("work"), outage.ends("work"), outage.ends("heartbeat")] == [False, False, True]
    assert not outage.ends("heartbeat")
    scene = Scene()
    here = EnvironmentProblemError(reason_code="STORE_UNREACHABLE", problem="x", start="aiflow queue store start")
    scene.desk.say_away("work", here)
    scene.desk.say_away("work", EnvironmentProblemError(reason_code="STORE_REFUSED", problem="no"))
    assert [each.facts["command"] for each in scene.news] == ["aiflow queue store start"]


@pytest.mark.spec("QUE-10")
@pytest.mark.parametrize("reason_code", ["STORE_REFUSED", "STORE_CREDENTIALS_MISSING", "DISK_FULL"])
def test_a_heartbeat_that_the_store_does_not_take_is_told_whatever_the_reason(reason_code: str) -> None:
    scene = Scene()
    scene.desk.say_away("heartbeat", EnvironmentProblemError(reason_code=reason_code, problem="expired"))
    assert [(each.reason_code, each.facts["problem"]) for each in scene.news] == [(reason_code, "expired")]


@pytest.mark.spec("QUE-10")
def test_a_store_that_comes_back_in_time_ends_nothing() -> None:
    scene = Scene(timeout_seconds=4.0)
    scene.add()
    scene.heartbeat.start()
    scene.heartbeat.take(scene.claim())
    scene.records.is_away = scene.queue.is_away = True
    time.sleep(0.3)
    scene.records.is_away = scene.queue.is_away = False
    beats = scene.record.beats
    wait_until(lambda: scene.record.beats > beats + 2)
    assert scene.heartbeat.why_end() is None
    scene.heartbeat.close()


@pytest.mark.spec("QUE-7")
def test_a_defect_in_one_beat_does_not_end_the_heart() -> None:
    scene = Scene()
    scene.heartbeat.start()

    def broken() -> None:
        raise RuntimeError("a defect")

    scene.records.before["save"] = broken
    wait_until(lambda: "save" not in scene.records.before)
    beats = scene.record.beats
    wait_until(lambda: scene.record.beats > beats)
    scene.heartbeat.close()


def test_a_stop_now_ends_the_task_and_a_stop_after_it_only_says_so() -> None:
    scene = Scene()
    scene.add()
    scene.heartbeat.start()
    scene.heartbeat.take(scene.claim())
    scene.asked = StopRequest.AFTER_RUN
    assert scene.heartbeat.why_end() is None
    wait_until(lambda: str(scene.record.status) == "stopped")
    scene.asked = StopRequest.NOW
    assert scene.heartbeat.why_end() is CutOff.STOPPED
    scene.heartbeat.close()
    assert scene.record.task_id == "T-1"  # it was not put down: whoever reaps finds it


# --- how a task ends -------------------------------------------------------------------------------------------------


def finished(scene: Scene, end: TaskEnd, cut_off: CutOff | None = None) -> Task | None:
    hold = TaskHold(scene.claim())
    hold.cut_off = cut_off
    return finish_task(scene.desk, scene.heartbeat, hold, end)


@pytest.mark.spec("QUE-4")
@pytest.mark.parametrize(
    ("run", "status", "message"),
    [
        (done(), "COMPLETE", None),
        (replace(done(), accepted_as="abc"), "COMPLETE", None),
        (
            replace(in_step(), state=RunState.NEEDS_INPUT, error=why("UNIT_TEST_FAILED", "2\nfailed")),
            "ERROR",
            "2 failed",
        ),
        (replace(in_step(), state=RunState.FAILED, error=why("INTERNAL_ERROR", "KeyError")), "ERROR", "KeyError"),
        (replace(in_step(), state=RunState.NEEDS_INPUT, error=why("CANCELLED", "")), "CANCELLED", ""),
    ],
)
def test_a_task_ends_as_its_run_does(run: Run, status: str, message: str | None) -> None:
    scene = Scene()
    scene.add()
    hold = TaskHold(scene.claim())
    ended = finish_task(scene.desk, scene.heartbeat, hold, end_of_run(hold, run))
    assert ended is not None
    assert (ended.status, ended.run_id, ended.successor) == (status, run.run_id, None)
    expected = None if message is None else f"{run.error.reason_code}: {message}" if run.error else ""
    assert ended.error_message == (expected.removesuffix(": ") if expected else None)
    assert scene.told() == ["ended"]


@pytest.mark.spec("QUE-7", "QUE-10")
@pytest.mark.parametrize("cut_off", [CutOff.STOPPED, CutOff.STORE_AWAY])
def test_what_our_own_end_cut_off_goes_on_in_another_task_at_the_same_place(cut_off: CutOff) -> None:
    scene = Scene()
    scene.add(action=TaskAction.PROMPT, checkout=None, prompt="Say hello. " * 100)
    hold = TaskHold(scene.claim())
    hold.cut_off = cut_off
    run = replace(in_step(), state=RunState.NEEDS_INPUT, error=why(cut_off.value, ""))
    finish_task(scene.desk, scene.heartbeat, hold, end_of_run(hold, run))
    ended, following = scene.task(), scene.task("T-1.2")
    assert (ended.status, ended.error_message, ended.successor) == ("ERROR", cut_off.value, "T-1.2")
    assert (following.status, following.predecessor, following.place_at) == ("QUEUED", "T-1", ended.place_at)
    assert (following.checkout, following.run_id) == (HERE, run.run_id)  # its files are here now
    assert scene.queue.real.prompt(following) == "Say hello. " * 100
    assert scene.wake.told == ["T-1.2"]


@pytest.mark.spec("QUE-6")
@pytest.mark.parametrize("is_seen", [True, False])
def test_what_is_no_longer_ours_is_left_alone_and_recorded(is_seen: bool) -> None:
    scene = Scene()
    scene.add()
    hold = TaskHold(scene.claim())
    lost = TaskEnd(TaskEvent.FAILED, "RUNNER_LOST", None, "T-1.2")
    scene.queue.real.end_lost(hold.task, lost, scene.now)
    hold.cut_off = CutOff.LOST if is_seen else None
    hold.found = scene.task() if is_seen else None
    before = scene.task()
    assert finish_task(scene.desk, scene.heartbeat, hold, TaskEnd(TaskEvent.COMPLETED)) is None
    assert scene.task() == before
    assert scene.refusals() == [("refusal", "T-1")]
    assert scene.journal.entries[0].data["dropped"] == "completed"
    assert scene.told() == ["lost"]
    assert ("finish" in scene.queue.calls) is not is_seen


@pytest.mark.spec("QUE-6", "QUE-8")
@pytest.mark.parametrize("is_seen", [True, False])
def test_a_cancelled_task_stays_cancelled_whatever_its_run_came_to(is_seen: bool) -> None:
    scene = Scene()
    scene.add()
    hold = TaskHold(scene.claim())
    scene.queue.real.cancel("T-1", "not needed", scene.now)
    if is_seen:
        hold.found, hold.cut_off = scene.task(), CutOff.CANCELLED
    assert finish_task(scene.desk, scene.heartbeat, hold, TaskEnd(TaskEvent.COMPLETED)) is None
    assert (scene.task().status, scene.refusals()) == ("CANCELLED", [("refusal", "T-1")])
    [entry] = scene.journal.entries
    assert (entry.data["dropped"], entry.data["status"]) == ("completed", "CANCELLED")
    assert scene.told() == ["lost"]


@pytest.mark.spec("QUE-8")
def test_an_end_that_obeys_a_cancel_drops_nothing() -> None:
    scene = Scene()
    scene.add()
    hold = TaskHold(scene.claim())
    scene.queue.real.cancel("T-1", "not needed", scene.now)
    hold.found, hold.cut_off = scene.task(), CutOff.CANCELLED
    end = end_for_error(hold, RuntimeError("its agent was ended"), str)
    assert finish_task(scene.desk, scene.heartbeat, hold, end) == scene.task()
    assert (scene.refusals(), scene.told()) == ([], ["ended"])


@pytest.mark.spec("QUE-10")
def test_an_end_waits_for_the_store_and_is_written_once_it_is_back() -> None:
    scene = Scene()
    scene.add()
    task = scene.claim()
    scene.queue.is_away = True

    def come_back() -> None:
        scene.queue.is_away = scene.queue.calls.count("finish") < 4
        scene.queue.before["finish"] = come_back

    scene.queue.before["finish"] = come_back
    finish_task(scene.desk, scene.heartbeat, TaskHold(task), TaskEnd(TaskEvent.COMPLETED))
    assert (scene.task().status, scene.told()) == ("COMPLETE", ["store_away", "store_back", "ended"])


@pytest.mark.spec("QUE-7", "QUE-10")
@pytest.mark.parametrize("pace", [Pace(0.01, 0.4), Pace(0.01, 600, leave_seconds=0.3)])
def test_who_has_to_leave_without_the_store_leaves_the_task_to_a_reaper(pace: Pace) -> None:
    scene = Scene()
    scene.desk = replace(scene.desk, pace=pace)
    scene.heartbeat = Heartbeat(scene.desk)
    scene.add()
    task = scene.claim()
    scene.queue.is_away, scene.asked = True, StopRequest.NOW
    with pytest.raises(AiflowError, match="STORE_UNREACHABLE"):
        finish_task(scene.desk, scene.heartbeat, TaskHold(task), TaskEnd(TaskEvent.COMPLETED))
    assert scene.task().status is TaskStatus.RUNNING


def test_a_successor_gives_way_to_a_live_task_of_its_request() -> None:
    scene = Scene()
    scene.add()
    hold = TaskHold(scene.claim())
    hold.cut_off = CutOff.STOPPED
    scene.queue.before["enqueue"] = lambda: scene.add("T-9")
    finish_task(scene.desk, scene.heartbeat, hold, end_for_error(hold, AWAY, str))
    assert (scene.queue.real.get("T-1.2"), scene.wake.told) == (None, [])


def test_every_error_is_an_end_with_its_reason() -> None:
    scene = Scene()
    scene.add()
    hold = TaskHold(scene.claim())
    assert end_for_error(hold, KeyError("x"), str).error_message == "INTERNAL_ERROR: KeyError: 'x'"
    detail = Detail("refused.replaced", (("run_id", "RUN-1"), ("newer", "RUN-2")))
    told = end_for_error(hold, ConflictError(reason_code="RUN_NOT_RESUMABLE", detail=detail), str).error_message
    assert told == "RUN_NOT_RESUMABLE: RUN-1 was replaced by RUN-2"
    assert (end_for_error(hold, OSError(28, "full"), str).error_message or "").startswith("DISK_FULL")
    assert end_for_error(hold, AiflowError(reason_code="CANCELLED"), str).event is TaskEvent.CANCELLED
    assert end_of_auto(hold, "AUTO_NOTHING_RUNNABLE").event is TaskEvent.COMPLETED
    assert end_of_auto(hold, "DOCTOR_FAILED").error_message == "DOCTOR_FAILED"


@pytest.mark.spec("QUE-4")
@pytest.mark.parametrize(
    "error",
    [
        EnvironmentProblemError(reason_code="STORE_REFUSED", problem=f"key {SECRET} is unknown"),
        AiflowError(reason_code="BAD_INPUT", detail=f"--token {SECRET}"),
        AiflowError(reason_code="IO_ERROR", path=f"/home/{SECRET}"),
        RuntimeError(f"a defect with {SECRET}"),
    ],
    ids=["problem", "detail", "path", "defect"],
)
def test_what_went_wrong_is_told_to_everybody_without_the_secrets_in_it(error: Exception) -> None:
    def fail() -> None:
        raise error

    scene = Scene()
    scene.add()
    scene.queue.before["prompt"] = fail
    end = execute_task(scene.desk, scene.heartbeat, TaskHold(scene.claim()))
    assert "***" in (end.error_message or "")
    assert SECRET not in (end.error_message or "")


# --- an eye on the others --------------------------------------------------------------------------------------------


class Clock:
    """Our own clock, in seconds."""

    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def dead(scene: Scene, **more: Any) -> tuple[Runner, Task]:
    """A runner with a task, which has stopped beating."""
    scene.add(**more)
    task = scene.claim("gone", THERE if more.get("checkout") == THERE else HERE)
    runner = scene.runner("gone", more.get("checkout") or HERE, beats=7, task_id=task.task_id)
    scene.records.real.save(runner)
    return runner, task


@pytest.mark.spec("QUE-7")
def test_a_runner_is_lost_by_our_own_clock_alone() -> None:
    scene, clock = Scene(timeout_seconds=120), Clock()
    runner, _task = dead(scene)
    reaper = Reaper(scene.desk, clock)
    scene.now = at(60) + timedelta(days=3)  # the wall clock jumps: nobody is older for that
    for _ in range(12):
        reaper.look()
        clock.seconds += 9.9
    assert scene.task().status is TaskStatus.RUNNING
    scene.records.real.save(replace(runner, beats=8))
    for _ in range(12):
        reaper.look()
        clock.seconds += 9.9
    assert scene.task().status is TaskStatus.RUNNING
    clock.seconds += 10
    reaper.look()
    task, following = scene.task(), scene.task("T-1.2")
    assert (task.status, task.reason_code, task.successor) == ("ERROR", "RUNNER_LOST", "T-1.2")
    assert (following.status, following.predecessor) == ("QUEUED", "T-1")
    assert [each.is_at_rest for each in scene.records.real.all()] == [True]
    [entry] = scene.journal.entries
    assert (entry.kind, entry.reason_code, entry.data["runner_id"]) == ("recovery", "RUNNER_LOST", "gone")
    assert scene.told() == ["reaped"]


@pytest.mark.spec("QUE-7")
def test_whoever_slept_begins_to_count_anew() -> None:
    scene, clock = Scene(timeout_seconds=120), Clock()
    dead(scene)
    reaper = Reaper(scene.desk, clock)
    reaper.look()
    clock.seconds += 10_000
    reaper.look()
    clock.seconds += 50
    reaper.look()
    assert scene.task().status is TaskStatus.RUNNING


@pytest.mark.spec("QUE-7")
def test_a_look_that_took_long_makes_nobody_older() -> None:
    scene, clock = Scene(timeout_seconds=120), Clock()
    dead(scene)
    reaper = Reaper(scene.desk, clock)

    def slowly() -> None:
        clock.seconds += 30

    for _ in range(4):
        scene.records.before["all"] = slowly
        reaper.look()
        clock.seconds += 10
    assert scene.task().status is TaskStatus.RUNNING


@pytest.mark.spec("QUE-7")
def test_a_process_that_is_provably_gone_is_lost_at_once() -> None:
    scene = Scene(timeout_seconds=120)
    dead(scene)
    scene.records.real.save(scene.runner("alive", beats=1))
    desk = replace(scene.desk, is_gone=lambda runner: runner.runner_id == "gone")
    Reaper(desk, Clock()).look()
    assert scene.task().reason_code == "RUNNER_LOST"
    assert {each.runner_id: each.is_at_rest for each in scene.records.real.all()} == {"gone": True, "alive": False}


@pytest.mark.spec("QUE-7")
def test_a_task_that_cannot_be_ended_keeps_nobody_from_the_others() -> None:
    def refuse() -> None:
        raise EnvironmentProblemError(reason_code="STORE_REFUSED", problem="too large")

    scene = Scene()
    dead(scene)
    scene.add("T-2", "RQ-2")
    scene.claim("gone-2")
    scene.records.real.save(scene.runner("gone-2", task_id="T-2"))
    scene.queue.before["end_lost"] = refuse
    with pytest.raises(EnvironmentProblemError, match="STORE_REFUSED"):
        Reaper(replace(scene.desk, is_gone=lambda _runner: True), Clock()).look()
    ended = [scene.task(task_id).reason_code for task_id in ("T-1", "T-2")]
    assert ended == [None, "RUNNER_LOST"]


@pytest.mark.spec("QUE-7")
def test_a_poll_longer_than_the_timeout_does_not_keep_the_dead_alive() -> None:
    scene = Scene(timeout_seconds=0.3, poll_seconds=60)
    dead(scene)
    with at_post(scene.desk, Reaper(scene.desk)):
        wait_until(lambda: scene.task().reason_code == "RUNNER_LOST")


@pytest.mark.spec("QUE-7")
def test_a_look_that_fails_is_not_the_last_one() -> None:
    scene = Scene()
    dead(scene)

    def full() -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    scene.records.before["all"] = full
    desk = replace(scene.desk, is_gone=lambda runner: runner.runner_id == "gone")
    with at_post(desk, Reaper(desk)):
        wait_until(lambda: scene.task().reason_code == "RUNNER_LOST")


@pytest.mark.spec("QUE-7")
def test_a_claim_that_arrived_behind_its_runners_burial_is_not_running_for_ever() -> None:
    scene = Scene()
    scene.records.real.save(scene.runner("rests", status=RunnerStatus.STOPPED))
    scene.records.real.save(scene.runner("works"))
    for number, name in enumerate(("rests", "works"), 1):
        scene.add(f"T-{number}", f"RQ-{number}")
        scene.claim(name)
    assert end_strays(scene.desk) == frozenset()
    assert (scene.task("T-1").reason_code, scene.task("T-1.2").status) == ("RUNNER_LOST", "QUEUED")
    assert scene.task("T-2").status is TaskStatus.RUNNING


def watch(reaper: Reaper, clock: Clock, seconds: float) -> None:
    """Let a reaper look for some time, as often as a runner does."""
    for _ in range(round(seconds / 10)):
        reaper.look()
        clock.seconds += 10
    reaper.look()


@pytest.mark.spec("QUE-7")
def test_a_task_whose_runner_was_forgotten_is_not_running_for_ever() -> None:
    scene, clock = Scene(timeout_seconds=120), Clock()
    scene.records.real.save(scene.runner("works", task_id="T-2"))
    for number, name in enumerate(("forgotten", "works", "me"), 1):
        scene.add(f"T-{number}", f"RQ-{number}")
        scene.claim(name)
    scene.records.real.save(scene.desk.runner)
    scene.add("T-4", "RQ-4")
    # A task with the seed's fields alone, as another program claims it.
    scene.store.tasks["app", "T-4"] = replace(scene.claim("foreign"), claim_token=None, fence=0)
    reaper = Reaper(scene.desk, clock)
    strays = end_strays(scene.desk)
    assert strays == {"forgotten", "foreign"}
    reaper.suspect(strays)
    watch(reaper, clock, 110)
    assert {scene.task(f"T-{number}").status for number in (1, 2, 3, 4)} == {TaskStatus.RUNNING}
    scene.records.real.save(scene.runner("works", task_id="T-2", beats=1))
    watch(reaper, clock, 20)
    for number, name in ((1, "forgotten"), (4, "foreign")):
        assert scene.task(f"T-{number}").error_message == f"RUNNER_LOST: {name}"
        assert scene.task(f"T-{number}.2").status is TaskStatus.QUEUED
    assert {scene.task(f"T-{number}").status for number in (2, 3)} == {TaskStatus.RUNNING}
    assert {each.runner_id for each in scene.records.real.all()} == {"works", "me"}
    assert end_strays(scene.desk) == frozenset()


@pytest.mark.spec("QUE-7")
def test_who_had_no_record_and_shows_up_again_is_judged_by_that() -> None:
    scene, clock = Scene(timeout_seconds=120), Clock()
    scene.add()
    scene.claim("back")
    reaper = Reaper(scene.desk, clock)
    reaper.suspect(end_strays(scene.desk))
    watch(reaper, clock, 100)
    for beats in range(1, 20):
        scene.records.real.save(scene.runner("back", task_id="T-1", beats=beats))
        watch(reaper, clock, 20)
    assert scene.task().status is TaskStatus.RUNNING


@pytest.mark.spec("QUE-7", "QUE-11")
@pytest.mark.parametrize(("is_begun_here", "where"), [(True, HERE), (False, None)])
def test_a_prompt_of_a_forgotten_runner_goes_on_where_it_was_begun_if_that_is_known(
    is_begun_here: bool, where: Checkout | None
) -> None:
    scene, clock = Scene(timeout_seconds=120), Clock()
    scene.add(action=TaskAction.PROMPT, checkout=None, prompt="Say hello")
    scene.claim("forgotten", THERE)
    if is_begun_here:
        scene.requests.texts[RequestId("RQ-1")] = request_text()
    reaper = Reaper(scene.desk, clock)
    reaper.suspect(end_strays(scene.desk))
    watch(reaper, clock, 130)
    following = scene.task("T-1.2")
    assert (scene.task().reason_code, scene.task().successor) == ("RUNNER_LOST", "T-1.2")
    assert (following.status, following.checkout, scene.queue.real.prompt(following)) == (QUEUED, where, "Say hello")


@pytest.mark.spec("QUE-7", "QUE-11")
def test_a_prompt_of_a_runner_whose_record_names_no_host_is_for_anybody() -> None:
    """A record with the seed's fields alone: no runner of ours would ever be in that checkout."""
    scene = Scene()
    scene.add(action=TaskAction.PROMPT, checkout=None, prompt="Say hello")
    scene.claim("foreign")
    bury(scene.desk, scene.runner("foreign", Checkout("", "/srv/app"), task_id="T-1"))
    assert (scene.task("T-1.2").status, scene.task("T-1.2").checkout) == (QUEUED, None)


@pytest.mark.spec("QUE-11", "QUE-7")
def test_a_lost_task_goes_on_where_its_runs_files_are() -> None:
    scene = Scene()
    scene.add(action=TaskAction.PROMPT, checkout=None, prompt="Say hello")
    scene.claim("gone", THERE)
    runner = scene.runner("gone", THERE, task_id="T-1")
    bury(scene.desk, runner)
    assert scene.task("T-1.2").checkout == THERE


def test_a_record_that_names_an_older_task_does_not_hide_the_one_at_work() -> None:
    scene = Scene()
    runner, task = dead(scene)
    scene.queue.real.finish(task, TaskEnd(TaskEvent.COMPLETED), scene.now)
    scene.add("T-2", "RQ-2")
    scene.claim("gone")
    bury(scene.desk, runner)
    assert (scene.task("T-1").status, scene.task("T-2").reason_code) == ("COMPLETE", "RUNNER_LOST")
    assert scene.task("T-2.2").status is TaskStatus.QUEUED


@pytest.mark.spec("QUE-7")
def test_what_a_killed_reaper_left_half_done_the_next_one_finishes() -> None:
    scene = Scene()
    runner, task = dead(scene)
    scene.queue.real.end_lost(task, TaskEnd(TaskEvent.FAILED, "RUNNER_LOST", None, "T-1.2"), scene.now)
    bury(scene.desk, runner)
    assert scene.task("T-1.2").predecessor == "T-1"
    assert scene.records.real.all()[0].is_at_rest
    bury(scene.desk, runner)
    assert scene.journal.entries == []  # the one who ended it has recorded it


@pytest.mark.spec("RUN-14")
def test_a_task_is_not_delivered_again_for_ever() -> None:
    scene = Scene()
    for number in range(1, 4):
        task_id = "T-1" if number == 1 else f"T-1.{number}"
        if number == 1:
            scene.add()
        scene.claim("gone")
        bury(scene.desk, scene.runner("gone", task_id=task_id))
    assert (scene.task("T-1.3").reason_code, scene.task("T-1.3").successor) == ("RUNNER_LOST", None)
    assert scene.task("T-1.3").losses == 2


@pytest.mark.spec("QUE-7")
def test_who_could_not_say_goodbye_is_put_to_rest_by_its_heartbeat() -> None:
    scene, clock = Scene(timeout_seconds=120), Clock()
    scene.records.real.save(scene.runner("gone", beats=7))
    reaper = Reaper(scene.desk, clock)
    for _ in range(15):
        reaper.look()
        clock.seconds += 9.9
    assert [each.is_at_rest for each in scene.records.real.all()] == [True]
    assert scene.told() == []


def test_somebody_who_moved_meanwhile_is_left_alone() -> None:
    scene = Scene()
    runner, task = dead(scene)
    scene.queue.before["end_lost"] = lambda: scene.queue.real.finish(task, TaskEnd(TaskEvent.COMPLETED), scene.now)
    scene.records.real.save(replace(runner, beats=8, task_id=None))
    bury(scene.desk, runner)
    assert scene.task().status is TaskStatus.COMPLETE
    assert not scene.records.real.all()[0].is_at_rest
    assert scene.journal.entries == []


@pytest.mark.parametrize(("days", "is_kept"), [(6, True), (8, False)])
def test_who_has_been_at_rest_for_a_week_is_forgotten(days: float, is_kept: bool) -> None:
    scene = Scene()
    scene.records.real.save(replace(scene.runner("old"), status=RunnerStatus.STOPPED))
    scene.now = at(0) + timedelta(days=days)
    Reaper(scene.desk, Clock()).look()
    assert bool(scene.records.real.all()) is is_kept


def test_of_many_at_rest_the_last_are_kept() -> None:
    """A terminal is a runner for as long as its run takes: those of a busy week would be read at every look."""
    scene, many = Scene(), KEPT_AT_REST + 5
    for number in range(many):
        runner = scene.runner(f"old-{number:02d}", status=RunnerStatus.STOPPED)
        scene.records.real.save(replace(runner, last_heartbeat=at(0) + timedelta(seconds=number)))
    scene.now = at(0) + timedelta(minutes=59)
    Reaper(scene.desk, Clock()).look()
    assert len(scene.records.real.all()) == many
    scene.now = at(0) + timedelta(minutes=62)
    Reaper(scene.desk, Clock()).look()
    assert sorted(each.runner_id for each in scene.records.real.all()) == [f"old-{n:02d}" for n in range(5, many)]


def test_a_store_that_lets_nobody_be_forgotten_keeps_nobody_from_the_dead() -> None:
    def refuse() -> None:
        raise EnvironmentProblemError(reason_code="STORE_REFUSED", problem="DeleteItem")

    scene = Scene()
    dead(scene)
    scene.records.real.save(scene.runner("a-old", status=RunnerStatus.STOPPED))
    scene.now = at(0) + timedelta(days=8)
    scene.records.before["forget"] = refuse
    with pytest.raises(EnvironmentProblemError, match="STORE_REFUSED"):
        Reaper(replace(scene.desk, is_gone=lambda runner: runner.runner_id == "gone"), Clock()).look()
    assert scene.task().reason_code == "RUNNER_LOST"


# --- where another delivery goes on ----------------------------------------------------------------------------------


def delivery(number: int = 2, action: TaskAction = TaskAction.START, since: float = 0, **more: Any) -> Task:
    predecessor = f"T-1.{number - 1}" if number > 1 else None
    return Task("app", f"T-1.{number}", action, "RQ-1", at(0), at(0), at(since), predecessor=predecessor, **more)


def held_by(task_id: str, run: Run) -> Run:
    return replace(run, task=TaskRef("app", task_id))


CUT = replace(in_step(), state=RunState.NEEDS_INPUT, error=why("RUNNER_STOPPED"))
STOPPED = replace(in_step(), state=RunState.NEEDS_INPUT, error=why("UNIT_TEST_FAILED"))
LATER = 100_000


@pytest.mark.spec("QUE-7")
@pytest.mark.parametrize(
    ("task", "run", "is_ready", "way"),
    [
        (delivery(1), in_step(), False, DeliveryWay.BEGIN),
        (delivery(), None, True, DeliveryWay.BEGIN),
        (delivery(), in_step(), False, DeliveryWay.RECOVER),
        (delivery(), CUT, False, DeliveryWay.RESUME),
        (delivery(action=TaskAction.RETRY_STEP), CUT, False, DeliveryWay.RESUME),
        (delivery(), done(), False, DeliveryWay.OVER),
        (delivery(), done(), True, DeliveryWay.BEGIN),
        # What happened before the task was made is none of its doing.
        (delivery(since=LATER), done(), False, DeliveryWay.BEGIN),
        (delivery(action=TaskAction.RESUME, since=LATER), CUT, False, DeliveryWay.BEGIN),
        # A clock elsewhere may be ahead: a run that is named, or of this very prompt, is known all the same.
        (delivery(since=LATER, run_id=CUT.run_id), CUT, False, DeliveryWay.RESUME),
        (delivery(action=TaskAction.PROMPT, since=LATER), CUT, False, DeliveryWay.RESUME),
        # Nor need the clock be asked where the run says whose it was: set back, it would let a step be done twice,
        # set forward, call a task done that nobody began.
        (delivery(action=TaskAction.RETRY_STEP, since=LATER), held_by("T-1", CUT), False, DeliveryWay.RESUME),
        (delivery(3, action=TaskAction.RETRY_STEP, since=LATER), held_by("T-1.2", STOPPED), False, DeliveryWay.OVER),
        (delivery(since=LATER), held_by("T-1", in_step()), False, DeliveryWay.RECOVER),
        (delivery(), held_by("T-0", done()), False, DeliveryWay.BEGIN),
        (delivery(action=TaskAction.RESUME), held_by("T-0", CUT), False, DeliveryWay.BEGIN),
    ],
)
def test_a_later_delivery_goes_on_with_what_an_earlier_one_left(
    task: Task, run: Run | None, is_ready: bool, way: DeliveryWay
) -> None:
    assert way_of(task, run, LIMITS, is_ready=is_ready) is way


@pytest.mark.spec("RUN-14", "QUE-7")
@pytest.mark.parametrize(
    ("calls", "calling", "way"),
    [
        (0, None, DeliveryWay.RESUME),
        (1, Role.IMPLEMENTER, DeliveryWay.RESUME),
        (2, Role.IMPLEMENTER, DeliveryWay.GIVE_UP),
        (2, None, DeliveryWay.RESUME),  # it was cut off in its tests: nobody's attempt
        (2, Role.QA, DeliveryWay.RESUME),
    ],
)
def test_no_delivery_goes_on_where_every_attempt_was_cut_off(
    calls: int, calling: Role | None, way: DeliveryWay
) -> None:
    cut = replace(CUT, visit=replace(CUT.visit, calls={"implementer": calls}, calling=calling))
    assert way_of(delivery(), cut, LIMITS, is_ready=False) is way
    why_not = given_up(cut, at(70)).error
    assert why_not is not None
    assert (why_not.reason_code, why_not.cause) == ("RETRY_LIMIT_EXCEEDED", "RUNNER_STOPPED")


OF_T1 = replace(in_step(), task=TaskRef("app", "T-1"))
OVER = {"status": TaskStatus.CANCELLED, "updated_at": at(-1)}


@pytest.mark.spec("QUE-6", "RUN-12")
@pytest.mark.parametrize(
    ("changes", "run", "is_so"),
    [
        # The run names its task; that, or what goes on with it, is what was cancelled.
        ({}, OF_T1, True),
        (OVER, OF_T1, True),
        ({"task_id": "T-1.3", "action": TaskAction.RESUME}, OF_T1, True),
        ({"action": TaskAction.AUTO_RUN, "request_id": ".auto-run"}, OF_T1, True),
        ({"namespace": "other", "run_id": "RUN-1"}, OF_T1, False),
        ({"checkout": THERE}, OF_T1, False),
        ({"checkout": None}, OF_T1, True),
        # A start that was queued since would go on with it.
        ({"task_id": "T-9"}, in_step(), True),
        ({"task_id": "T-9", "run_id": in_step().run_id}, OF_T1, True),
        ({"task_id": "T-9", "run_id": "RUN-1"}, OF_T1, False),
        ({"task_id": "T-9", "request_id": "RQ-9"}, OF_T1, False),
        ({"task_id": "T-9", "action": TaskAction.RESUME, "run_id": in_step().run_id}, OF_T1, False),
        ({"task_id": "T-9", **OVER}, OF_T1, False),
        ({"task_id": "T-9", **OVER, "updated_at": at(LATER)}, OF_T1, True),
    ],
)
def test_a_cancelled_task_is_about_the_run_it_had_in_its_hands(changes: dict[str, Any], run: Run, is_so: bool) -> None:
    task = Task("app", "T-1", TaskAction.START, "RQ-1", at(0), at(0), at(0), checkout=HERE)
    assert is_about(replace(task, **changes), run, HERE) is is_so


def test_a_tasks_options_are_the_persons_wish() -> None:
    task = delivery(1, TaskAction.RETRY_STEP, options={STEP_ID: "S02", FORCE: SET})
    assert goal_of(task) == Goal(ResumeMode.RETRY_STEP, "S02", is_forced=True)
    assert goal_of(delivery(1, TaskAction.RESUME)) == Goal(ResumeMode.RESUME)


@pytest.mark.spec("REQ-9")
@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Say hello", "Say hello"),
        ("\n\n  # Say   hello \n\nmore", "Say hello"),
        ("###\nSay hello", "Say hello"),
        ("Say\x1b[31m hello", "Say [31m hello"),
        ("x" * 200, "x" * 79 + "…"),
        ("\x00 \n", ""),
    ],
)
def test_a_prompts_title_is_its_first_line(prompt: str, title: str) -> None:
    assert title_of(prompt) == title
