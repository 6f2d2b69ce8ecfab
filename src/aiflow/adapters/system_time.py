"""The time of this machine, and threads for what runs beside the work."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# A call to a store that hangs is not waited for longer than this: the process is about to end.
JOIN_SECONDS = 10.0
# The next turn after one that raised, and so could not say when its next would be.
AFTER_ERROR_SECONDS = 1.0


def local_now() -> datetime:
    """Return the time of day, with the user's own offset."""
    return datetime.now().astimezone()


class SystemTime:
    """Time as the operating system gives it; `clock` is another time of day, for a test."""

    def __init__(self, clock: Callable[[], datetime] = local_now) -> None:
        self.now = clock

    def monotonic(self) -> float:
        """Return seconds that only ever grow."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)

    def beside(self, name: str, act: Callable[[], float]) -> ThreadBeside:
        """Make something that is done again and again beside the work."""
        return ThreadBeside(name, act)

    def mutex(self) -> threading.Lock:
        """Make what lets in one thread at a time."""
        return threading.Lock()


class ThreadBeside:
    """Calls `act` in a thread of its own; whatever goes wrong there ends nothing here."""

    def __init__(self, name: str, act: Callable[[], float]) -> None:
        self._act = act
        self._turn = threading.Event()
        self._is_over = False
        self._thread = threading.Thread(target=self._go_on, name=name, daemon=True)

    def start(self, seconds: float = 0.0) -> None:
        """Begin, with the first turn after some time."""
        self._pause = seconds
        self._thread.start()

    def poke(self) -> None:
        """Let the next turn be now."""
        self._turn.set()

    def leave(self) -> None:
        """End it, and wait for nothing."""
        self._is_over = True
        self._turn.set()

    def close(self) -> None:
        """End it after its current turn."""
        self.leave()
        if self._thread.ident is not None:
            self._thread.join(JOIN_SECONDS)

    def _go_on(self) -> None:
        while True:
            self._turn.wait(self._pause)
            self._turn.clear()
            if self._is_over:
                return
            try:
                self._pause = self._act()
            except Exception:  # noqa: BLE001 - whatever it is, this turn is lost, and the next may not be
                self._pause = AFTER_ERROR_SECONDS
