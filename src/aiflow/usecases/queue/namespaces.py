"""List the namespaces of a store: their tasks counted, and who works there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.queue.runner import is_alive

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiflow.domain.lifecycle import TaskStatus
    from aiflow.domain.queue.runner import Runner
    from aiflow.usecases.queue.desk import StoreView


class NamespaceList(NamedTuple):
    """The tasks of each namespace, counted, the running runners, and which namespace is the project's own."""

    counts: Mapping[str, Mapping[TaskStatus, int]]
    alive: tuple[Runner, ...]
    own: str


def list_namespaces(view: StoreView, progress: Callable[[int], None] = lambda _seen: None) -> NamespaceList:
    """Look at every namespace that has tasks or runners."""
    counts = view.store.namespaces(progress)
    now = view.time.now()
    fresh = (each for each in view.store.all_runners() if is_alive(each, now, view.timeout_seconds))
    return NamespaceList(counts, tuple(each for each in fresh if not view.is_gone(each)), view.own)
