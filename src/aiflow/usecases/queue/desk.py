"""What everything about the queue works with: the tasks and runners of one namespace, seen from one checkout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aiflow.domain.next_action import START_RUNNER
from aiflow.domain.queue.why_waiting import Line, QueueScene, lines_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from aiflow.domain.lock import Lock
    from aiflow.domain.next_action import NextAction
    from aiflow.domain.queue.runner import Runner
    from aiflow.domain.queue.task import Checkout, Task
    from aiflow.ports import Journal, LockView, Time
    from aiflow.ports.tasks import QueueStore, RunnerRecords, TaskQueue, Wake

# How many places of a line are read to count the tasks ahead of one; beyond that, "at least" is good enough.
LINE_PLACES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """One namespace of a store, and the checkout it is looked at from.

    `start` is what starts a runner of this namespace, `is_own` whether
    it is the project's. `is_gone` returns whether a runner's process is provably gone, which only its own machine can
    know.
    """

    queue: TaskQueue
    runners: RunnerRecords
    checkout: Checkout
    locks: LockView
    wake: Wake
    journal: Journal
    time: Time
    new_task_id: Callable[[datetime], str]
    timeout_seconds: float
    start: NextAction = START_RUNNER
    is_own: bool = True
    is_gone: Callable[[Runner], bool] = lambda _runner: False


@dataclass(frozen=True, slots=True)
class StoreView:
    """A whole store, seen from one checkout: the project's own namespace, the one that is asked about, and a desk each.

    The store is opened when it is asked; after `timeout_seconds` of silence a runner counts as gone.
    """

    store: QueueStore
    own: str
    namespace: str
    desk_of: Callable[[str], Desk]
    time: Time
    timeout_seconds: float
    is_gone: Callable[[Runner], bool] = lambda _runner: False

    @property
    def desk(self) -> Desk:
        """The namespace that is asked about."""
        return self.desk_of(self.namespace)


def look_around(desk: Desk, tasks: Iterable[Task]) -> QueueScene:
    """Read what the standing of tasks depends on: runners, what is in line, and who runs in this checkout."""
    runners = desk.runners.all()
    gone = frozenset(runner.runner_id for runner in runners if not runner.is_at_rest and desk.is_gone(runner))
    scene = replace(look_away(desk), runners=runners, holder=_holder(desk), start=desk.start, gone=gone)
    return replace(scene, line=_line(desk, lines_ahead(tasks, scene)))


def look_away(desk: Desk) -> QueueScene:
    """Give what is known without a look: enough for tasks that are over."""
    return QueueScene(desk.time.now(), desk.timeout_seconds, desk.checkout)


def _line(desk: Desk, checkouts: Iterable[Checkout | None]) -> Line:
    places = {each.id if each else None: desk.queue.waiting(each, LINE_PLACES) for each in checkouts}
    return Line(places, frozenset(owner for owner, read in places.items() if len(read) == LINE_PLACES))


def _holder(desk: Desk) -> Lock | None:
    """Return who runs in this checkout: a runner there claims nothing until that is over (LCK-7)."""
    return desk.locks.holder()
