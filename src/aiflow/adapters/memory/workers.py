"""Workers and a runner in memory: what a server starts, played by a test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiflow.ports.server import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass
class MemoryWorkers:
    """Workers that end when a test says so; `begin` hears of each start, `asked` has those that were asked to end.

    `left` are those of a server before.
    """

    begin: Callable[[Worker], None] = lambda _worker: None
    started: list[Worker] = field(default_factory=list)
    codes: dict[int, int] = field(default_factory=dict)
    answers: dict[int, dict[str, object]] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    left: list[Worker] = field(default_factory=list)

    def start(self, argv: Sequence[str], person: str = "") -> Worker:
        """Start a command."""
        number = 100 + len(self.started)
        worker = Worker(number, f"{person}{number}", tuple(argv))
        self.started.append(worker)
        self.begin(worker)
        return worker

    def adopt(self) -> tuple[Worker, ...]:
        """Take over what a server before left."""
        return tuple(self.left)

    def at_work(self) -> tuple[Worker, ...]:
        """Return the workers that still work."""
        return tuple(worker for worker in (*self.started, *self.left) if worker.pid not in self.codes)

    def end(self, worker: Worker) -> None:
        """Note that a worker is to end."""
        self.asked.append(worker.pid)

    def exit_code(self, worker: Worker) -> int | None:
        """Return how a worker ended."""
        return self.codes.get(worker.pid)

    def answer(self, worker: Worker) -> dict[str, object] | None:
        """Return what it answered."""
        return self.answers.get(worker.pid)

    def said(self, _worker: Worker) -> str:
        """Return what it said besides."""
        return ""


@dataclass
class MemoryRunnerChild:
    """A runner that works until a test says otherwise; one that is busy stays when it is released."""

    starts: list[float] = field(default_factory=list)
    now: Callable[[], float] = lambda: 0.0
    works: bool = False
    is_busy: bool = False
    asked: list[str] = field(default_factory=list)
    last_line: str = ""

    def start(self) -> None:
        """Start it."""
        self.starts.append(self.now())
        self.works = True

    def is_working(self) -> bool:
        """Return whether it works."""
        return self.works

    def release(self) -> None:
        """Let it end after its task."""
        if self.works:
            self.asked.append("release")
            self.works = self.is_busy

    def end(self) -> None:
        """Let it end now."""
        self.asked.append("end")
        self.works = False

    def said(self) -> str:
        """Return the last line that it said."""
        return self.last_line
