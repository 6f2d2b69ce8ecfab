"""A runner from inside (QUE-5, QUE-7, QUE-10, LCK-7, RUN-11): the real engine, agents that answer at once, its loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from aiflow.adapters.memory.queue import MemoryStore
from aiflow.adapters.processes.runner_process import checkout_at, is_gone, new_runner
from aiflow.adapters.processes.wake_pipes import WakePipes
from aiflow.adapters.run_folders.auto_files import AutoFile
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.lifecycle import RunState
from aiflow.domain.lock import Lock
from aiflow.domain.queue.task import Task, TaskAction, auto_run_guard, prompt_request_id, successor_of
from aiflow.domain.request import RequestId
from aiflow.errors import AiflowError, EnvironmentProblemError
from aiflow.usecases.runner.desk import NewsKind, Pace, RunnerDesk, RunnerNews, sit_down
from aiflow.usecases.runner.recoveries import queue_recoveries
from aiflow.usecases.runner.work_tasks import work_tasks
from aiflow.wiring import now
from e2e.bench import Bench
from e2e.night import Night, broken, done, until_stopped
from waiting import wait_until


class Office:
    """A runner of the checkout, the queue in memory, and what it told; stops when its task list is over."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.night = Night(bench)
        self.store = MemoryStore()
        self.queue: Any = self.store.queue("app")
        self.news: list[RunnerNews] = []
        self.asked = StopRequest.NONE
        self.hear: Callable[[RunnerNews], None] = lambda _news: None
        self._number = 0

    def desk(self, **more: Any) -> RunnerDesk:
        engine = self.night.engine()
        runner = new_runner(str(self.bench.root), "app", now())
        made = sit_down(
            engine,
            runner,
            Pace(0.02, 60),
            queue=self.queue,
            runners=self.store.runners("app"),
            wake=WakePipes(str(self.bench.state / "wake"), "app", runner.runner_id),
            auto_records=AutoFile(self.bench.root),
            new_task_id=lambda _now: self.next_id("NEW"),
            asked=lambda: self.asked,
            is_gone=is_gone,
            tell=self._tell,
        )
        return replace(made, **more)

    def _tell(self, news: RunnerNews) -> None:
        self.news.append(news)
        self.hear(news)

    def next_id(self, name: str = "T") -> str:
        self._number += 1
        return f"{name}-{self._number}"

    def add(self, action: str = "start", request_id: str = "RQ-1", **more: Any) -> str:
        checkout = more.pop("checkout", checkout_at(str(self.bench.root)))
        request_id = auto_run_guard(checkout) if action == "auto_run" else request_id
        at = now()
        prompt = more.pop("prompt", "")
        task = Task("app", self.next_id(), TaskAction(action), request_id, at, at, at, checkout=checkout, **more)
        return str(self.queue.enqueue(task, prompt).task_id)

    def work(self, *, is_once: bool = True, **more: Any) -> int:
        return work_tasks(self.desk(**more), is_once=is_once)

    def task(self, task_id: str) -> Task:
        found = self.queue.get(task_id)
        assert isinstance(found, Task)
        return found

    @property
    def told(self) -> list[str]:
        return [news.kind.value for news in self.news]


@pytest.fixture
def office(bench: Bench) -> Office:
    """Give a runner's place of work."""
    return Office(bench)


@pytest.mark.spec("QUE-7")
def test_it_works_on_one_task_after_the_other_until_none_is_left(office: Office) -> None:
    office.bench.add_request("RQ-2")
    ids = [office.add(request_id="RQ-2"), office.add()]
    assert office.work() == 2
    assert [office.task(each).status for each in ids] == ["COMPLETE", "COMPLETE"]
    assert office.night.ran == ["RQ-2", "RQ-1"]
    assert office.told == ["started", *["claimed", "ended"] * 2, "stopped"]
    assert office.news[-1].facts == {"tasks": 2}


