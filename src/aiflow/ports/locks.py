"""The protocols of the locks (LCK), and of what reaches a running process from another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from datetime import datetime

    from aiflow.domain.auto.stopping import StopRequest
    from aiflow.domain.auto.summary import Beginning
    from aiflow.domain.lock import Lock, LockStatus, LockType
    from aiflow.domain.request import RequestId


class LockView(Protocol):
    """Which locks exist; looking changes nothing."""

    def held(self) -> tuple[dict[RequestId, Lock], Lock | None]:
        """Return the request locks by request, and the queue lock."""

    def holder(self) -> Lock | None:
        """Return the lock of whatever run is in progress in this checkout."""

    def holder_of(self, request_id: RequestId) -> Lock | None:
        """Return a request's lock."""

    def queue_holder(self) -> Lock | None:
        """Return the queue lock: its holder is the auto-run of this checkout."""

    def turn_holder(self) -> Lock | None:
        """Return the turn of a runner that is about to claim a task (QUE-5)."""


class Lease(Protocol):
    """A lock that we hold, renewed by a heartbeat (LCK-3)."""

    lock: Lock

    @property
    def is_lost(self) -> bool:
        """Whether somebody else has taken the lock: then nothing may be written any more."""

    def allow(self, seconds: float) -> None:
        """Let the heartbeat renew the lock for this long from now; after that it expires."""

    def writing(self) -> AbstractContextManager[None]:
        """Hold the guard while something is written; raises LOCK_LOST if the lock is no longer ours."""

    def release(self) -> None:
        """Give the lock back if it is still ours; twice does no harm."""


class Locks(LockView, Protocol):
    """Taking, judging and giving back locks (LCK); only the engine calls this."""

    def acquire_request(
        self, request_id: RequestId, run_id: str, *, beside_others: bool = False, turn: str | None = None
    ) -> Lease | Lock:
        """Take a request's lock, or return the lock of who runs here, or (beside others) of who runs that (LCK-7).

        `turn` is the token of the turn, if that is ours: then no other process can have begun a run here.
        """

    def acquire_queue(self) -> Lease | Lock:
        """Take the queue lock, or return its holder's lock."""

    def acquire_turn(self) -> Lease | Lock:
        """Take the turn of this checkout, or return the lock of the run that is or will be active in it (QUE-5)."""

    def survey(self) -> list[LockStatus]:
        """Judge every lock that exists; changes nothing."""

    def reclaim(self) -> list[LockStatus]:
        """Remove every stale lock, after what its holder's agent left running is ended; return those removed."""

    def break_lock(self, request_id: RequestId | None, kind: LockType = ...) -> LockStatus | None:
        """Remove a lock of any holder, a request's or (None) the queue's or the turn; None if there is none."""

    def standstill(self) -> AbstractContextManager[Mapping[RequestId, Lock]]:
        """For a moment, let no process take a lock and no holder write; gives the request locks that are held."""


class Control(Protocol):
    """Files that reach a running process from another one (LCK-8)."""

    def ask_cancel(self, run_id: str) -> None:
        """Ask the process that works on a run to cancel it."""

    def is_cancelled(self, run_id: str) -> bool:
        """Return whether somebody asked for it."""

    def clear(self, run_id: str) -> None:
        """Forget what was asked of a run."""

    def ask_stop(self, request: StopRequest) -> None:
        """Ask the auto-run of this checkout to stop; the stronger wish counts."""

    def stop_asked(self) -> StopRequest:
        """Return what was asked of the auto-run; one look at a file name, for this is asked several times a second."""

    def clear_stop(self, before: datetime | None = None) -> None:
        """Forget what was asked of the auto-run, or only what was asked before a moment."""

    def waiting_for_turn(self) -> AbstractContextManager[None]:
        """Let it be known that a person waits for their turn in this checkout."""

    def is_turn_wanted(self) -> bool:
        """Return whether a running process waits for its turn: auto-run lets it go first."""

    def beginning_at(self, at: datetime) -> AbstractContextManager[Callable[[], bool]]:
        """Let it be known that an auto-run waits for its time; gives a way to ask whether it was called off."""

    def beginnings(self) -> tuple[Beginning, ...]:
        """Return the auto-runs that wait for their time and whose processes are running, the first first."""

    def call_off(self) -> tuple[Beginning, ...]:
        """Let none of those begin, and return them."""
