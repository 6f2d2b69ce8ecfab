"""Find what to do behind ended tasks, and where their work is: here as it stands, elsewhere as they tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.request import Request, RequestId
from aiflow.domain.task_way import WayAfter, has_way, next_command, next_command_here
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from aiflow.domain.runner import Runner
    from aiflow.domain.task import Checkout, Task
    from aiflow.usecases.queue_desk import QueueDesk
    from aiflow.usecases.read_backlog import BacklogSources


def ways_after(
    desk: QueueDesk, sources: BacklogSources, tasks: Iterable[tuple[Task, Checkout | None]]
) -> Mapping[str, WayAfter]:
    """Return what to do next by task id, for tasks and the checkouts their work is in; of a request's only the newest.

    What was tried before is past. Where a task of the request lives that is not among them, the way is to look at that.
    """
    newest: dict[str, tuple[Task, Checkout | None]] = {}
    for task, where in sorted(tasks, key=lambda pair: pair[0].created_at, reverse=True):
        newest.setdefault(task.request_id, (task, where))
    found = ((task, _way(sources, desk.checkout, task, where)) for task, where in newest.values() if has_way(task))
    return {task.task_id: _by_now(desk, task, way) for task, way in found if way is not None}


def _by_now(desk: QueueDesk, task: Task, way: WayAfter) -> WayAfter:
    """Lead to the live task of the request, if there is one: it does what was to be done."""
    live = desk.queue.live_of(task.request_id)
    if live is not None and live.task_id != task.task_id:
        way = WayAfter(f"aiflow queue show {live.task_id}")
    is_queues = way.command.startswith("aiflow queue ") and not desk.is_own
    return way._replace(command=f"{way.command} --namespace {desk.queue.namespace}") if is_queues else way


def _way(sources: BacklogSources, here: Checkout, task: Task, where: Checkout | None) -> WayAfter | None:
    request_id = RequestId(task.request_id)
    if where in (None, here):
        try:
            request = sources.requests.read(request_id)
            if isinstance(request, Request):
                command = next_command_here(task, request, sources.runs.latest([request_id]).get(request_id))
                return WayAfter(command) if command else None
        except AiflowError:
            pass  # it is not here, or cannot be read: what the task tells has to do
    command = next_command(task)
    return WayAfter(command, None if where == here else where) if command and where else None


def place_of(task: Task, runners: Iterable[Runner]) -> Checkout | None:
    """Return the checkout that a task's work is in: its own, or that of whoever took it."""
    return task.checkout or next((each.checkout for each in runners if each.runner_id == task.claimed_by), None)


def find_place(desk: QueueDesk, task: Task) -> Checkout | None:
    """Return the checkout that has a task, also where its runner's record is gone: what goes on with it is there."""
    seen = set()
    for each in _line_of(desk, task):
        if each.task_id in seen:
            break
        seen.add(each.task_id)
        if place := place_of(each, desk.runners.all() if each.claimed_by and each.checkout is None else ()):
            return place
    return None


def _line_of(desk: QueueDesk, task: Task) -> Iterator[Task]:
    """Give a task and those that go on with it."""
    following: Task | None = task
    while following is not None:
        yield following
        following = desk.queue.get(following.successor) if following.successor else None
