"""Who works for a server, written down for the next one (API-1): a worker outlives the server that started it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import read_own, replace_file
from aiflow.adapters.processes.machine import boot_id, host_name, pid_namespace
from aiflow.adapters.processes.table import facts_of
from aiflow.domain.process import Liveness, Process, liveness
from aiflow.ports.server import Worker

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES = 1_000_000


def write_note(folder: Path, worker: Worker) -> None:
    """Write down which process a worker is; one that has ended already needs no note."""
    started_at = facts_of(worker.pid).process_started_at
    if started_at is not None:
        place = {"boot_id": boot_id(), "pid_namespace": pid_namespace(), "started_at": started_at}
        data = json.dumps({"pid": worker.pid, **place, "argv": worker.argv}).encode()
        replace_file(folder / f"{worker.worker_id}.json", data, folder)


def workers_alive(folder: Path) -> dict[Worker, Process]:
    """Return the workers that were written down and still work, whoever started them."""
    found = dict(filter(None, map(_read, sorted(folder.glob("*.json")))))
    return {worker: process for worker, process in found.items() if is_alive(process)}


def is_alive(process: Process) -> bool:
    """Tell whether the very process that was written down works: not one that got its number later."""
    return liveness(process, facts_of(process.pid)) is Liveness.ALIVE


def _read(path: Path) -> tuple[Worker, Process] | None:
    try:
        told = json.loads(read_own(path, MOST_BYTES))
        pid, started_at, argv = int(told["pid"]), float(told["started_at"]), tuple(map(str, told["argv"]))
        process = Process(host_name(), pid, told["boot_id"], told["pid_namespace"], started_at)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return (Worker(pid, path.stem, argv), process) if pid > 1 else None
