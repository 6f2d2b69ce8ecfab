"""Waiting: until something is so, with patience for a machine at its limit, and how slow this machine is right now."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

# What is waited for comes at once; only what hangs takes this long, and then the test fails.
PATIENCE_SECONDS = 120.0
# What the start of a bare Python takes where nothing else runs.
USUAL_SPAWN_SECONDS = 0.02


def wait_until(is_so: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> float:
    """Wait until something is so, and return how long that took."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() - began < seconds, "it never came to be"
        time.sleep(0.01)
    return time.monotonic() - began


def slowness() -> float:
    """Measure how many times slower than usual this machine is at the moment; never less than 1."""
    return max(1.0, statistics.median(_spawn_seconds() for _ in range(5)) / USUAL_SPAWN_SECONDS)


def _spawn_seconds() -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)
    return time.monotonic() - began
