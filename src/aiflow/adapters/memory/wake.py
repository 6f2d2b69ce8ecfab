"""Runners in memory that wake each other."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiflow.ports import Time


@dataclass
class MemoryBells:
    """The bells of a machine's runners: by namespace and runner, the tasks each was notified of but has not heard."""

    rung: defaultdict[str, dict[str, dict[str, None]]] = field(default_factory=lambda: defaultdict(dict))


class MemoryWake:
    """One runner's bell, or (without a runner's id) the way to ring those of others."""

    def __init__(self, bells: MemoryBells, time: Time, namespace: str = "", runner_id: str | None = None) -> None:
        self._bells = bells
        self._time = time
        self._namespace = namespace
        self._runner_id = runner_id
        if runner_id is not None:
            bells.rung[namespace][runner_id] = {}

    def wait(self, seconds: float) -> tuple[str, ...]:
        """Wait for news at most this long; returns the ids of tasks that were named."""
        if not self._told():
            self._time.sleep(seconds)
        heard = tuple(self._told())
        self._told().clear()
        return heard

    def poke(self, namespace: str, task_id: str) -> int:
        """Notify every runner of a namespace of a task, and return how many heard."""
        for told in self._bells.rung[namespace].values():
            told[task_id] = None
        return len(self._bells.rung[namespace])

    def close(self) -> None:
        """Receive no more notifications."""
        self._bells.rung[self._namespace].pop(self._runner_id or "", None)

    def _told(self) -> dict[str, None]:
        return self._bells.rung[self._namespace].get(self._runner_id or "", {})
