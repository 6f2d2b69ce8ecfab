"""Ports whose every call is a step of the world, and is looked at once it has happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiflow.adapters.memory.leases import MemoryLease
from aiflow.domain.lifecycle import TaskStatus
from simulation.world import World, no_answer

STORE = frozenset({"queue", "records"})
# Asked all the time and answered from memory: no step of interest.
PLAIN = frozenset({"log_path", "worktree_path", "limit_seconds", "program_of", "find_program", "namespace"})
Watch = Callable[[str, str, tuple[Any, ...], Any], None]


class SteppedPort:
    """A port of one process; `watch` hears of every call that was carried out."""

    def __init__(self, world: World, name: str, port: Any, watch: Watch) -> None:
        self._world = world
        self._name = name
        self._port = port
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found) or name in PLAIN:
            return found
        call = self._stored(name, found) if self._name in STORE else self._stepped(name, found)
        self.__dict__[name] = call
        return call

    def _stepped(self, name: str, found: Callable[..., Any]) -> Callable[..., Any]:
        world, port, watch, label = self._world, self._name, self._watch, f"{self._name}.{name}"

        def call(*args: Any, **more: Any) -> Any:
            world.step(label)
            answer = found(*args, **more)
            watch(port, name, args, answer)
            return SteppedPort(world, "lease", answer, watch) if isinstance(answer, MemoryLease) else answer

        return call

    def _stored(self, name: str, found: Callable[..., Any]) -> Callable[..., Any]:
        world, port, watch, label = self._world, self._name, self._watch, f"{self._name}.{name}"

        def call(*args: Any, **more: Any) -> Any:
            lost = world.step(label, is_store=True)
            if lost == "before":
                raise no_answer()
            answer = found(*args, **more)
            watch(port, name, args, answer)
            if lost == "after":
                raise no_answer()
            return answer

        return call


class ResolvingQueue:
    """A queue that finds out what became of a claim whose answer was lost, as the port promises."""

    def __init__(self, queue: Any, real: Any) -> None:
        self._queue = queue
        self._real = real
        self._mine: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def claim(self, claimant: Any, now: Any, terms: Any) -> Any:
        """Claim the next task, or take the one that was claimed and never seen."""
        held = self._real.tasks_of(claimant.runner_id)
        unseen = next((task for task in held if task.claim_token not in self._mine), None)
        if unseen is not None and not terms.is_our_turn():
            return None
        if unseen is not None and unseen.status is TaskStatus.RUNNING:
            unseen = self._queue.get(unseen.task_id)
        task = unseen or self._queue.claim(claimant, now, terms)
        if task is not None:
            self._mine.add(task.claim_token)
        return task
