"""The protocol of time: what time it is, waiting, and threads beside the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from datetime import datetime


class Time(Protocol):
    """The time of one process; use cases know no other, so that a test can play it."""

    def now(self) -> datetime:
        """Return the time of day, with the user's own offset; it may be set back."""

    def monotonic(self) -> float:
        """Return seconds that only ever grow, to tell how long something takes."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""

    def beside(self, name: str, act: Callable[[], float]) -> Beside:
        """Make something that is done again and again beside the work; `act` returns the seconds to its next turn."""

    def mutex(self) -> AbstractContextManager[object]:
        """Make a mutex between the work and the threads beside it."""


class Beside(Protocol):
    """Something done again and again beside the work, until it is ended in order; an error ends only its turn."""

    def start(self, seconds: float = 0.0) -> None:
        """Begin, with the first turn after some time."""

    def poke(self) -> None:
        """Let the next turn be now."""

    def close(self) -> None:
        """End it after its current turn."""

    def leave(self) -> None:
        """End it without waiting: its current turn may take long, and its end is not needed."""
