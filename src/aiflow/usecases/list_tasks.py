"""List tasks by id, newest first, as many as are wanted (QUE-9); more can be had from where the list ends.

The store keeps them in the order of their ids; an id that somebody chose stands where its name does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from aiflow.domain.lifecycle import TaskStatus
    from aiflow.domain.task import Task
    from aiflow.ports.tasks import TaskPage, TaskQueue


# Behind an id comes nothing smaller than this: the list that starts there has that very id, too.
_LEAST = "\x01"


class Listing(NamedTuple):
    """A part of the list; `next_start` is where it goes on, None at its end."""

    tasks: tuple[Task, ...]
    next_start: str | None = None


class Wanted(NamedTuple):
    """What is to be listed."""

    statuses: Collection[TaskStatus] = ()
    limit: int = 20
    start: str | None = None


def list_tasks(queue: TaskQueue, wanted: Wanted, progress: Callable[[int], None] = lambda _seen: None) -> Listing:
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

    Where it goes on is named by the last task and its namespace, for the same id may be in several.
    """
    parts = list(listings)
    by_name = sorted((task for part in parts for task in part.tasks), key=lambda task: task.namespace)
    tasks = sorted(by_name, key=lambda task: task.task_id, reverse=True)
    if len(tasks) <= limit and all(part.next_start is None for part in parts):
        return Listing(tuple(tasks))
    last = tasks[limit - 1]
    return Listing(tuple(tasks[:limit]), f"{last.namespace}/{last.task_id}")


def starts_of(start: str | None, namespaces: Collection[str]) -> dict[str, str | None]:
    """Return where the list of each namespace goes on, from where all of them together do.

    Namespaces behind that of the last task still have theirs of the same id, if there is one.
    """
    at = max((name for name in namespaces if (start or "").startswith(f"{name}/")), key=len, default=None)
    if start is None or at is None:
        return dict.fromkeys(namespaces, start)
    task_id = start.removeprefix(f"{at}/")
    return {name: task_id if name <= at else f"{task_id}{_LEAST}" for name in namespaces}
