"""PRF-4: from enqueueing a task to its claim by an idle runner, a real `aiflow runner` on the same host.

The tasks are of requests that do not exist: claimed as any other, and ended at once.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import runs
import store
from aiflow.adapters.processes.runner_process import checkout_at
from aiflow.adapters.processes.wake_pipes import WakePipes
from aiflow.domain.queue.task import Checkout

TASKS = 30


class Waking(NamedTuple):
    """The median seconds, for tasks of the runner's own checkout and for those that anybody may take."""

    own: float
    anybodys: float


class Runner:
    """A runner process, and what it tells."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        aiflow = str(Path(sys.executable).with_name("aiflow"))
        self._process = subprocess.Popen(
            [aiflow, "runner", "--json"], cwd=folder, env=environ, stdout=subprocess.PIPE, text=True
        )

    def wait_for(self, event: str) -> dict[str, Any]:
        """Read on until it tells this."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told: dict[str, Any] = json.loads(line)
            if told["event"] == event:
                return told
        raise RuntimeError(f"the runner ended before it was {event}")

    @property
    def resident_bytes(self) -> int:
        """How much memory it holds now."""
        pages = Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def close(self) -> None:
        """Let it leave."""
        self._process.terminate()
        self._process.communicate(timeout=60)


def make_checkout(scratch: Path, endpoint: str, key: str) -> tuple[Path, dict[str, str]]:
    """Make a repository of that name, and what a runner there needs to know of the store."""
    folder = scratch / key
    folder.mkdir()
    runs.make_repository(folder, 10)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("AIFLOW")}
    environ |= {"AIFLOW_QUEUE_STORE": endpoint, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": key}
    environ |= {"AWS_REGION": store.REGION, "AIFLOW_NAMESPACE": store.OWN, "XDG_DATA_HOME": str(scratch / "data")}
    return folder, environ | {"XDG_STATE_HOME": str(scratch / "state")}


def measure(scratch: Path, endpoint: str) -> Waking:
    """Enqueue tasks at any moment of the runner's poll, and take the time until it says that it has claimed each."""
    key = "waking"
    folder, environ = make_checkout(scratch, endpoint, key)
    database, wake = store.Database(endpoint, key), WakePipes(f"{environ['XDG_DATA_HOME']}/aiflow/wake")
    chance = random.Random(4)
    whose: list[Checkout | None] = [checkout_at(str(folder)), None]
    times: dict[Checkout | None, list[float]] = {each: [] for each in whose}
    runner = Runner(folder, environ)
    try:
        for number in range(TASKS):
            runner.wait_for("waiting")
            time.sleep(chance.uniform(0.1, 1.1))
            task = store.task_number(number, checkout=whose[number % 2])
            begin = time.perf_counter()
            database.queue.enqueue(task)
            wake.poke(store.OWN, task.task_id)
            runner.wait_for("claimed")
            times[task.checkout].append(time.perf_counter() - begin)
    finally:
        runner.close()
    own, anybodys = (median(times[each]) for each in whose)
    return Waking(own, anybodys)
