"""Look at tasks (QUE-9): list them, find one by its id, and find the next step after ended ones."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.next_action import OF_THE_QUEUE, ActionKind, NextAction
from aiflow.domain.queue.next_step import WayAfter, has_way, next_step, next_step_here
from aiflow.domain.queue.task import LIVE_STATUSES
from aiflow.domain.request import RequestId
from aiflow.errors import AiflowError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from aiflow.domain.lifecycle import TaskStatus
    from aiflow.domain.queue.runner import Runner
    from aiflow.domain.queue.task import Checkout, Task
    from aiflow.ports.tasks import TaskPage, TaskQueue
    from aiflow.usecases.queue.desk import Desk
    from aiflow.usecases.read_backlog import BacklogSources


# Nothing smaller than this comes after an id: the list that starts there has that very id, too.
_LEAST = "\x01"


class Listing(NamedTuple):
    """A part of the list; `next_start` is where it continues, None at its end."""

    tasks: tuple[Task, ...]
    next_start: str | None = None


class TaskFilter(NamedTuple):
    """What is to be listed."""

    statuses: Collection[TaskStatus] = ()
    limit: int = 20
    start: str | None = None


def list_tasks(queue: TaskQueue, wanted: TaskFilter, progress: Callable[[int], None] = lambda _seen: None) -> Listing:
    """List tasks of one namespace."""
    found: list[Task] = []
    pages: Iterable[TaskPage] = queue.pages(wanted.statuses, wanted.start)
    for page in pages:
        found += page.tasks
        progress(len(found))
        if len(found) > wanted.limit or (len(found) == wanted.limit and page.next_start is not None):
            return Listing(tuple(found[: wanted.limit]), found[wanted.limit - 1].task_id)
    return Listing(tuple(found))


def merge_listings(listings: Iterable[Listing], limit: int) -> Listing:
    """Put the lists of several namespaces together, in the same order; tasks of one id by their namespaces.

    The last task and its namespace name where it continues, because the same id may be in several.
    """
    parts = list(listings)
    by_name = sorted((task for part in parts for task in part.tasks), key=lambda task: task.namespace)
    tasks = sorted(by_name, key=lambda task: task.task_id, reverse=True)
    if len(tasks) <= limit and all(part.next_start is None for part in parts):
        return Listing(tuple(tasks))
    last = tasks[limit - 1]
    return Listing(tuple(tasks[:limit]), f"{last.namespace}/{last.task_id}")


def starts_of(start: str | None, namespaces: Collection[str]) -> dict[str, str | None]:
    """Return where the list of each namespace continues, from where all of them together do.

    Namespaces after that of the last task still have their task of the same id, if there is one.
    """
    at = max((name for name in namespaces if (start or "").startswith(f"{name}/")), key=len, default=None)
    if start is None or at is None:
        return dict.fromkeys(namespaces, start)
    task_id = start.removeprefix(f"{at}/")
    return {name: task_id if name <= at else f"{task_id}{_LEAST}" for name in namespaces}


# Who mistypes means something recent: so many tasks are looked through, and no more.
KNOWN_TASKS = 500


def find_task(queue: TaskQueue, task_id: str) -> Task:
    """Return a task as it is now, or raise TASK_NOT_FOUND, with a close match where there is one."""
    found = queue.get(task_id)
    if found is None:
        raise not_found(queue, task_id)
    return found


def not_found(queue: TaskQueue, task_id: str) -> NotFoundError:
    """Name a task that does not exist; `meant` is what may have been meant."""
    facts = {"task_id": task_id, "namespace": queue.namespace}
    meant = close_match(queue, task_id)
    return NotFoundError(reason_code="TASK_NOT_FOUND", **facts, **({"meant": meant} if meant else {}))


def close_match(queue: TaskQueue, name: str) -> str | None:
    """Return the task that was meant: the unfinished one of a request of that name, or one with nearly that id."""
    import difflib

    known = list(islice(_recent(queue), KNOWN_TASKS))
    of_request = (task for task in known if task.request_id == name)
    best = min(of_request, key=lambda task: task.status not in LIVE_STATUSES, default=None)
    if best is not None:
        return best.task_id
    ids = {task.task_id.casefold(): task.task_id for task in known}
    close = difflib.get_close_matches(name.casefold(), ids, n=1, cutoff=0.8)
    return ids[close[0]] if close else None


def _recent(queue: TaskQueue) -> Iterator[Task]:
    for page in queue.pages():
        yield from page.tasks


def ways_after(
    desk: Desk, sources: BacklogSources, tasks: Iterable[tuple[Task, Checkout | None]]
) -> Mapping[str, WayAfter]:
    """Return what to do next by task id, for tasks and the checkouts their work is in; of a request's only the newest.

    Earlier tries no longer count. If the request has an unfinished task that is not among them, look at that one.
    """
    newest: dict[str, tuple[Task, Checkout | None]] = {}
    for task, where in sorted(tasks, key=lambda pair: pair[0].created_at, reverse=True):
        newest.setdefault(task.request_id, (task, where))
    found = ((task, _way(sources, desk.checkout, task, where)) for task, where in newest.values() if has_way(task))
    return {task.task_id: _by_now(desk, task, way) for task, way in found if way is not None}


def _by_now(desk: Desk, task: Task, way: WayAfter) -> WayAfter:
    """Point to the unfinished task of the request, if there is one: it does the work."""
    live = desk.queue.live_of(task.request_id)
    if live is not None and live.task_id != task.task_id:
        way = WayAfter(NextAction(ActionKind.QUEUE_SHOW, task_id=live.task_id))
    is_elsewhere = way.action.kind in OF_THE_QUEUE and not desk.is_own
    return way._replace(action=way.action.having(namespace=desk.queue.namespace)) if is_elsewhere else way


def _way(sources: BacklogSources, here: Checkout, task: Task, where: Checkout | None) -> WayAfter | None:
    request_id = RequestId(task.request_id)
    if where in (None, here):
        try:
            request = sources.requests.load(request_id)
            action = next_step_here(task, request, sources.runs.latest([request_id]).get(request_id))
            return WayAfter(action) if action else None
        except AiflowError:
            pass  # it is not here, or cannot be read: use what the task says
    action = next_step(task)
    return WayAfter(action, None if where == here else where) if action and where else None


def place_of(task: Task, runners: Iterable[Runner]) -> Checkout | None:
    """Return the checkout that a task's work is in: its own, or that of the runner that took it."""
    return task.checkout or next((each.checkout for each in runners if each.runner_id == task.claimed_by), None)


def find_place(desk: Desk, task: Task) -> Checkout | None:
    """Return the checkout that has a task, even if its runner's record is gone: then that of its successor."""
    seen = set()
    for each in _line_of(desk, task):
        if each.task_id in seen:
            break
        seen.add(each.task_id)
        if place := place_of(each, desk.runners.all() if each.claimed_by and each.checkout is None else ()):
            return place
    return None


def _line_of(desk: Desk, task: Task) -> Iterator[Task]:
    """Yield a task and its successors."""
    following: Task | None = task
    while following is not None:
        yield following
        following = desk.queue.get(following.successor) if following.successor else None
