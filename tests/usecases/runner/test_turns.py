"""A runner claims only with its checkout's turn (QUE-5): a task that is RUNNING is being worked on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aiflow.adapters.memory.leases import TURN, MemoryLease
from aiflow.adapters.memory.queue import MemoryStore
from aiflow.adapters.memory.time import PlayedTime
from aiflow.adapters.memory.wake import MemoryBells
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.lock import Lock
from aiflow.domain.process import Liveness
from aiflow.domain.queue.runner import Runner
from aiflow.domain.queue.task import Task, TaskAction, auto_run_guard
from aiflow.domain.queue.why_waiting import standing_of
from aiflow.domain.request import RequestId
from aiflow.errors import ConflictError
from aiflow.usecases.engine import Engine
from aiflow.usecases.queue.desk import look_around
from aiflow.usecases.runner.cancel_task import cancel_task
from aiflow.usecases.runner.desk import RunnerDesk, RunnerNews
from aiflow.usecases.runner.work_tasks import work_tasks
from aiflow.usecases.runs.start import start_run
from memory_engine import NAMESPACE, TEXTS, MemoryCheckout, MemoryProcess, obliging
from task_builders import a_task

QUEUED, RUNNING, COMPLETE = TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.COMPLETE


class Yard:
    """A checkout with one runner in it, and somebody else who runs something there."""

    def __init__(self) -> None:
        self.checkout = MemoryCheckout()
        self.time = PlayedTime()
        self.store, self.bells = MemoryStore(), MemoryBells()
        self.queue = self.store.queue(NAMESPACE)
        self.news: list[tuple[str, str | None, TaskStatus | None]] = []
        self.asked = StopRequest.NONE
        # What the locks were whenever an agent was called.
        self.locked: list[list[str]] = []
        self.desk = self.process(7).desk(
            self.store, self.bells, asked=lambda: self.asked, tell=self.hear, is_gone=lambda _runner: False
        )

    def process(self, pid: int) -> MemoryProcess:
        return MemoryProcess(self.checkout, pid, self.time, self._script(obliging(self.checkout)))

    def _script(self, oblige: Callable[..., AgentReply]) -> Callable[..., AgentReply]:
        def script(call: AgentCall, *more: Any) -> AgentReply:
            self.locked.append(sorted(self.checkout.locks.locks))
            return oblige(call, *more)

        return script

    def hear(self, news: RunnerNews) -> None:
        found = self.queue.get("TASK-0001")
        self.news.append((news.kind.value, news.reason_code, found.status if found else None))

    def told(self) -> list[str]:
        return [kind for kind, _, _ in self.news]

    def add(self, **changes: Any) -> Task:
        self.checkout.add("RQ-1")
        return self.queue.enqueue(
            a_task(1, NAMESPACE, **{"request_id": "RQ-1", "checkout": self.checkout.at, **changes})
        )

    def somebody_runs(self, pid: int = 9) -> MemoryLease:
        self.checkout.add("RQ-9")
        lease = self.process(pid).engine().locks.acquire_request(RequestId("RQ-9"), "RUN-9")
        assert isinstance(lease, MemoryLease)
        return lease

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Let something happen once, when so much time has passed."""

        def once() -> float:
            beside.close()
            act()
            return 0.0

        beside = self.time.beside("person", once)
        beside.start(seconds)

    def task(self) -> Task:
        found = self.queue.get("TASK-0001")
        assert found is not None
        return found

    def record(self) -> Runner:
        [found] = self.store.runners(NAMESPACE).all()
        return found

    def work(self) -> int:
        return work_tasks(self.desk, is_once=True)

    def other_desk(self) -> tuple[Engine, RunnerDesk]:
        engine = self.process(11).engine()
        return engine, self.process(11).desk(self.store, self.bells, engine)


@pytest.mark.spec("QUE-5", "QUE-7", "LCK-7")
def test_a_task_stays_queued_until_it_is_the_runners_turn_and_why_is_said() -> None:
    yard = Yard()
    yard.add()
    lease = yard.somebody_runs()
    seen: list[object] = []

    def look() -> None:
        _, desk = yard.other_desk()
        standing = standing_of(yard.task(), look_around(desk, [yard.task()]))
        assert standing is not None
        beat = (yard.time.now() - yard.record().last_heartbeat).total_seconds()
        seen.extend((yard.task().status, standing.code.value, yard.record().held_up, beat <= 1.0))

    yard.later(60, look)
    yard.later(61, lease.release)
    assert yard.work() == 1
    assert seen == [QUEUED, "run_active", "RUN_IN_PROGRESS: RUN-9, pid 9, host", True]
    assert yard.news[1:3] == [("held_up", "RUN_IN_PROGRESS", QUEUED), ("claimed", None, RUNNING)]
    assert yard.task().status is COMPLETE
    assert yard.time.monotonic() < 62.5


