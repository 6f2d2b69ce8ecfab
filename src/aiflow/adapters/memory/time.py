"""Simulated time: it passes when somebody sleeps, and what runs beside the work has its turns meanwhile.

For one process in one thread; a simulation of several brings its own time.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

AFTER_ERROR_SECONDS = 1.0
BEGINNING = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass
class PlayedTime:
    """The time of one process; `set_by` is how far somebody set its clock."""

    seconds: float = 0.0
    set_by: timedelta = field(default_factory=timedelta)
    besides: list[PlayedBeside] = field(default_factory=list)

    def now(self) -> datetime:
        """Return the time of day."""
        return BEGINNING + timedelta(seconds=self.seconds) + self.set_by

    def monotonic(self) -> float:
        """Return seconds that only ever grow."""
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Let time pass: what runs beside the work has its turns, each at its time."""
        until = self.seconds + seconds
        while (due := min(self.besides, key=lambda each: each.due, default=None)) is not None and due.due <= until:
            self.seconds = max(self.seconds, due.due)
            due.turn()
        self.seconds = max(self.seconds, until)

    def beside(self, _name: str, act: Callable[[], float]) -> PlayedBeside:
        """Make something that is done again and again beside the work."""
        return PlayedBeside(self, act)

    def mutex(self) -> contextlib.AbstractContextManager[object]:
        """Make what lets in one at a time: here there is only one."""
        return contextlib.nullcontext()


class PlayedBeside:
    """Calls `act` whenever its turn has come; one that raised has its next turn after a moment."""

    def __init__(self, time: PlayedTime, act: Callable[[], float]) -> None:
        self._time = time
        self._act = act
        self.due = 0.0

    def start(self, seconds: float = 0.0) -> None:
        """Begin, with the first turn after some time."""
        self.due = self._time.seconds + seconds
        self._time.besides.append(self)

    def poke(self) -> None:
        """Let the next turn be as soon as time passes."""
        self.due = min(self.due, self._time.seconds)

    def close(self) -> None:
        """End it; twice does no harm."""
        if self in self._time.besides:
            self._time.besides.remove(self)

    def leave(self) -> None:
        """End it; in played time no turn takes long."""
        self.close()

    def turn(self) -> None:
        """Have one turn."""
        self.due = self._time.seconds + AFTER_ERROR_SECONDS
        with contextlib.suppress(Exception):
            self.due = self._time.seconds + self._act()
