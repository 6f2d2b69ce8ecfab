"""What one process asks of another that is at work, in memory (LCK-8), and an auto-run's session."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.auto.summary import Beginning
from aiflow.domain.process import Liveness
from aiflow.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from aiflow.domain.auto.session import AutoSession
    from aiflow.domain.process import Process
    from aiflow.ports import Time


@dataclass
class MemoryWishes:
    """What is asked of the runs and the auto-run of one checkout; `life` checks whether those who wait are running."""

    cancelled: set[str] = field(default_factory=set)
    stops: dict[StopRequest, datetime] = field(default_factory=dict)
    turns: dict[int, Process] = field(default_factory=dict)
    later: dict[Beginning, Process] = field(default_factory=dict)
    life: Callable[[Process], Liveness] = lambda _waiting: Liveness.ALIVE


class MemoryControl:
    """The wishes of one checkout, as one process sees and makes them."""

    def __init__(self, wishes: MemoryWishes, me: Process, time: Time) -> None:
        self._wishes = wishes
        self._me = me
        self._time = time

    def ask_cancel(self, run_id: str) -> None:
        """Ask the process that works on a run to cancel it."""
        if "/" in run_id or "\0" in run_id:
            raise NotFoundError(reason_code="RUN_NOT_FOUND", run_id=run_id)
        self._wishes.cancelled.add(run_id)

    def is_cancelled(self, run_id: str) -> bool:
        """Return whether somebody asked for it."""
        return run_id in self._wishes.cancelled

    def clear(self, run_id: str) -> None:
        """Forget what was asked of a run."""
        self._wishes.cancelled.discard(run_id)

    def ask_stop(self, request: StopRequest) -> None:
        """Ask the auto-run of this checkout to stop; the stronger wish counts."""
        if request is not StopRequest.NONE:
            self._wishes.stops.setdefault(request, self._time.now())

    def stop_asked(self) -> StopRequest:
        """Return what was asked of the auto-run."""
        wishes = (StopRequest.NOW, StopRequest.AFTER_RUN)
        return next((wish for wish in wishes if wish in self._wishes.stops), StopRequest.NONE)

    def clear_stop(self, before: datetime | None = None) -> None:
        """Forget what was asked of the auto-run, or only what was asked before a moment."""
        for wish, asked_at in list(self._wishes.stops.items()):
            if before is None or asked_at < before:
                del self._wishes.stops[wish]

    @contextlib.contextmanager
    def waiting_for_turn(self) -> Iterator[None]:
        """Let it be known that a person waits for their turn in this checkout."""
        number = max(self._wishes.turns, default=0) + 1
        self._wishes.turns[number] = self._me
        try:
            yield
        finally:
            self._wishes.turns.pop(number, None)

    def is_turn_wanted(self) -> bool:
        """Return whether a running process waits for its turn; entries of processes that are gone are forgotten."""
        for number, waiting in list(self._wishes.turns.items()):
            if self._wishes.life(waiting) is Liveness.DEAD:
                del self._wishes.turns[number]
        return bool(self._wishes.turns)

    @contextlib.contextmanager
    def beginning_at(self, at: datetime) -> Iterator[Callable[[], bool]]:
        """Let it be known that an auto-run waits for its time; gives a way to ask whether it was called off."""
        mine = Beginning(at, self._me.pid or 0)
        self._wishes.later[mine] = self._me
        try:
            yield lambda: mine not in self._wishes.later
        finally:
            self._wishes.later.pop(mine, None)

    def beginnings(self) -> tuple[Beginning, ...]:
        """Return the auto-runs that wait for their time and whose processes are running, the first first."""
        later, life = self._wishes.later, self._wishes.life
        return tuple(sorted(mine for mine, waiting in later.items() if life(waiting) is not Liveness.DEAD))

    def call_off(self) -> tuple[Beginning, ...]:
        """Let none of those begin, and return them."""
        found = self.beginnings()
        for each in found:
            self._wishes.later.pop(each, None)
        return found


@dataclass
class MemoryAutoRecords:
    """The last session of a checkout's auto-run."""

    session: AutoSession | None = None

    def load(self) -> AutoSession | None:
        """Return the last session."""
        return self.session

    def save(self, session: AutoSession) -> None:
        """Write the session down."""
        self.session = session
