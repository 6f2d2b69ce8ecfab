"""What a runner and an auto-run hold to from their start (AUT-5, RUN-7): the base branch, and a checkout that was clean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aiflow.adapters.memory.queue import MemoryStore
from aiflow.adapters.memory.time import PlayedTime
from aiflow.adapters.memory.wake import MemoryBells
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.auto.session import AutoSession
from aiflow.domain.lifecycle import AutoRunState, TaskStatus
from aiflow.errors import AiflowError
from aiflow.messages import Texts
from aiflow.settings import Source, settle
from aiflow.usecases.auto.run import auto_run, limits_of
from aiflow.usecases.auto.shift import AutoTerms
from aiflow.usecases.engine import Engine
from aiflow.usecases.runner.desk import RunnerNews
from aiflow.usecases.runner.work_tasks import work_tasks
from memory_engine import NAMESPACE, MemoryCheckout, MemoryProcess, obliging
from task_builders import a_task

HEADS = "refs/heads/"


class Desk:
    """A checkout whose person goes to another branch and edits a file as soon as an agent is at work."""

    def __init__(self, **settings: Any) -> None:
        self.checkout = MemoryCheckout(settings=settle({Source.FILE: {"accept": "auto", **settings}}))
        self.time = PlayedTime()
        self.news: list[RunnerNews] = []
        repository = self.checkout.repository
        repository.refs[f"{HEADS}feature"] = repository.refs[f"{HEADS}main"]

    def engine(self) -> Engine:
        return MemoryProcess(self.checkout, 7, self.time, self._script()).engine()

    def _script(self) -> Callable[..., AgentReply]:
        oblige = obliging(self.checkout)

        def script(call: AgentCall, output: Callable[[bytes], None], should_stop: Callable[[], bool]) -> AgentReply:
            if call.role is Role.PLANNER:
                self.checkout.repository.head, self.checkout.repository.dirty = "feature", ("app.txt",)
            return oblige(call, output, should_stop)

        return script

    def run_tasks(self, *request_ids: str) -> list[TaskStatus]:
        """Let a runner work on a task for each of these requests."""
        store = MemoryStore()
        queue = store.queue(NAMESPACE)
        for number, request_id in enumerate(request_ids, 1):
            self.checkout.add(request_id)
            queue.enqueue(a_task(number, NAMESPACE, request_id=request_id, checkout=self.checkout.at))
        process = MemoryProcess(self.checkout, 7, self.time, self._script())
        work_tasks(process.desk(store, MemoryBells(), tell=self.news.append), is_once=True)
        found = (queue.get(f"TASK-{number:04d}") for number in range(1, len(request_ids) + 1))
        return [task.status for task in found if task is not None]

    def auto(self) -> AutoSession:
        engine = self.engine()
        terms = AutoTerms(self.checkout.session, limits_of(engine.settings), Texts("en"))
        return auto_run(engine, terms).session

    def files(self, branch: str) -> set[str]:
        return set(self.checkout.repository.files_of(f"{HEADS}{branch}"))


@pytest.mark.spec("AUT-5", "RUN-7")
def test_a_runner_works_on_for_the_branch_it_began_with_whatever_a_person_does() -> None:
    desk = Desk()
    assert desk.run_tasks("RQ-1", "RQ-2") == [TaskStatus.COMPLETE, TaskStatus.COMPLETE]
    assert desk.news[0].facts == {"base_branch": "main"}
    assert (desk.files("main"), desk.files("feature")) == ({"README", "RQ-1.txt", "RQ-2.txt"}, {"README"})


@pytest.mark.spec("RUN-7")
def test_a_runner_that_begins_among_edits_takes_nothing() -> None:
    desk = Desk()
    desk.checkout.repository.dirty = ("app.txt",)
    with pytest.raises(AiflowError) as refused:
        desk.run_tasks("RQ-1")
    assert refused.value.reason_code == "WORKTREE_DIRTY"


@pytest.mark.spec("AUT-5", "AUT-4", "RUN-7")
def test_an_auto_run_that_is_taken_up_again_keeps_its_base_and_that_it_began_clean() -> None:
    desk = Desk()
    desk.checkout.add("RQ-1")
    first = desk.auto()
    assert (first.base_branch, first.began_clean, first.done) == ("main", True, 1)
    # A crash: the process is gone, the person is still on another branch with an edit.
    desk.checkout.session.session = AutoSession(
        first.started_at, state=AutoRunState.RUNNING, base_branch="main", began_clean=True
    )
    desk.checkout.add("RQ-2")
    assert (desk.auto().base_branch, desk.files("feature")) == ("main", {"README"})
    assert "RQ-2.txt" in desk.files("main")
    # A new one begins anew.
    desk.checkout.add("RQ-3")
    assert desk.auto().reason_code == "DOCTOR_FAILED"
    desk.checkout.repository.dirty = ()
    assert (desk.auto().base_branch, "RQ-3.txt" in desk.files("feature")) == ("feature", True)


@pytest.mark.spec("AUT-5", "CFG")
def test_the_settings_name_the_base_before_all_else() -> None:
    desk = Desk(base_branch="feature")
    desk.checkout.add("RQ-1")
    assert (desk.auto().base_branch, desk.files("main")) == ("feature", {"README"})
    assert "RQ-1.txt" in desk.files("feature")
