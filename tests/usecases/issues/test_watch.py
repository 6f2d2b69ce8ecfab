"""Watch issues in the foreground (ISS-12): on played time, with an engine in memory and agents that oblige."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.agents.call import Brief
from aiflow.domain.lock import Lock
from aiflow.domain.request import RequestId
from aiflow.domain.runs.run import Run
from aiflow.errors import AiflowError
from aiflow.settings import settle
from aiflow.usecases.engine import Engine, Voice
from aiflow.usecases.issues.watch import IssueWatch, StartMode, watch_issues
from memory_engine import TEXTS, MemoryCheckout, MemoryProcess, obliging
from run_builders import in_step
from usecases.issues.caring import Care, trouble

POLL = 30.0


@dataclass
class Watched:
    """A checkout with a watch; `plan` says what happens at which second."""

    checkout: MemoryCheckout = field(default_factory=lambda: MemoryCheckout(settings=settle({})))
    time: PlayedTime = field(default_factory=PlayedTime)
    care: Care = field(init=False)
    ended: list[Run] = field(default_factory=list)
    heard: list[str | None] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    queued: list[float] = field(default_factory=list)
    plan: list[tuple[float, Callable[[], object]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.care = Care(self.time)

    def process(self, pid: int = 1) -> MemoryProcess:
        return MemoryProcess(self.checkout, pid, self.time, obliging(self.checkout))

    def at(self, second: float, act: Callable[[], object]) -> None:
        self.plan.append((second, act))

    def watch(self, seconds: float, mode: StartMode = StartMode.AUTO) -> None:
        """Watch for some seconds."""

        def is_over() -> bool:
            for each in [each for each in self.plan if each[0] <= self.time.seconds]:
                self.plan.remove(each)
                each[1]()
            return self.time.seconds >= seconds

        def hear(error: AiflowError | None) -> None:
            self.heard.append(error.reason_code if error else None)

        def queue(_engine: Engine) -> None:
            self.queued.append(self.time.seconds)

        watch = IssueWatch(
            self.care,
            POLL,
            mode,
            looked=lambda _looked: None,
            heard=hear,
            refused=lambda error: self.refused.append(error.reason_code),
            ended=self.ended.append,
            queue=queue,
        )
        watch_issues(self.process().engine(voice=Voice(TEXTS, is_over)), watch)

    @property
    def ran(self) -> list[str]:
        return [run.request_id for run in self.ended]


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.mark.spec("ISS-12", "SEL-2")
def test_what_is_ready_starts_in_order_and_files_are_left_to_auto_run(watched: Watched) -> None:
    for name, priority in {"GH-1": "P2", "GH-2": "P0", "GH-3": "P1"}.items():
        watched.checkout.add(name, priority=priority)
    watched.checkout.add("RQ-1", priority="P0")
    watched.checkout.add("GH-4", "draft")
    watched.watch(20)
    assert watched.ran == ["GH-2", "GH-3", "GH-1"]
    assert watched.checkout.status("RQ-1") == "ready"


@pytest.mark.spec("ISS-12")
def test_what_becomes_ready_starts_at_the_next_look(watched: Watched) -> None:
    watched.at(10, lambda: setattr(watched.care, "meanwhile", lambda: watched.checkout.add("GH-1")))
    watched.watch(40)
    assert (watched.ran, watched.care.synced) == (["GH-1"], [0, pytest.approx(30, abs=1)])


@pytest.mark.spec("ISS-12")
@pytest.mark.parametrize("is_queue", [True, False])
def test_while_somebody_else_is_at_work_it_only_looks_and_starts_once_that_is_over(
    watched: Watched, is_queue: bool
) -> None:
    watched.checkout.add("GH-1")
    watched.checkout.add("RQ-1")
    locks = watched.process(2).engine().locks
    lease = locks.acquire_queue() if is_queue else locks.acquire_request(RequestId("RQ-1"), "RUN-1")
    assert not isinstance(lease, Lock)
    began: list[float] = []
    watched.at(45, lease.release)
    watched.at(44, lambda: began.append(len(watched.ended)))
    watched.watch(50)
    assert (began, watched.ran) == ([0], ["GH-1"])
    assert len(watched.care.synced) == 2


@pytest.mark.spec("ISS-12")
@pytest.mark.parametrize("mode", [StartMode.OFF, StartMode.QUEUE])
def test_where_nothing_is_to_start_nothing_does(watched: Watched, mode: StartMode) -> None:
    watched.checkout.add("GH-1")
    watched.watch(70, mode)
    assert watched.ran == []
    assert len(watched.queued) == (3 if mode is StartMode.QUEUE else 0)


@pytest.mark.spec("ISS-12", "RUN-11")
@pytest.mark.parametrize("mode", [*StartMode])
def test_a_run_that_was_interrupted_is_taken_up_under_its_own_id(watched: Watched, mode: StartMode) -> None:
    watched.checkout.add("GH-1", "running")
    run = replace(in_step(1), request_id="GH-1", run_id="RUN-20260102-030405-000001")
    watched.process(50).engine().runs.create(run, Brief("GH-1", "A title", "", ""))
    watched.watch(20, mode)
    assert [run.run_id for run in watched.ended] == ["RUN-20260102-030405-000001"]


@pytest.mark.spec("ISS-12", "ISS-11")
def test_while_github_is_away_nothing_starts_and_that_is_told_once(watched: Watched) -> None:
    watched.checkout.add("GH-1")
    watched.care.wrong["sync"] = trouble()
    ran: list[int] = []
    watched.at(99, lambda: ran.append(len(watched.ended)))
    watched.at(100, watched.care.wrong.clear)
    watched.watch(150)
    assert watched.heard == ["GITHUB_UNREACHABLE", None]
    assert (ran, watched.ran, watched.refused) == ([0], ["GH-1"], [])


@pytest.mark.spec("ISS-12")
def test_a_start_that_is_refused_is_told_once_and_tried_again(watched: Watched) -> None:
    watched.checkout.add("GH-1")
    watched.checkout.workshop.room = ("/state", 0)
    watched.at(60, lambda: setattr(watched.checkout.workshop, "room", ("/state", 10**12)))
    watched.watch(130)
    assert (len(watched.refused), watched.ran) == (1, ["GH-1"])
    assert len(watched.care.synced) == 5
