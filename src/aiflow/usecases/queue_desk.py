"""What everything about the queue works with: the tasks and runners of one namespace, seen from one checkout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.domain.standing import Scene, line_of
from aiflow.domain.task import LIVE_STATUSES

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.lock import Lock
    from aiflow.domain.runner import Runner
    from aiflow.domain.standing import Line
    from aiflow.domain.task import Checkout, Task
    from aiflow.ports import Clock, Journal, LockView
    from aiflow.ports.tasks import RunnerRecords, TaskQueue, Wake

# So many pages of at most 1 MB are read to say what is ahead of a task; behind that, "at least" is good enough.
LINE_PAGES = 10


@dataclass(frozen=True, slots=True)
class QueueDesk:
    """One namespace of a store, and the checkout it is looked at from.

    `chance` gives six hex digits for a new id; `command` is what starts a runner of this namespace, `is_own` whether
    it is the project's. `is_gone` tells whether a runner's process is provably dead, which only its own machine can
    know.
    """

    queue: TaskQueue
    runners: RunnerRecords
    checkout: Checkout
    locks: LockView
    wake: Wake
    journal: Journal
    clock: Clock
    chance: Callable[[], str]
    timeout_seconds: float
    command: str = "aiflow runner"
    is_own: bool = True
    is_gone: Callable[[Runner], bool] = lambda _runner: False


def look_around(desk: QueueDesk, progress: Callable[[int], None] = lambda _seen: None) -> Scene:
    """Read what the standing of a task depends on: runners, what is in line, and who runs in this checkout."""
    runners = desk.runners.all()
    line = _line(desk, progress)
    gone = frozenset(runner.runner_id for runner in runners if not runner.is_at_rest and desk.is_gone(runner))
    now, holder = desk.clock(), _holder(desk)
    return Scene(now, desk.timeout_seconds, desk.checkout, runners, line, holder, desk.command, gone)


def look_away(desk: QueueDesk) -> Scene:
    """Give what is known without a look: enough for tasks that are over."""
    return Scene(desk.clock(), desk.timeout_seconds, desk.checkout)


def _line(desk: QueueDesk, progress: Callable[[int], None]) -> Line:
    live: list[Task] = []
    for number, page in enumerate(desk.queue.pages(LIVE_STATUSES), 1):
        live += page.tasks
        progress(len(live))
        if number == LINE_PAGES and page.next_start is not None:
            return line_of(live, is_whole=False)
    return line_of(live)


def _holder(desk: QueueDesk) -> Lock | None:
    """Return who runs in this checkout: a runner there claims nothing until that is over (LCK-7)."""
    return next(iter(desk.locks.held()[0].values()), None)
