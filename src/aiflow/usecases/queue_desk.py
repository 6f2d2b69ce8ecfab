"""What everything about the queue works with: the tasks and runners of one namespace, seen from one checkout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aiflow.domain.standing import Line, Scene, lines_ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aiflow.domain.lock import Lock
    from aiflow.domain.runner import Runner
    from aiflow.domain.task import Checkout, Task
    from aiflow.ports import Clock, Journal, LockView
    from aiflow.ports.tasks import RunnerRecords, TaskQueue, Wake

# So many places of a line are read to say what is ahead of a task; behind that, "at least" is good enough.
LINE_PLACES = 1000


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


def look_around(desk: QueueDesk, tasks: Iterable[Task]) -> Scene:
    """Read what the standing of tasks depends on: runners, what is in line, and who runs in this checkout."""
    runners = desk.runners.all()
    gone = frozenset(runner.runner_id for runner in runners if not runner.is_at_rest and desk.is_gone(runner))
    scene = replace(look_away(desk), runners=runners, holder=_holder(desk), command=desk.command, gone=gone)
    return replace(scene, line=_line(desk, lines_ahead(tasks, scene)))


def look_away(desk: QueueDesk) -> Scene:
    """Give what is known without a look: enough for tasks that are over."""
    return Scene(desk.clock(), desk.timeout_seconds, desk.checkout)


def _line(desk: QueueDesk, checkouts: Iterable[Checkout | None]) -> Line:
    places = {each.id if each else None: desk.queue.waiting(each, LINE_PLACES) for each in checkouts}
    return Line(places, frozenset(owner for owner, read in places.items() if len(read) == LINE_PLACES))


def _holder(desk: QueueDesk) -> Lock | None:
    """Return who runs in this checkout: a runner there claims nothing until that is over (LCK-7)."""
    return next(iter(desk.locks.held()[0].values()), None)
