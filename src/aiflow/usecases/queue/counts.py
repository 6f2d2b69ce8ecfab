"""Count tasks by status, of one namespace or of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiflow.domain.lifecycle import TaskStatus
    from aiflow.usecases.queue.desk import StoreView


def count_tasks(
    view: StoreView, progress: Callable[[int], None] = lambda _seen: None, *, is_all: bool = False
) -> dict[str, Mapping[TaskStatus, int]]:
    """Return how many tasks of each status there are, by namespace and in the order of their names."""
    if not is_all:
        return {view.namespace: view.store.queue(view.namespace).counts(progress)}
    found = view.store.namespaces(progress)
    return {name: found[name] for name in sorted(found)}