@pytest.mark.spec("QUE-4")
def test_a_defect_of_a_run_is_told_in_the_queue_without_the_secrets_in_it(office: Office) -> None:
    office.night.answers["RQ-1"] = broken
    task_id = office.add()
    office.work(engine=replace(office.night.engine(), mask=lambda text: text.replace("RQ-1", "***")))
    assert office.task(task_id).error_message == "INTERNAL_ERROR: RuntimeError: a defect in ***"


@pytest.mark.spec("QUE-7", "PRF-4")
def test_it_waits_for_work_and_says_so_once_and_a_stop_is_heard(office: Office) -> None:
    def hear(news: RunnerNews) -> None:
        if news.kind is NewsKind.ENDED:
            office.asked = StopRequest.AFTER_RUN

    office.hear = hear
    threading.Timer(0.3, office.add).start()
    assert office.work(is_once=False) == 1
    assert office.told == ["started", "waiting", "claimed", "ended", "stopped"]
    [record] = office.store.runners("app").all()
    assert record.is_at_rest


@pytest.mark.spec("QUE-7")
def test_a_stop_now_hands_the_task_on_and_the_next_one_resumes_it(office: Office) -> None:
    office.night.answers["RQ-1"] = until_stopped
    task_id = office.add()

    def hear(news: RunnerNews) -> None:
        if news.kind is NewsKind.CLAIMED:
            threading.Timer(0.5, lambda: setattr(office, "asked", StopRequest.NOW)).start()

    office.hear = hear
    office.work(is_once=False)
    assert (office.task(task_id).reason_code, office.task(f"{task_id}.2").status) == ("RUNNER_STOPPED", "QUEUED")
    office.asked, office.hear, office.night.answers = StopRequest.NONE, lambda _news: None, {}
    office.work()
    assert office.task(f"{task_id}.2").status == "COMPLETE"
    assert (len(office.bench.run_ids()), office.bench.stage()["state"]) == (1, "DONE")


@pytest.mark.spec("QUE-7")
def test_a_stop_that_comes_while_the_doctor_looks_takes_no_task(office: Office) -> None:
    class Locks:
        """The real ones, at which a runner looks before it claims."""

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def holder(self) -> Any:
            office.asked = StopRequest.AFTER_RUN
            return real.holder()

    task_id = office.add()
    engine = office.night.engine()
    real = engine.locks
    assert office.work(is_once=False, engine=replace(engine, locks=cast(Any, Locks()))) == 0
    assert office.task(task_id).status == "QUEUED"


def stopped_in(office: Office, call: AgentCall, should_stop: Callable[[], bool]) -> AgentReply:
    """Be in the middle of a call when the runner is stopped."""
    office.asked = StopRequest.NOW
    return until_stopped(call, should_stop)


@pytest.mark.spec("RUN-14", "RUN-4")
@pytest.mark.parametrize("action", ["start", "auto_run"])
def test_no_delivery_gives_a_role_more_attempts_than_a_visit_has(office: Office, action: str) -> None:
    """Runners that are stopped again and again would else pay for the same call for ever."""
    attempts: list[int] = []

    def stopped_in_it(call: AgentCall, should_stop: Callable[[], bool]) -> AgentReply:
        attempts.append(call.attempt)
        return stopped_in(office, call, should_stop)

    office.bench.add_request("RQ-2")
    office.night.answers["RQ-1"] = stopped_in_it
    task_id = office.add(action)
    for number in (1, 2):
        office.asked = StopRequest.NONE
        office.work(is_once=False)
        name = task_id if number == 1 else f"{task_id}.{number}"
        assert (office.task(name).reason_code, office.task(name).successor) == (
            "RUNNER_STOPPED",
            f"{task_id}.{number + 1}",
        )
    office.asked = StopRequest.NONE
    office.work()
    assert attempts == [1, 2]
    last = office.task(f"{task_id}.3")
    assert last.successor is None
    errors = office.bench.errors()
    assert (errors["reason_code"], errors["cause"]) == ("RETRY_LIMIT_EXCEEDED", "RUNNER_STOPPED")
    assert errors["suggested_next"]["command"] == "aiflow resume RQ-1"
    if action == "auto_run":
        assert (last.status, office.bench.stage("RQ-2")["state"]) == ("COMPLETE", "DONE")
    else:
        assert (last.status, last.reason_code) == ("ERROR", "RETRY_LIMIT_EXCEEDED")