@pytest.mark.spec("QUE-5", "AUT-2")
def test_who_waits_for_a_turn_makes_it_known_to_an_auto_run_and_only_then() -> None:
    yard = Yard()
    lease = yard.somebody_runs()
    control = yard.process(9).engine().control
    wanted: list[bool] = []
    yard.later(10, lambda: wanted.append(control.is_turn_wanted()))
    yard.later(11, yard.add)
    yard.later(20, lambda: wanted.append(control.is_turn_wanted()))
    yard.later(21, lease.release)

    def end() -> None:
        wanted.append(control.is_turn_wanted())
        yard.asked = StopRequest.AFTER_RUN

    yard.later(30, end)
    work_tasks(yard.desk)
    assert (wanted, yard.task().status) == ([False, True, False], COMPLETE)


@pytest.mark.spec("QUE-5")
def test_a_turn_is_taken_for_a_claim_and_is_over_when_the_run_has_its_lock() -> None:
    yard = Yard()
    yard.add()
    taken: list[str] = []
    locks = yard.desk.engine.locks
    acquire = locks.acquire_turn

    def acquire_turn() -> Any:
        taken.append(yard.task().status)
        return acquire()

    locks.acquire_turn = acquire_turn  # type: ignore[method-assign]
    yard.work()
    assert taken == [QUEUED]
    assert set(map(tuple, yard.locked)) == {("RQ-1",)}
    assert yard.checkout.locks.locks == {}


@pytest.mark.spec("QUE-5")
def test_an_idle_runner_holds_up_nobody() -> None:
    yard = Yard()
    yard.checkout.add("RQ-2")
    looked: list[object] = []

    def run() -> None:
        looked.append(sorted(yard.checkout.locks.locks))
        looked.append(start_run(yard.process(9).engine(), RequestId("RQ-2")).state.value)
        yard.asked = StopRequest.AFTER_RUN

    yard.later(30, run)
    locks = yard.desk.engine.locks
    locks.acquire_turn = lambda: pytest.fail("there is nothing to claim")  # type: ignore[method-assign]
    assert work_tasks(yard.desk) == 0
    assert looked == [[], "DONE"]


@pytest.mark.spec("QUE-5")
def test_what_cannot_be_begun_gives_the_turn_back() -> None:
    yard = Yard()
    yard.add()
    yard.checkout.add("RQ-1", status="draft")
    yard.work()
    assert (yard.task().reason_code, yard.checkout.locks.locks) == ("NOT_READY", {})


@pytest.mark.spec("QUE-8", "QUE-5")
def test_a_task_that_waits_for_the_turn_is_cancelled_at_once_and_never_claimed() -> None:
    yard = Yard()
    yard.add()
    lease = yard.somebody_runs()

    def cancel() -> None:
        engine, desk = yard.other_desk()
        cancel_task(desk, engine, "TASK-0001", "a person")

    yard.later(20, cancel)
    yard.later(90, lease.release)
    assert yard.work() == 0
    assert (yard.task().status, yard.task().claimed_by) == (TaskStatus.CANCELLED, None)
    assert "claimed" not in yard.told()
    # Nothing is left to do: it does not wait for whoever runs.
    assert yard.time.monotonic() < 25


@pytest.mark.parametrize("wish", [StopRequest.AFTER_RUN, StopRequest.NOW])
@pytest.mark.spec("QUE-7", "QUE-5")
def test_a_stop_ends_a_runner_that_waits_for_its_turn(wish: StopRequest) -> None:
    yard = Yard()
    yard.add()
    yard.somebody_runs()

    def stop() -> None:
        yard.asked = wish

    yard.later(20, stop)
    assert yard.work() == 0
    assert (yard.task().status, yard.record().is_at_rest, yard.told()[-1]) == (QUEUED, True, "stopped")
    assert not yard.process(9).engine().control.is_turn_wanted()
    assert yard.time.monotonic() < 21


