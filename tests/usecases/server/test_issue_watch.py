"""The issue watch beside a server (ISS-12): what is ready starts as any other run does there, and trouble ends nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.adapters.memory.queue import MemoryStore
from aiflow.adapters.memory.time import PlayedTime
from aiflow.adapters.memory.wake import MemoryBells
from aiflow.adapters.memory.workers import MemoryRunnerChild, MemoryWorkers
from aiflow.domain.agents.call import Brief
from aiflow.domain.claims import NO_RUNNER, NotStarted
from aiflow.domain.lifecycle import TaskEvent
from aiflow.domain.lock import Lock
from aiflow.domain.queue.runner import Runner
from aiflow.domain.queue.task import TaskEnd
from aiflow.domain.request import Priority, RequestId
from aiflow.domain.server.supervision import Wish
from aiflow.errors import AiflowError, SettingsError
from aiflow.ports.server import Worker
from aiflow.ports.sources import RequestSource
from aiflow.settings import Settings, Source, settle
from aiflow.usecases.engine import Engine
from aiflow.usecases.issues.queue_up import queue_issues
from aiflow.usecases.queue.desk import Desk
from aiflow.usecases.server.issue_watch import IssuePlace, IssueStarts, ServerIssues
from aiflow.usecases.server.start_work import WorkStarter
from aiflow.usecases.server.supervise import UpDesk, supervise
from aiflow.usecases.server.up_news import UpNews, UpNewsKind
from memory_engine import NAMESPACE, MemoryCheckout, MemoryProcess, obliging
from run_builders import in_step
from usecases.issues.caring import Care, trouble


def made(start: str = "auto", repo: str = "octo/demo") -> Settings:
    """Make settings with a repository."""
    return settle({Source.FLAG: {"github.repo": repo, "github.poll_seconds": 30, "github.start": start}})


@dataclass
class House:
    """A checkout in memory with a server that watches issues; `plan` says what happens at which second."""

    checkout: MemoryCheckout = field(default_factory=lambda: MemoryCheckout(settings=made()))
    time: PlayedTime = field(default_factory=PlayedTime)
    workers: MemoryWorkers = field(default_factory=MemoryWorkers)
    store: MemoryStore = field(default_factory=MemoryStore)
    news: list[UpNews] = field(default_factory=list)
    plan: list[tuple[float, Callable[[], object]]] = field(default_factory=list)
    care: Care = field(init=False)
    issues: ServerIssues = field(init=False)
    problem: AiflowError | None = None
    opened: int = 0

    def __post_init__(self) -> None:
        self.care = Care(self.time)
        self.issues = ServerIssues(IssuePlace(self.named_care, self.engine, self.desk, self.time))
        self.heard: list[str | None] = []
        self.issues.heard = lambda error: self.heard.append(error.reason_code if error else None)

    def named_care(self) -> Care | None:
        return self.care if self.checkout.settings.text("github.repo") else None

    def process(self, pid: int) -> MemoryProcess:
        return MemoryProcess(self.checkout, pid, self.time, obliging(self.checkout))

    def engine(self) -> Engine:
        if self.problem is not None:
            raise self.problem
        return self.process(1).engine()

    def desk(self) -> Desk:
        self.opened += 1
        return self.process(1).desk(self.store, MemoryBells())

    def at(self, second: float, act: Callable[[], object]) -> None:
        self.plan.append((second, act))

    def up(self, seconds: float) -> None:
        """Be up for some seconds."""

        def heard() -> Wish:
            for each in [each for each in self.plan if each[0] <= self.time.seconds]:
                self.plan.remove(each)
                each[1]()
            return Wish.LEAVE if self.time.seconds >= seconds else Wish.STAY

        work = WorkStarter(self.workers, MemoryJournal(), self.process(1).engine().locks, self.time, self.time.mutex())
        self.issues.start()
        supervise(
            UpDesk(
                engine=self.engine,
                records=self.checkout.session,
                work=work,
                runner=MemoryRunnerChild(),
                time=self.time,
                wish=heard,
                wants_runner=lambda: False,
                is_serving=lambda: True,
                tell=self.news.append,
                issues=IssueStarts(self.issues),
            )
        )
        self.issues.leave()

    @property
    def started(self) -> list[str]:
        return [worker.argv[-1] for worker in self.workers.started]

    def ends(self, code: int = 0, answer: dict[str, object] | None = None) -> None:
        """Let the newest worker end."""
        pid = self.workers.started[-1].pid
        self.workers.codes[pid] = code
        self.workers.answers[pid] = answer or {}

    def done(self, name: str) -> None:
        """Let the newest worker end with its request done."""
        self.checkout.add(name, "blocked")
        self.ends()

    def refuse(self, code: str) -> None:
        """Let every worker from now on be refused at once."""

        def begin(worker: Worker) -> None:
            self.workers.codes[worker.pid] = 3
            self.workers.answers[worker.pid] = {"error": {"reason_code": code, "context": {}}}

        self.workers.begin = begin

    @property
    def told(self) -> list[str]:
        return [each.kind.value for each in self.news]


@pytest.fixture
def house() -> House:
    return House()


@pytest.mark.spec("ISS-12", "SEL-2", "API-1")
def test_ready_issues_start_one_behind_the_other_in_order_as_workers(house: House) -> None:
    house.checkout.add("GH-1", priority="P2")
    house.checkout.add("GH-2", priority="P0")
    house.checkout.add("RQ-1", priority="P0")
    house.at(10, lambda: house.done("GH-2"))
    house.at(20, lambda: house.done("GH-1"))
    house.up(40)
    assert [worker.argv for worker in house.workers.started] == [
        ("--json", "run", "--", "GH-2"),
        ("--json", "run", "--", "GH-1"),
    ]
    assert house.told == ["starts", "starts"]


@pytest.mark.spec("ISS-12")
def test_what_a_hint_tells_of_starts_long_before_the_poll(house: House) -> None:
    house.at(5, lambda: house.checkout.add("GH-1"))
    house.at(5, lambda: house.issues.hint(1))
    house.up(8)
    assert (house.started, house.care.tended, house.care.synced) == (["GH-1"], [1], [0])


@pytest.mark.spec("ISS-12")
@pytest.mark.parametrize("is_queue", [True, False])
def test_while_somebody_is_at_work_or_auto_run_is_on_it_only_looks(house: House, is_queue: bool) -> None:
    house.checkout.add("GH-1")
    locks = house.process(2).engine().locks
    lease = locks.acquire_queue() if is_queue else locks.acquire_request(RequestId("RQ-1"), "RUN-1")
    assert not isinstance(lease, Lock)
    seen: list[int] = []
    house.at(64, lambda: seen.append(len(house.started)))
    house.at(65, lease.release)
    house.up(70)
    assert (seen, house.started, len(house.care.synced)) == ([0], ["GH-1"], 3)


@pytest.mark.spec("ISS-12")
@pytest.mark.parametrize("start", ["off", "queue"])
def test_where_nothing_is_to_start_by_itself_nothing_does(house: House, start: str) -> None:
    house.checkout.settings = made(start)
    house.checkout.add("GH-1")
    house.up(40)
    assert house.started == []


def label(house: House, wish: str = "label:77") -> None:
    """Let an issue ask for a run."""
    house.checkout.add("GH-1", priority="P1")
    house.care.wishes[1] = wish


def tasks(house: House) -> dict[str, str]:
    """All tasks, with how they stand."""
    pages = house.store.queue(NAMESPACE).pages()
    return {task.task_id: task.status.value for page in pages for task in page.tasks}


@pytest.mark.spec("ISS-12", "QUE-9")
def test_a_label_becomes_one_task_of_this_checkout_and_another_wish_another_one(house: House) -> None:
    house.checkout.settings = made("queue")
    opened: list[int] = []
    queue = house.store.queue(NAMESPACE)
    house.at(25, lambda: opened.append(house.opened))
    house.at(26, lambda: label(house))
    house.at(120, lambda: queue.cancel("GH-1.label-77", "CANCELLED", house.time.now()))
    house.at(250, lambda: label(house, "comment:9"))
    house.up(300)
    assert opened == [0]  # no store is started for nothing
    assert tasks(house) == {"GH-1.label-77": "CANCELLED", "GH-1.comment-9": "QUEUED"}
    task = queue.get("GH-1.comment-9")
    assert task is not None
    assert (task.request_id, task.priority, task.checkout) == ("GH-1", Priority.P1, house.checkout.at)


class Heard:
    """A source that writes down what it hears of starts that failed."""

    def __init__(self, source: RequestSource) -> None:
        self._source = source
        self.told: list[tuple[str, NotStarted]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def not_started(self, request_id: RequestId, why: NotStarted) -> None:
        self.told.append((request_id, why))


@pytest.mark.spec("ISS-12", "QUE-11")
@pytest.mark.parametrize("has_runner", [True, False])
def test_a_task_that_no_runner_takes_for_a_minute_is_told_of(house: House, *, has_runner: bool) -> None:
    house.checkout.settings = made("queue")
    label(house)
    desk, engine = house.process(1).desk(house.store, MemoryBells()), house.engine()
    heard = Heard(engine.source)
    engine = replace(engine, source=cast("RequestSource", heard))
    for _ in range(3):
        queue_issues(engine, house.care, lambda: desk)
        assert heard.told == []  # a runner that starts beside the watch is given a minute
        house.time.sleep(20)
    if has_runner:
        desk.runners.save(Runner(NAMESPACE, "R-1", house.checkout.at, house.time.now(), house.time.now()))
    queue_issues(engine, house.care, lambda: desk)
    assert heard.told == ([] if has_runner else [(RequestId("GH-1"), NotStarted(NO_RUNNER))])


@pytest.mark.spec("ISS-12", "RUN-14")
def test_a_task_that_ended_without_a_run_is_made_again_but_not_for_ever(house: House) -> None:
    house.checkout.settings = made("queue")
    label(house)
    desk = house.process(1).desk(house.store, MemoryBells())

    def fail() -> None:
        claimed = desk.queue.claim(desk.claimant, house.time.now())
        if claimed is not None:
            desk.queue.finish(claimed, TaskEnd(TaskEvent.FAILED, "DOCTOR_FAILED: …"), house.time.now())

    for minute in range(1, 20):
        house.at(60 * minute, fail)
    house.up(1200)
    assert tasks(house) == dict.fromkeys(("GH-1.label-77", "GH-1.label-77-2", "GH-1.label-77-3"), "ERROR")


@pytest.mark.spec("ISS-12", "RUN-11")
def test_what_a_crash_left_of_an_issue_is_continued_first(house: House) -> None:
    house.checkout.add("GH-1")
    house.checkout.add("GH-2", "running")
    run = replace(in_step(1), request_id="GH-2", run_id="RUN-20260102-030405-000001")
    house.process(50).engine().runs.create(run, Brief("GH-2", "A title", "", ""))
    house.up(10)
    assert house.started == ["GH-2"]
    assert "continues" in house.told


@pytest.mark.spec("ISS-12", "ISS-11")
def test_trouble_is_told_once_keeps_issues_from_starting_and_ends(house: House) -> None:
    house.checkout.add("GH-1")
    house.care.wrong["sync"] = trouble()
    house.at(100, house.care.wrong.clear)
    house.at(99, lambda: house.news.append(UpNews(UpNewsKind.TROUBLE)) if house.started else None)
    house.up(130)
    assert house.heard == ["GITHUB_UNREACHABLE", None]
    assert (house.started, house.told, house.issues.trouble) == (["GH-1"], ["starts", "left_at_work"], None)
    entries = [(entry.data["event"], entry.reason_code) for entry in house.checkout.journal.entries]
    assert entries == [("github_trouble", "GITHUB_UNREACHABLE"), ("github_back", None)]


@pytest.mark.spec("ISS-12")
def test_settings_that_are_wrong_or_name_no_repository_are_waited_out(house: House) -> None:
    house.checkout.add("GH-1")
    house.checkout.settings = made(repo="")
    house.at(20, lambda: setattr(house, "problem", SettingsError(path="aiflow.toml", key="x", problem="y")))
    house.at(40, lambda: setattr(house, "problem", None))
    house.at(40, lambda: setattr(house.checkout, "settings", made()))
    house.at(39, lambda: setattr(house.care, "due", tuple(map(int, house.care.synced))))
    house.up(60)
    assert (house.care.due, house.started, house.heard) == ((), ["GH-1"], [])


@pytest.mark.spec("ISS-12")
def test_one_that_is_refused_keeps_no_other_back_and_is_told_once(house: House) -> None:
    house.checkout.add("GH-1", priority="P0")
    house.checkout.add("GH-2", priority="P1")
    house.refuse("WORKTREE_DIRTY")
    house.up(300)
    assert house.started[:3] == ["GH-1", "GH-2", "GH-1"]
    assert len(house.started) < 12
    assert house.told.count("start_refused") == 1


@pytest.mark.spec("ISS-12")
def test_one_that_another_checkout_has_is_no_news(house: House) -> None:
    house.checkout.add("GH-1")
    house.refuse("RUN_IN_PROGRESS")
    house.up(20)
    assert house.started
    assert set(house.told) == {"starts"}
