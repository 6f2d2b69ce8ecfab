"""QUE-7: the memory of a real `aiflow runner` over 1,000 tasks, behind the 200th and behind the last.

The tasks are of requests that do not exist: claimed and ended as any other. What runs leave is measured by `night.py`.
"""

from __future__ import annotations

from pathlib import Path

import store
from aiflow.adapters.processes.runner_process import checkout_at
from night import Edges
from waking import Runner, make_checkout

WARM, TASKS = 200, 1000


def measure(scratch: Path, endpoint: str) -> Edges:
    """Let a runner work through the tasks, and return the bytes it holds behind the 200th and behind the last."""
    folder, environ = make_checkout(scratch, endpoint, "shift")
    database = store.Database(endpoint, "shift")
    checkout = checkout_at(str(folder))
    for number in range(TASKS):
        database.queue.enqueue(store.task_number(number, checkout=checkout))
    runner = Runner(folder, environ)
    try:
        held = []
        for _ in range(TASKS):
            runner.wait_for("ended")
            held.append(runner.resident_bytes)
    finally:
        runner.close()
    return Edges(held[WARM - 1], held[-1])