@pytest.mark.spec("RUN-14", "RUN-4", "QUE-7")
def test_a_later_delivery_is_told_what_failed_before_and_has_one_attempt_less(office: Office) -> None:
    calls: list[tuple[int, list[str]]] = []

    def fail_then_stop(call: AgentCall, should_stop: Callable[[], bool]) -> AgentReply:
        calls.append((call.attempt, [each.reason_code for each in call.feedback]))
        return AgentReply(b"no answer") if len(calls) == 1 else stopped_in(office, call, should_stop)

    office.night.answers["RQ-1"] = fail_then_stop
    task_id = office.add()
    office.work(is_once=False)
    assert calls == [(1, []), (2, ["JSON_PARSE_ERROR"])]
    office.asked = StopRequest.NONE
    office.work()
    assert len(calls) == 2
    assert office.task(f"{task_id}.2").reason_code == "RETRY_LIMIT_EXCEEDED"


@pytest.mark.spec("QUE-7", "AUT-2")
def test_what_a_person_took_away_meanwhile_keeps_no_auto_run_from_the_rest(office: Office) -> None:
    office.bench.add_request("RQ-2")
    office.night.answers["RQ-1"] = lambda call, should_stop: stopped_in(office, call, should_stop)
    task_id = office.add("auto_run")
    office.work(is_once=False)
    assert office.bench.errors()["reason_code"] == "RUNNER_STOPPED"
    office.bench.aiflow("set", "RQ-1", "status=draft")
    office.asked = StopRequest.NONE
    office.work()
    assert office.task(f"{task_id}.2").status == "COMPLETE"
    assert office.bench.stage("RQ-2")["state"] == "DONE"


@pytest.mark.spec("QUE-7")
def test_a_later_delivery_of_a_run_that_came_to_its_end_ends_as_that_did(office: Office) -> None:
    office.add()
    office.work()
    first = office.task("T-1")
    again = successor_of(replace(first, run_id=None), now())
    office.queue.enqueue(again)
    office.work()
    ended = office.task(again.task_id)
    assert (ended.status, ended.run_id, len(office.bench.run_ids())) == ("COMPLETE", first.run_id, 1)


@pytest.mark.spec("QUE-7", "AUT-2")
def test_an_auto_run_that_its_runner_stopped_goes_on_with_the_run_it_was_at(office: Office) -> None:
    office.bench.add_request("RQ-2")
    office.night.answers["RQ-1"] = until_stopped
    task_id = office.add("auto_run")

    def stop() -> None:
        wait_until(lambda: office.bench.run_ids() and office.bench.stage()["state"] == "IMPLEMENTING")
        office.asked = StopRequest.NOW

    thread = threading.Thread(target=stop)
    thread.start()
    office.work(is_once=False)
    thread.join()
    assert office.task(task_id).reason_code == "RUNNER_STOPPED"
    assert office.bench.errors()["reason_code"] == "RUNNER_STOPPED"
    office.asked, office.night.answers = StopRequest.NONE, {}
    office.work()
    assert office.task(f"{task_id}.2").status == "COMPLETE"
    assert [office.bench.stage(name)["state"] for name in ("RQ-1", "RQ-2")] == ["DONE", "DONE"]
    assert len(office.bench.run_ids("RQ-1")) == 1


