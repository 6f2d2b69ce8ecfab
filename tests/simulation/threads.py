"""Threads that take turns: ordinary code runs in each, and one baton decides which of them does.

A thread that waits for the baton costs nothing; handing it over takes some microseconds. Threads are kept for the next
simulation, for starting one takes longer than most of what it does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ClassVar

# A job returns what hands the baton on: only then may this thread be given the next job.
Job = Callable[[], Callable[[], None]]


class Hands:
    """A thread that does one job after the other, and sleeps in between."""

    _idle: ClassVar[list[Hands]] = []

    def __init__(self) -> None:
        self.baton = threading.Lock()
        self.baton.acquire()
        self._job: Job | None = None
        threading.Thread(target=self._work, name="simulated", daemon=True).start()

    @classmethod
    def take(cls, job: Job) -> Hands:
        """Give a job to somebody idle; it begins when they get the baton."""
        hands = cls._idle.pop() if cls._idle else cls()
        hands._job = job
        return hands

    def _work(self) -> None:
        while True:
            self.baton.acquire()
            job, self._job = self._job, None
            assert job is not None
            pass_on = job()
            self._idle.append(self)
            pass_on()
