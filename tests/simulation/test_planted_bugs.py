"""A test of the simulation: with any one of the fences taken out, it fails within its usual seeds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import cast

import pytest

from aiflow.adapters.memory.leases import MemoryLease
from aiflow.adapters.memory.queue import MemoryQueue, MemoryStore
from aiflow.domain.lifecycle import TASK_TRANSITIONS, TaskStatus
from aiflow.domain.queue.task import Task, TaskEnd
from aiflow.domain.runs.run import Run
from aiflow.ports.tasks import ANY_TERMS, Claimant, ClaimTerms
from aiflow.usecases.runner.claim_in_turn import TurnClaims
from aiflow.usecases.runs.work import Work
from simulation.crowd import a_crowd, some_faults
from simulation.scene import Scene
from simulation.seeds import USUAL
from simulation.world import ViolationError

LONGEST_WRITE_SECONDS = 5

Plant = Callable[[pytest.MonkeyPatch], None]


class SlowStore(MemoryStore):
    """A store with a moment between looking for a task and writing the claim, in which others go on."""

    pause: Callable[[], object] = staticmethod(lambda: None)

    def queue(self, namespace: str) -> SlowQueue:
        return SlowQueue(self, namespace)


class SlowQueue(MemoryQueue):
    """Claims in two steps, the second under the condition that the task still waits: or without, where that is planted."""

    has_condition = True

    def claim(self, claimant: Claimant, now: datetime, terms: ClaimTerms = ANY_TERMS) -> Task | None:
        seen = self._first(claimant, terms)
        if seen is None or not terms.is_our_turn():
            return None
        cast(SlowStore, self.store).pause()
        there = self.get(seen.task_id)
        if there is None or (self.has_condition and there.status is not TaskStatus.QUEUED):
            return None
        return self._claimed(replace(there, status=TaskStatus.QUEUED), claimant, now)


def without_claim_condition(patch: pytest.MonkeyPatch) -> None:
    """Whoever saw a task waiting claims it, also if somebody else has meanwhile."""
    patch.setattr(SlowQueue, "has_condition", False)


def without_claimed_by(patch: pytest.MonkeyPatch) -> None:
    """A task is ended by whoever says so."""

    def finish(self: MemoryQueue, task: Task, end: TaskEnd, now: datetime) -> Task:
        status = TASK_TRANSITIONS[TaskStatus.RUNNING, end.event]
        there = self.get(task.task_id) or task
        return self._save(replace(there, status=status, error_message=end.error_message, updated_at=now))

    patch.setattr(MemoryQueue, "finish", finish)


def without_lock_token(patch: pytest.MonkeyPatch) -> None:
    """A lease takes any lock for its own."""
    patch.setattr(MemoryLease, "_is_ours", lambda self: self._name in self._table.locks)


def without_turn(patch: pytest.MonkeyPatch) -> None:
    """A runner claims and waits for its turn only then."""
    patch.setattr(TurnClaims, "_take_turn", lambda _self, rival: rival is None)


def without_guard(patch: pytest.MonkeyPatch) -> None:
    """A request may have several live tasks."""
    patch.setattr(MemoryQueue, "_refuse_second", lambda _self, _task: None)


def without_counting(patch: pytest.MonkeyPatch) -> None:
    """A call is written down with what came of it, not before."""
    saved = Work.save

    @functools.wraps(saved)
    def save(self: Work, run: Run) -> None:
        if run.visit.calling is not None and self.run.visit.calling is None:
            self.run = run
        else:
            saved(self, run)

    patch.setattr(Work, "save", save)


def play(seed: int) -> None:
    """Play one history with a store that claims in two steps."""
    store = SlowStore()
    scene = Scene(seed, store)
    # Long enough for the others, or what is planted there is found in one history of a hundred, or in none.
    store.pause = lambda: scene.world.sleep(scene.random.uniform(0, LONGEST_WRITE_SECONDS))
    scene.play(a_crowd, some_faults(scene))


def test_with_every_fence_there_is_nothing_to_be_found() -> None:
    for seed in range(20):
        play(seed)


@pytest.mark.parametrize(
    ("plant", "told"),
    [
        (without_claim_condition, "was claimed again|now RUNNING"),
        (without_claimed_by, "was ERROR|was CANCELLED|was COMPLETE"),
        (
            without_lock_token,
            "without the lock|is made twice|without a lock|at work at once|uncounted|without its turn",
        ),
        (without_turn, "without its turn"),
        (without_guard, "two live tasks"),
        (without_counting, "uncounted"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_fence_that_is_taken_out_is_missed(plant: Plant, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(ViolationError, match=told) as found:
        for seed in range(USUAL):
            play(seed)
    assert "AIFLOW_SEED=" in found.value.__notes__[0]
