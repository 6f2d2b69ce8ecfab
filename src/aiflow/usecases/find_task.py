"""Find a task by its id, or say which one may have been meant."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from aiflow.domain.task import LIVE_STATUSES
from aiflow.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.domain.task import Task
    from aiflow.ports.tasks import TaskQueue

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
    """Return the task that was meant: the live one of a request of that name, or one with nearly that id."""
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
