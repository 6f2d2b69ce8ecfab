"""A runner that stays for months keeps nothing of the tasks that it has worked on (QUE-7)."""

from __future__ import annotations

import gc
import sys
import weakref
from itertools import pairwise

import pytest

from aiflow.adapters.memory.queue import MemoryStore
from aiflow.adapters.memory.repository import MemoryRepository
from aiflow.adapters.memory.run_store import MemoryRunFiles
from aiflow.adapters.memory.time import PlayedTime
from aiflow.adapters.memory.wake import MemoryBells
from aiflow.cli.running import expect_to_stay
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.queue.order import Order, new_task
from aiflow.domain.queue.task import TaskAction
from aiflow.usecases.runner.desk import NewsKind, RunnerNews
from aiflow.usecases.runner.work_tasks import work_tasks
from memory_engine import NAMESPACE, MemoryCheckout, MemoryProcess, obliging

PART, LAST = 200, 1000


class Shift:
    """One runner, and tasks that come one after the other; what is on the disk and in the store is wiped behind each."""

    def __init__(self) -> None:
        self.checkout, self.store, self.time = MemoryCheckout(), MemoryStore(), PlayedTime()
        self.process = MemoryProcess(self.checkout, 7, self.time, obliging(self.checkout))
        self.blocks: list[int] = []
        self.ended: set[TaskStatus] = set()
        self.added = 0
        self.add()

    def add(self) -> None:
        """Put the next task into the queue, with nothing left of those before."""
        checkout, now = self.checkout, self.time.now()
        checkout.requests.texts.clear()
        vars(checkout.runs).update(vars(MemoryRunFiles()))
        vars(checkout.repository).update(vars(MemoryRepository.with_files({"README": b"hello\n"})))
        kept = (checkout.journal.entries, checkout.notifier.notes)
        for each in (*kept, self.store.tasks, self.store.prompts, self.store.fences):
            each.clear()
        order = Order(TaskAction.START, checkout.add("RQ-1"), None, task_id=self.process.new_task_id(now))
        self.store.queue(NAMESPACE).enqueue(new_task(NAMESPACE, order, now, checkout.at))
        self.added += 1

    def hear(self, news: RunnerNews) -> None:
        """Count what the process has allocated behind some of the tasks."""
        if news.kind is NewsKind.ENDED and news.task is not None:
            self.ended |= {news.task.status}
            self.time.sleep(3)  # the heartbeat and the reaper have their turns
            if self.added % PART == 0:
                gc.collect()
                self.blocks.append(sys.getallocatedblocks())
            self.add()

    def asked(self) -> StopRequest:
        """Stop behind the last task."""
        return StopRequest.NONE if self.added <= LAST else StopRequest.AFTER_RUN


@pytest.mark.spec("QUE-7")
def test_a_runner_over_a_thousand_tasks_keeps_nothing_of_them() -> None:
    shift = Shift()
    desk = shift.process.desk(shift.store, MemoryBells(), asked=shift.asked, tell=shift.hear)
    assert work_tasks(desk) == LAST
    assert shift.ended == {TaskStatus.COMPLETE}
    # One object a task would be 200 blocks in each part; what Python itself keeps now and then is in one of them.
    assert min(after - before for before, after in pairwise(shift.blocks)) < PART / 2


class Knot:
    """Garbage that only Python's search for it finds, as every call of the store leaves some."""

    def __init__(self) -> None:
        self.end = self


@pytest.mark.spec("QUE-7")
def test_garbage_does_not_pile_up_in_a_process_that_stays() -> None:
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 20)  # as the program begins
    try:
        expect_to_stay()
        refs = [weakref.ref(Knot()) for _ in range(15_000)]
        left = sum(each() is not None for each in refs)
    finally:
        gc.set_threshold(*before)
    assert left < 12_000
