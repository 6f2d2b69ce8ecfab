"""A server is looked after (API-1, AUT-4, RUN-11): what a crash left, a runner, and the end of all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.adapters.memory.time import PlayedTime
from aiflow.adapters.memory.workers import MemoryRunnerChild, MemoryWorkers
from aiflow.domain.agents.call import Brief
from aiflow.domain.auto.session import AutoSession
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.lifecycle import AutoRunState
from aiflow.domain.lock import Lock
from aiflow.domain.process import Liveness
from aiflow.domain.request import RequestId
from aiflow.domain.run_summary import TaskRef
from aiflow.domain.server.supervision import MOST_TRIES, Wish
from aiflow.errors import AiflowError, SettingsError
from aiflow.ports.server import Worker
from aiflow.usecases.engine import Engine
from aiflow.usecases.server.start_work import WorkStarter
from aiflow.usecases.server.supervise import UpDesk, supervise
from aiflow.usecases.server.up_news import UpNews, UpNewsKind
from memory_engine import MemoryCheckout, MemoryProcess, obliging
from run_builders import in_step

pytestmark = pytest.mark.spec("API-1")
RUN_ID = "RUN-20260102-030405-000001"


@dataclass
class House:
    """A checkout in memory with a server that is looked after; `plan` says what happens at which second."""

    checkout: MemoryCheckout = field(default_factory=MemoryCheckout)
    time: PlayedTime = field(default_factory=PlayedTime)
    workers: MemoryWorkers = field(default_factory=MemoryWorkers)
    runner: MemoryRunnerChild = field(default_factory=MemoryRunnerChild)
    news: list[UpNews] = field(default_factory=list)
    plan: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    wish: Wish = Wish.STAY
    wants_runner: bool = False
    is_serving: bool = True
    problem: AiflowError | None = None

    def __post_init__(self) -> None:
        self.runner.now = self.time.monotonic

    @property
    def told(self) -> list[str]:
        return [each.kind.value for each in self.news]

    def process(self, pid: int) -> MemoryProcess:
        return MemoryProcess(self.checkout, pid, self.time, obliging(self.checkout))

    def engine(self) -> Engine:
        if self.problem is not None:
            raise self.problem
        return self.process(1).engine()

    def at(self, second: float, act: Callable[[], None]) -> None:
        """Let something happen at a second."""
        self.plan.append((second, act))

    def asks(self, second: float, wish: Wish) -> None:
        """Let a wish be made at a second."""
        self.at(second, lambda: setattr(self, "wish", wish))

    def up(self, **more: Any) -> None:
        """Be up until that ends; what never ends is a defect."""

        def heard() -> Wish:
            assert self.time.seconds < 1000, "it never ends"
            for second, act in [each for each in self.plan if each[0] <= self.time.seconds]:
                self.plan.remove((second, act))
                act()
            return self.wish

        work = WorkStarter(self.workers, MemoryJournal(), self.engine().locks, self.time, self.time.mutex())
        supervise(
            UpDesk(
                engine=self.engine,
                records=self.checkout.session,
                work=work,
                runner=self.runner,
                time=self.time,
                wish=heard,
                wants_runner=lambda: self.wants_runner,
                is_serving=lambda: self.is_serving,
                tell=self.news.append,
                **more,
            )
        )

    def interrupt_run(self, request_id: str = "RQ-1", task: TaskRef | None = None) -> None:
        """Leave a run that nobody works on."""
        self.checkout.add(request_id, "running")
        run = replace(in_step(1), request_id=request_id, run_id=RUN_ID, task=task)
        engine = self.process(50).engine()
        engine.runs.create(run, Brief(request_id, "A title", "", ""))

    def cut_night(self, **more: Any) -> None:
        """Leave an auto-run that was cut off."""
        began = self.time.now()
        self.checkout.session.save(AutoSession(began, state=AutoRunState.RUNNING, began_at=began, **more))

    def lock_by(self, worker: Worker, *, is_queue: bool = False) -> None:
        """Let a worker take its lock."""
        locks = self.process(worker.pid).engine().locks
        lease = locks.acquire_queue() if is_queue else locks.acquire_request(RequestId("RQ-1"), RUN_ID)
        assert not isinstance(lease, Lock)


@pytest.fixture
def house() -> House:
    """Give a checkout with a server."""
    return House()


def test_with_nothing_at_work_it_ends_at_once(house: House) -> None:
    house.asks(3, Wish.AFTER_WORK)
    house.up()
    assert house.time.seconds < 4
    assert (house.workers.started, house.runner.starts, house.told) == ([], [], [])


@pytest.mark.spec("AUT-4")
def test_a_night_that_was_cut_off_is_continued(house: House) -> None:
    house.cut_night(runs=3, done=2)
    house.interrupt_run()
    house.asks(5, Wish.LEAVE)
    house.up()
    assert [worker.argv for worker in house.workers.started] == [("--json", "auto", "--continue")]
    assert house.told == ["night_was_cut", "was_interrupted", "continues", "left_at_work"]


@pytest.mark.spec("AUT-4")
def test_what_ended_in_order_or_is_a_tasks_is_not_continued(house: House) -> None:
    house.cut_night(is_delivered=True)
    house.asks(5, Wish.AFTER_WORK)
    house.up()
    house.wish = Wish.STAY
    house.checkout.session.save(AutoSession(house.time.now(), state=AutoRunState.STOPPED, reason_code="X"))
    house.asks(10, Wish.AFTER_WORK)
    house.up()
    assert house.workers.started == []


@pytest.mark.spec("AUT-4")
def test_without_being_allowed_to_it_only_says_what_was_cut_off(house: House) -> None:
    house.cut_night()
    house.interrupt_run()
    house.asks(5, Wish.AFTER_WORK)
    house.up(continues=False)
    assert (house.workers.started, house.told) == ([], ["night_was_cut", "was_interrupted"])
    assert all(each.facts["continues"] is False for each in house.news)


@pytest.mark.spec("AUT-4", "RUN-11")
def test_without_being_allowed_to_a_run_that_is_killed_meanwhile_is_only_named(house: House) -> None:
    house.interrupt_run()
    house.lock_by(Worker(70, "", ()))

    def die() -> None:
        house.checkout.locks.life = lambda holder: Liveness.DEAD if holder.pid == 70 else Liveness.ALIVE

    house.at(5, die)
    house.asks(10, Wish.AFTER_WORK)
    house.up(continues=False)
    assert (house.workers.started, house.told) == ([], ["at_work", "was_interrupted"])


@pytest.mark.parametrize("is_queue", [False, True])
def test_what_a_server_before_left_at_work_is_waited_for_and_ended_as_our_own(house: House, is_queue: bool) -> None:
    house.workers.left.append(Worker(60, "", ()))
    house.checkout.add("RQ-1", "running")
    house.lock_by(Worker(60, "", ()), is_queue=is_queue)
    house.asks(5, Wish.AFTER_WORK)
    stop: list[StopRequest] = []
    house.at(20, lambda: stop.append(house.engine().control.stop_asked()))
    house.asks(30, Wish.NOW)
    house.at(31, lambda: house.workers.codes.update({60: 0}))
    house.up()
    assert house.told == ["adopted", "at_work", "stopping", "stopping_now"]
    assert stop == [StopRequest.AFTER_RUN if is_queue else StopRequest.NONE]
    assert house.workers.asked == [60]
    assert 31 <= house.time.seconds < 33


@pytest.mark.spec("RUN-11")
def test_an_interrupted_run_is_recovered_once(house: House) -> None:
    house.interrupt_run()
    house.at(3, lambda: house.workers.codes.update({100: 3}))
    house.workers.answers[100] = {"error": {"reason_code": "DOCTOR_FAILED", "context": {}}}
    house.asks(60, Wish.AFTER_WORK)
    house.up()
    assert [worker.argv for worker in house.workers.started] == [("--json", "run", "--", "RQ-1")]
    assert house.told == ["was_interrupted", "continues", "worker_refused"]
    assert house.news[-1].error is not None
    assert house.news[-1].error.reason_code == "DOCTOR_FAILED"


@pytest.mark.spec("RUN-11")
def test_a_worker_that_is_killed_is_started_again_a_few_times(house: House) -> None:
    house.interrupt_run()
    for number in range(10):
        house.at(2 + 3 * number, lambda: house.workers.codes.update({each.pid: -9 for each in house.workers.started}))
    house.asks(60, Wish.AFTER_WORK)
    house.up()
    assert len(house.workers.started) == MOST_TRIES
    assert house.told.count("worker_killed") == MOST_TRIES


@pytest.mark.spec("RUN-11", "LCK-4")
def test_a_run_that_is_killed_while_the_server_is_up_is_found_by_its_lock(house: House) -> None:
    house.checkout.add("RQ-1", "running")
    terminal = Worker(70, "", ())
    house.lock_by(terminal)
    house.interrupt_run()

    def die() -> None:
        house.checkout.locks.life = lambda holder: Liveness.DEAD if holder.pid == 70 else Liveness.ALIVE

    house.at(5, die)
    house.asks(10, Wish.LEAVE)
    house.up()
    assert house.told == ["at_work", "was_interrupted", "continues", "left_at_work"]
    entries = [each.reason_code for each in house.checkout.journal.entries]
    assert "LOCK_STALE_RECOVERED" in entries


@pytest.mark.spec("RUN-11")
def test_what_was_a_tasks_is_left_to_the_runner_that_is_here(house: House) -> None:
    house.interrupt_run(task=TaskRef("app", "TASK-1"))
    house.wants_runner = True
    house.asks(5, Wish.AFTER_WORK)
    house.up()
    assert (house.workers.started, len(house.runner.starts)) == ([], 1)


def test_ctrl_c_once_lets_the_night_end_after_its_run_and_waits(house: House) -> None:
    house.cut_night()
    house.workers.begin = lambda worker: house.lock_by(worker, is_queue=True)
    house.asks(5, Wish.AFTER_WORK)
    stop: list[StopRequest] = []

    def end() -> None:
        stop.append(house.engine().control.stop_asked())
        house.workers.codes[100] = 0

    house.at(20, end)
    house.up()
    assert stop == [StopRequest.AFTER_RUN]
    assert house.workers.asked == []
    assert house.time.seconds >= 20
    assert house.told[-1] == "stopping"


def test_ctrl_c_twice_ends_the_worker_now(house: House) -> None:
    house.interrupt_run()
    house.asks(5, Wish.AFTER_WORK)
    house.asks(10, Wish.NOW)
    house.at(12, lambda: house.workers.codes.update({100: 4}))
    house.up()
    assert house.workers.asked == [100]
    assert house.told[-2:] == ["stopping", "stopping_now"]
    assert 12 <= house.time.seconds < 13


def test_as_a_service_it_leaves_at_once_and_the_work_goes_on(house: House) -> None:
    house.interrupt_run()
    house.wants_runner = house.runner.is_busy = True
    house.asks(5, Wish.LEAVE)
    house.up()
    assert house.time.seconds < 6
    assert (house.workers.asked, house.runner.asked[0]) == ([], "release")


def test_a_runner_is_waited_for_and_one_that_dies_is_started_again(house: House) -> None:
    house.wants_runner = True
    for number in range(3):
        house.at(2 + 10 * number, lambda: setattr(house.runner, "works", False))
    house.at(40, lambda: setattr(house.runner, "is_busy", True))
    house.asks(41, Wish.AFTER_WORK)
    house.at(50, lambda: setattr(house.runner, "works", False))
    house.up()
    assert len(house.runner.starts) == 4
    assert house.told == ["runner_started", "runner_died", "stopping"], "the same trouble is said once"
    assert house.time.seconds >= 50


def test_a_runner_comes_and_goes_with_the_store(house: House) -> None:
    house.at(7, lambda: setattr(house, "wants_runner", True))
    house.at(30, lambda: setattr(house, "wants_runner", False))
    house.asks(60, Wish.AFTER_WORK)
    house.up()
    assert house.told == ["runner_started", "runner_let_go"]
    assert house.runner.asked == ["release"]


def test_settings_that_are_wrong_for_a_while_are_said_once(house: House) -> None:
    house.at(3, lambda: setattr(house, "problem", SettingsError(problems=[])))
    house.at(20, lambda: setattr(house, "problem", None))
    house.asks(25, Wish.AFTER_WORK)
    house.up()
    assert house.told == ["trouble", "trouble_over"]


def test_while_it_is_about_to_end_it_starts_nothing(house: House) -> None:
    house.interrupt_run()
    house.asks(5, Wish.AFTER_WORK)
    house.at(8, lambda: house.workers.codes.update({100: 0}))
    house.up()
    assert [each.argv[1] for each in house.workers.started] == ["run"]
    work = WorkStarter(house.workers, MemoryJournal(), house.engine().locks, house.time, house.time.mutex())
    work.close()
    with pytest.raises(AiflowError) as error:
        work.launch(("run", "RQ-1"))
    assert error.value.reason_code == "SERVER_STOPPING"


def test_where_the_server_has_ended_nothing_is_looked_after(house: House) -> None:
    house.wants_runner = True
    house.at(5, lambda: setattr(house, "is_serving", False))
    house.up()
    assert house.runner.asked == ["release"]
    assert UpNewsKind.STOPPING.value not in house.told
