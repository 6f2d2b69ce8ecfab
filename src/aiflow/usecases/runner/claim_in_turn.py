"""Claim a task only with the checkout's turn (QUE-5), so that a RUNNING task is being worked on.

The turn is taken once there is something to claim, and given back at once if it was not to be had. While somebody else
runs here, the task stays in the queue, and an auto-run learns that a runner waits (LCK-7).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.lifecycle import TaskStatus
from aiflow.domain.lock import Lock
from aiflow.domain.queue.task import auto_run_guard
from aiflow.ports.tasks import ClaimTerms
from aiflow.usecases.runs.locks import LOOK_SECONDS, occupant, release_turn

if TYPE_CHECKING:
    from aiflow.domain.queue.task import Task
    from aiflow.ports import Lease
    from aiflow.usecases.runner.desk import RunnerDesk

# While waiting for a turn it looks at the queue this often, whatever the poll: a holder may crash, a task be cancelled.
MOST_WAIT_SECONDS = 1.0


class TurnClaims:
    """A runner's claims; `rival` kept the last one from its turn, `auto_rival` an auto-run's task from its start."""

    def __init__(self, desk: RunnerDesk) -> None:
        self.rival: Lock | None = None
        self.auto_rival: Lock | None = None
        self._desk = desk
        self._turn: Lease | None = None
        self._waiting = contextlib.ExitStack()
        self._is_waiting = False

    @property
    def is_anything_left(self) -> bool:
        """Whether a task is in the queue that waits for the process at work here."""
        return self.rival is not None or self.auto_rival is not None

    def claim(self, rival: Lock | None) -> Task | None:
        """Claim the next task if it is our turn; `rival` is who is known to run here, and keeps us from it."""
        self.rival = None
        terms = ClaimTerms(lambda: self._take_turn(rival), self._not_now())
        task = None
        try:
            task = self._desk.queue.claim(self._desk.claimant, self._desk.engine.time.now(), terms)
        finally:
            if task is None:
                self.give_back()
        if self.rival is None:
            self.stop_waiting()
        return task

    def hand_over(self) -> Lease | None:
        """Give the turn to the work on the claimed task."""
        turn, self._turn = self._turn, None
        return turn

    def give_back(self) -> None:
        """Let others have the turn."""
        release_turn(self.hand_over())

    def stop_waiting(self) -> None:
        """Want no turn any more."""
        self._waiting.close()
        self._is_waiting = False

    def wait_for_turn(self) -> None:
        """Wait until no run is active here, a stop is asked for, there is news, or it is time to check the queue."""
        desk, time = self._desk, self._desk.engine.time
        until = time.monotonic() + min(desk.pace.poll_seconds, MOST_WAIT_SECONDS)
        while (left := until - time.monotonic()) > 0 and desk.asked() is StopRequest.NONE and occupant(desk.engine):
            if desk.wake.wait(min(left, LOOK_SECONDS)):
                return

    def _take_turn(self, rival: Lock | None) -> bool:
        if self._turn is not None:
            return True
        lease = rival or self._desk.engine.locks.acquire_turn()
        if not isinstance(lease, Lock):
            self._turn = lease
            return True
        self.rival = lease
        if not self._is_waiting:
            self._waiting.enter_context(self._desk.engine.control.waiting_for_turn())
            self._is_waiting = True
        return False

    def _not_now(self) -> frozenset[str]:
        """Return the task of this checkout's auto-run while another auto-run is at work: it could only wait."""
        self.auto_rival = None
        holder = self._desk.engine.locks.queue_holder()
        task = self._desk.queue.live_of(auto_run_guard(self._desk.runner.checkout)) if holder else None
        if task is None or task.status is not TaskStatus.QUEUED:
            return frozenset()
        self.auto_rival = holder
        return frozenset({task.task_id})