@pytest.mark.spec("QUE-7", "AUT-3")
def test_an_auto_run_asked_to_stop_after_its_run_leaves_the_rest_to_a_successor(office: Office) -> None:
    office.bench.add_request("RQ-2")

    def stop(call: AgentCall, should_stop: Callable[[], bool]) -> AgentReply:
        office.asked = StopRequest.AFTER_RUN
        return done(call, should_stop)

    office.night.answers["RQ-1"] = stop
    task_id = office.add("auto_run")
    office.work(is_once=False)
    assert (office.bench.stage()["state"], office.bench.run_ids("RQ-2")) == ("DONE", [])
    assert (office.task(task_id).reason_code, office.task(f"{task_id}.2").status) == ("RUNNER_STOPPED", "QUEUED")


@pytest.mark.spec("QUE-8")
@pytest.mark.parametrize("action", ["start", "auto_run"])
def test_a_cancel_ends_what_is_at_work(office: Office, action: str) -> None:
    office.night.answers["RQ-1"] = until_stopped
    task_id = office.add(action)

    def cancel() -> None:
        wait_until(lambda: office.bench.run_ids() and office.bench.stage()["state"] == "IMPLEMENTING")
        office.queue.cancel(task_id, "not needed", now())

    thread = threading.Thread(target=cancel)
    thread.start()
    office.work()
    thread.join()
    assert (office.task(task_id).status, office.bench.errors()["reason_code"]) == ("CANCELLED", "CANCELLED")
    assert office.news[-2].reason_code == "CANCELLED"


@pytest.mark.spec("LCK-7", "QUE-5")
@pytest.mark.parametrize("ends", ["free", "cancel", "stop"])
def test_a_task_whose_request_somebody_took_before_its_start_waits_without_the_turn(office: Office, ends: str) -> None:
    """Between the claim and the start somebody takes the request's lock beside others, as for an acceptance."""
    locks = office.night.engine().locks
    taken: list[Any] = []
    task_id = office.add()

    def hear(news: RunnerNews) -> None:
        if news.kind is NewsKind.CLAIMED:
            assert isinstance(locks.acquire_request(RequestId("RQ-9"), "RUN-20260101-000000-bbbbbb"), Lock)
            beside = locks.acquire_request(RequestId("RQ-1"), "RUN-20260101-000000-aaaaaa", beside_others=True)
            taken.append(beside)
        elif news.kind is NewsKind.HELD_UP and ends == "cancel":
            office.queue.cancel(task_id, "not needed", now())
        elif news.kind is NewsKind.HELD_UP and ends == "stop":
            office.asked = StopRequest.NOW
        elif news.kind is NewsKind.ENDED:
            taken[0].release()
        elif news.kind is NewsKind.HELD_UP:
            assert news.facts == {"holder": "RUN-20260101-000000-aaaaaa"}
            assert office.night.engine().control.is_turn_wanted()
            assert locks.turn_holder() is None
            taken[0].release()

    office.hear = hear
    try:
        office.work()
    finally:
        taken[0].release()
    task = office.task(task_id)
    expected = {"free": ("COMPLETE", None), "cancel": ("CANCELLED", "CANCELLED"), "stop": ("ERROR", "RUNNER_STOPPED")}
    assert (task.status.value, task.reason_code) == expected[ends]
    assert office.told.count("held_up") == 1
    assert list((office.bench.root / ".aiflow/control").glob("*")) == []


