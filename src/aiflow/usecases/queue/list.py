"""List the tasks of a namespace, or of all: a page of them, each with how it looks where it is (QUE-9)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from aiflow.usecases.queue.desk import look_around, look_away
from aiflow.usecases.queue.look import list_tasks, merge_listings, place_of, starts_of, ways_after

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.queue.task import Task
    from aiflow.domain.queue.why_waiting import QueueScene
    from aiflow.usecases.queue.desk import Desk, StoreView
    from aiflow.usecases.queue.look import TaskFilter
    from aiflow.usecases.read_backlog import BacklogSources


class TaskList(NamedTuple):
    """A part of the list, each task with the state of its namespace; `next_start` is where it continues, or None."""

    tasks: tuple[tuple[Task, QueueScene], ...]
    next_start: str | None = None


def list_queue(
    view: StoreView,
    sources: BacklogSources,
    wanted: TaskFilter,
    progress: Callable[[int], None] = lambda _seen: None,
    *,
    is_all: bool = False,
) -> TaskList:
    """Read a page of tasks, and the current state of each namespace that has unfinished ones."""
    names = sorted(view.store.namespaces(progress)) if is_all else [view.namespace]
    desks = {name: view.desk_of(name) for name in names}
    starts = starts_of(wanted.start, names) if is_all else dict.fromkeys(names, wanted.start)
    found = [list_tasks(desk.queue, wanted._replace(start=starts[name]), progress) for name, desk in desks.items()]
    listing = merge_listings(found, wanted.limit) if is_all else found[0]
    scenes = {
        name: _scene(desks[name], sources, [task for task in listing.tasks if task.namespace == name])
        for name in {task.namespace for task in listing.tasks}
    }
    return TaskList(tuple((task, scenes[task.namespace]) for task in listing.tasks), listing.next_start)


def _scene(desk: Desk, sources: BacklogSources, tasks: list[Task]) -> QueueScene:
    """Read the surroundings of unfinished tasks; for those that are over, find what to do next."""
    is_lively = any(not task.is_final for task in tasks)
    scene = look_around(desk, tasks) if is_lively else look_away(desk)
    placed = [(task, place_of(task, scene.runners)) for task in tasks]
    return replace(scene, ways=ways_after(desk, sources, placed))
