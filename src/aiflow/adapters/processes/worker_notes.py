"""Who works for a server, written down for the next one (API-1): a worker outlives the server that started it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, BinaryIO

from aiflow.adapters.files.atomic_files import read_own
from aiflow.adapters.processes.machine import boot_id, host_name, pid_namespace
from aiflow.adapters.processes.table import facts_of
from aiflow.domain.process import Liveness, Process, liveness
from aiflow.ports.server import Worker

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES = 1_000_000


def write_note(folder: Path, worker: Worker) -> None:
    """Record which process a worker is, but not its arguments: they may hold a person's answer.

    One that is not whole, for the server was killed, counts as none; one that outlives a power cut is of no use.
    """
    started_at = facts_of(worker.pid).process_started_at
    if started_at is not None:
        place = {"boot_id": boot_id(), "pid_namespace": pid_namespace(), "started_at": started_at}
        with new_file(folder / f"{worker.worker_id}.json") as file:
            file.write(json.dumps({"pid": worker.pid, **place}).encode())


def new_file(path: Path) -> BinaryIO:
    """Make a file that only the user may read."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    return os.fdopen(fd, "wb")


def workers_alive(folder: Path) -> dict[Worker, Process]:
    """Return the recorded workers that are still at work, whatever started them."""
    found = dict(filter(None, map(_read, sorted(folder.glob("*.json")))))
    return {worker: process for worker, process in found.items() if is_alive(process)}


def is_alive(process: Process) -> bool:
    """Return whether the very process that was written down works: not one that got its number later."""
    return liveness(process, facts_of(process.pid)) is Liveness.ALIVE


def _read(path: Path) -> tuple[Worker, Process] | None:
    try:
        told = json.loads(read_own(path, MOST_BYTES))
        pid, started_at = int(told["pid"]), float(told["started_at"])
        process = Process(host_name(), pid, told["boot_id"], told["pid_namespace"], started_at)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return (Worker(pid, path.stem, ()), process) if pid > 1 else None