@pytest.mark.spec("RUN-11", "RUN-14")
def test_an_interrupted_run_is_enqueued_once_and_not_for_ever(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    crash(office)
    office.work()
    assert office.told == ["started", "recovering", "claimed", "ended", "stopped"]
    assert (office.news[1].reason_code, office.bench.stage()["state"]) == ("PROCESS_CRASHED", "DONE")
    office.news.clear()
    office.work()
    assert office.told == ["started", "stopped"]


@pytest.mark.spec("RUN-11")
def test_a_run_that_is_interrupted_again_is_recovered_again_by_the_same_runner(office: Office) -> None:
    desk, known = office.desk(), set[str]()
    crash(office)
    queue_recoveries(desk, known)
    queue_recoveries(desk, known)
    assert office.told == ["recovering"]
    office.work()
    assert office.bench.stage()["state"] == "DONE"
    queue_recoveries(desk, known)
    assert known == set()


@pytest.mark.spec("RUN-11", "QUE-5")
def test_an_interrupted_run_with_a_live_task_is_left_to_that(office: Office) -> None:
    crash(office)
    task_id = office.add()
    office.work()
    assert (office.task(task_id).status, "recovering" in office.told) == ("COMPLETE", False)


def crash(office: Office) -> None:
    """Leave a run that nobody works on."""

    def die(_call: AgentCall, _should_stop: Callable[[], bool]) -> AgentReply:
        raise SystemExit

    office.night.answers["RQ-1"] = die
    from aiflow.usecases.runs.start import start_run

    with pytest.raises(SystemExit):
        start_run(office.night.engine(), RequestId("RQ-1"))
    assert office.bench.stage()["state"] == RunState.IMPLEMENTING
    office.night.answers.clear()


@pytest.mark.spec("QUE-10")
def test_an_idle_runner_waits_for_a_store_that_is_away(office: Office) -> None:
    away = EnvironmentProblemError(reason_code="STORE_UNREACHABLE", endpoint="x", problem="refused")
    real = office.queue
    tries: list[float] = []

    class Queue:
        namespace = "app"

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def claim(self, *args: Any) -> Any:
            tries.append(time.monotonic())
            if len(tries) < 5:
                raise away
            return real.claim(*args)

    task_id = office.add()
    office.queue = Queue()
    office.work()
    assert office.task(task_id).status == "COMPLETE"
    assert office.told == ["started", "store_away", "store_back", "claimed", "ended", "stopped"]


def test_a_store_that_refuses_us_ends_the_runner_in_order(office: Office) -> None:
    real = office.queue
    refused = EnvironmentProblemError(reason_code="STORE_REFUSED", endpoint="x", problem="no rights")

    class Queue:
        namespace = "app"

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def claim(self, *_args: Any) -> Any:
            raise refused

    office.queue = Queue()
    with pytest.raises(AiflowError, match="STORE_REFUSED"):
        office.work()
    assert [each.is_at_rest for each in office.store.runners("app").all()] == [True]


@pytest.mark.spec("QUE-9")
def test_what_no_index_shows_is_found_at_the_start(office: Office) -> None:
    task_id = office.add()
    real, hidden = office.queue, [True]

    class Queue:
        """Shows what is queued only once it is adopted."""

        namespace = "app"

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def claim(self, *args: Any) -> Any:
            return None if hidden else real.claim(*args)

        def adopt(self, _now: object) -> int:
            hidden.clear()
            return 1

    office.queue = Queue()
    office.work()
    assert real.get(task_id).status == "COMPLETE"


@pytest.mark.spec("REQ-9", "QUE-11")
def test_a_prompt_is_filed_once_however_often_it_is_delivered(office: Office) -> None:
    task_id = office.add("prompt", prompt_request_id("T-1"), prompt="Say hello", checkout=None)
    office.night.answers[prompt_request_id("T-1")] = until_stopped

    def hear(news: RunnerNews) -> None:
        if news.kind is NewsKind.CLAIMED:
            threading.Timer(0.5, lambda: setattr(office, "asked", StopRequest.NOW)).start()

    office.hear = hear
    office.work(is_once=False)
    office.asked, office.hear, office.night.answers = StopRequest.NONE, lambda _news: None, {}
    office.work()
    assert office.task(f"{task_id}.2").status == "COMPLETE"
    assert len(list((office.bench.root / "requests").glob("RQ-*-????.md"))) == 1


@pytest.mark.parametrize("action", ["resume", "retry_step", "replan"])
def test_what_goes_on_needs_a_run(office: Office, action: str) -> None:
    task_id = office.add(action)
    office.work()
    assert office.task(task_id).reason_code == "RUN_NOT_FOUND"
