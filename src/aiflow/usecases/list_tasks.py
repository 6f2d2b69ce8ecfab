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
    """Put the lists of several namespaces together, newest first; there is no one place where they go on."""
    tasks = sorted(
        (task for listing in listings for task in listing.tasks), key=lambda task: task.created_at, reverse=True
    )
    return Listing(tuple(tasks[:limit]))
