"""Taking and giving back a request lock, beside a bare create + unlink of a file of the same size."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from aiflow.adapters.locks.taking import LockTaking
from aiflow.domain.lock import Lock
from aiflow.domain.request import RequestId

TURNS = 100


def measure(scratch: Path, rounds: int) -> tuple[float, float, float]:
    """Return the fastest time of a turn: ours, a bare file, and a bare file that is flushed to the disk."""
    root = scratch / "locks"
    root.mkdir()
    locks = LockTaking(str(root), 1800)
    data = b"x" * 400

    def ours() -> None:
        lease = locks.acquire_request(RequestId("RQ-1"), "RUN-20260101-000000-aaaaaa")
        assert not isinstance(lease, Lock)
        lease.release()

    def bare(*, is_flushed: bool) -> None:
        fd = os.open(root / "bare", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        os.write(fd, data)
        if is_flushed:
            os.fsync(fd)
        os.close(fd)
        os.unlink(root / "bare")

    turns: list[Callable[[], None]] = [ours, lambda: bare(is_flushed=False), lambda: bare(is_flushed=True)]
    best = [float("inf")] * len(turns)
    for _ in range(rounds):
        for number, turn in enumerate(turns):
            begin = time.perf_counter()
            for _ in range(TURNS):
                turn()
            best[number] = min(best[number], (time.perf_counter() - begin) / TURNS)
    return best[0], best[1], best[2]