@pytest.mark.spec("QUE-5", "RUN-7")
def test_who_may_take_nothing_in_a_sick_checkout_wants_no_turn() -> None:
    yard = Yard()
    yard.add()
    lease = yard.somebody_runs()
    yard.checkout.repository.dirty = ("app.txt",)
    control = yard.process(9).engine().control
    wanted: list[bool] = []
    yard.later(5, lambda: wanted.append(control.is_turn_wanted()))
    yard.later(6, lease.release)

    def stop() -> None:
        wanted.append(control.is_turn_wanted())
        yard.asked = StopRequest.AFTER_RUN

    yard.later(20, stop)
    work_tasks(yard.desk)
    assert (wanted, yard.task().status) == ([True, False], QUEUED)
    assert ("held_up", "DOCTOR_FAILED", QUEUED) in yard.news


@pytest.mark.spec("QUE-5")
def test_an_auto_runs_task_waits_in_the_queue_for_another_auto_run_and_holds_up_nobody() -> None:
    yard = Yard()
    auto = yard.process(9).engine().locks.acquire_queue()
    assert isinstance(auto, MemoryLease)
    yard.add(action=TaskAction.AUTO_RUN, request_id=auto_run_guard(yard.checkout.at))
    yard.checkout.add("RQ-2")
    yard.queue.enqueue(a_task(2, NAMESPACE, request_id="RQ-2", checkout=yard.checkout.at))
    seen: list[object] = []

    def look() -> None:
        _, desk = yard.other_desk()
        around = look_around(desk, [yard.task()])
        standing = standing_of(yard.task(), around)
        assert standing is not None
        seen.extend((yard.task().status, standing.code.value, standing.facts["problem"]))

    yard.later(30, look)
    yard.later(31, auto.release)
    yard.work()
    second = yard.queue.get("TASK-0002")
    assert second is not None
    assert (second.status, yard.task().status) == (COMPLETE, COMPLETE)
    assert seen == [QUEUED, "held_up", "QUEUE_IN_PROGRESS: pid 9, host"]
    assert ("held_up", "QUEUE_IN_PROGRESS", QUEUED) in yard.news


@pytest.mark.spec("QUE-5", "LCK-7")
def test_a_start_beside_a_runner_that_is_about_to_claim_waits_a_moment_for_what_comes_of_it() -> None:
    yard = Yard()
    yard.checkout.add("RQ-2")
    runner, person = yard.process(7).engine(), yard.process(9).engine()
    turn = runner.locks.acquire_turn()
    assert isinstance(turn, MemoryLease)
    yard.later(2, turn.release)
    assert start_run(person, RequestId("RQ-2")).state.value == "DONE"
    yard.checkout.add("RQ-3")
    turn = runner.locks.acquire_turn()
    assert isinstance(turn, MemoryLease)
    with pytest.raises(ConflictError) as refused:
        start_run(person, RequestId("RQ-3"))
    assert refused.value.reason_code == "RUN_IN_PROGRESS"
    said = TEXTS.message("RUN_IN_PROGRESS", dict(refused.value.context))
    assert "A runner (pid 7, host) is about to start one" in said.summary


@pytest.mark.spec("QUE-5", "LCK-5")
def test_the_turn_of_a_dead_runner_is_in_nobodys_way() -> None:
    yard = Yard()
    yard.add()
    assert isinstance(yard.process(9).engine().locks.acquire_turn(), MemoryLease)
    yard.checkout.locks.life = lambda holder: Liveness.DEAD if holder.pid == 9 else Liveness.ALIVE
    assert (yard.work(), yard.task().status) == (1, COMPLETE)


@pytest.mark.spec("QUE-5")
def test_with_the_turn_an_acceptance_of_something_else_is_in_nobodys_way() -> None:
    """Who accepts takes a lock beside others, also between a runner's turn and its run."""
    yard = Yard()
    yard.add()
    yard.checkout.add("RQ-9")
    hear, beside = yard.hear, yard.process(9).engine().locks

    def tell(news: RunnerNews) -> None:
        hear(news)
        if news.kind.value == "claimed":
            assert TURN in yard.checkout.locks.locks
            assert not isinstance(beside.acquire_request(RequestId("RQ-9"), "RUN-9", beside_others=True), Lock)

    yard.desk = yard.process(7).desk(yard.store, yard.bells, tell=tell, is_gone=lambda _runner: False)
    assert (yard.work(), yard.task().status) == (1, COMPLETE)
    assert "held_up" not in yard.told()
