"""Asking a program about itself (AGT-1, DOC-1): started for a moment, heard as far as an answer goes, and ended.

What is asked here was found on the PATH and may be anything: it may hang, leave children, or print without end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.processes.leftovers import sweep
from aiflow.domain.programs import RUN_MARK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# More than any program reports about itself.
MOST_BYTES = 1_000_000


class Said(NamedTuple):
    """What a program said and how it ended; None is one that had to be ended, or never started."""

    code: int | None = None
    output: str = ""
    errors: str = ""


def ask(argv: Sequence[str], cwd: str, environ: Mapping[str, str], seconds: float) -> Said:
    """Start a program away from terminal and signals; all of it is ended if it stays, or says too much."""
    mark = f"ASK-{os.urandom(6).hex()}"
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**environ, RUN_MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError:
        return Said()
    with process:
        try:
            return _hear(process, time.monotonic() + seconds)
        finally:
            if process.returncode is None:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
            sweep(RUN_MARK, mark, None)  # also who left its session


def _hear(process: subprocess.Popen[bytes], deadline: float) -> Said:
    """Take what it says until it has ended; nothing counts of what did not end in time, or has no end."""
    import selectors

    assert process.stdout and process.stderr
    said = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    with selectors.DefaultSelector() as selector:
        for pipe in said:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            left = deadline - time.monotonic()
            ready = selector.select(left) if left > 0 else []
            if not ready or sum(map(len, said.values())) > MOST_BYTES:
                return Said()
            for key, _ in ready:
                chunk = os.read(key.fd, 65536)
                said[key.fd] += chunk
                if not chunk:
                    selector.unregister(key.fd)
    try:
        code = process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return Said()
    return Said(code, *(bytes(words).decode("utf-8", "replace") for words in said.values()))
