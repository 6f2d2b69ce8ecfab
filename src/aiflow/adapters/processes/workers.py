"""Workers of the server (API-1): aiflow's own commands, each in a session of its own, their output in files.

Never a pipe: a worker outlives the server that started it, and the next server finds it by its lock.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import read_own, state_dir, translated
from aiflow.adapters.processes.worker_notes import is_alive, new_file, workers_alive, write_note
from aiflow.ports.server import Worker

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence
    from pathlib import Path

    from aiflow.domain.process import Process

FOLDER = "workers"
KEPT = 20
MOST_BYTES = 20_000_000
TAIL_BYTES = 4000
# What a worker says at its end takes less.
ROOM_BYTES = 65_536


class _Outliving(subprocess.Popen[bytes]):
    """A process that may outlive the server, which forgets it then: that is meant, and nothing to warn of."""

    def __del__(self, *_: object) -> None:
        """Do nothing."""


class WorkerProcesses:
    """Starts and looks after workers of one server.

    `settings` are those that the server itself was given; `variable` names to each worker on whose behalf it works.
    """

    def __init__(self, root: Path, environ: Mapping[str, str], variable: str, settings: Sequence[str] = ()) -> None:
        self._root = root
        self._environ = environ_of_children(environ)
        self._variable = variable
        self._settings = settings
        self._started: dict[Worker, _Outliving] = {}
        self._adopted: dict[Worker, Process] = {}
        self._guard = threading.Lock()

    def start(self, argv: Sequence[str], person: str = "") -> Worker:
        """Start a command, on behalf of a person."""
        worker_id = os.urandom(6).hex()
        with translated(self._root):
            folder = state_dir(self._root, FOLDER)
            _tidy(folder, {worker.worker_id for worker in self.at_work()})
            with new_file(folder / f"{worker_id}.out") as out, new_file(folder / f"{worker_id}.err") as err:
                _require_room(out.fileno())
                process = _Outliving(
                    command_line(self._settings, argv),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    cwd=self._root,
                    env={**self._environ, self._variable: person},
                    start_new_session=True,
                )
        worker = Worker(process.pid, worker_id, tuple(argv))
        with self._guard:
            for earlier in self._started.values():
                earlier.poll()  # so that a worker without a watcher does not stay a zombie
            self._started[worker] = process
        with contextlib.suppress(OSError):  # without it the next server takes it for a terminal's
            write_note(folder, worker)
        return worker

    def adopt(self) -> tuple[Worker, ...]:
        """Take over the workers that a server before left at work, and return them."""
        found = workers_alive(self._root / ".aiflow" / FOLDER)
        with self._guard:
            own = {worker.worker_id for worker in self._started}
            self._adopted = {worker: process for worker, process in found.items() if worker.worker_id not in own}
            return tuple(self._adopted)

    def at_work(self) -> tuple[Worker, ...]:
        """Return the workers that still work."""
        with self._guard:
            own = (worker for worker, process in self._started.items() if process.poll() is None)
            return (*own, *(worker for worker, process in self._adopted.items() if is_alive(process)))

    def end(self, worker: Worker) -> None:
        """Ask a worker to end what it does now, in order; what it started ends with it."""
        with self._guard:
            process, adopted = self._started.get(worker), self._adopted.get(worker)
        if process is not None:
            process.terminate()
        elif adopted is not None and is_alive(adopted):
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGTERM)

    def exit_code(self, worker: Worker) -> int | None:
        """Return how a worker of this server ended, or None while it works."""
        with self._guard:
            process = self._started.get(worker)
        return process.poll() if process is not None else None

    def answer(self, worker: Worker) -> dict[str, object] | None:
        """Return what an ended worker printed as its answer; None if that is nothing that can be read."""
        try:
            told = json.loads(read_own(self._path(worker, "out"), MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            return None
        return told if isinstance(told, dict) else None

    def said(self, worker: Worker) -> str:
        """Return the end of what a worker said besides."""
        try:
            return read_own(self._path(worker, "err"), MOST_BYTES)[-TAIL_BYTES:].decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def _path(self, worker: Worker, end: str) -> Path:
        return self._root / ".aiflow" / FOLDER / f"{worker.worker_id}.{end}"


def command_line(settings: Sequence[str], argv: Sequence[str]) -> list[str]:
    """Return how this very program is called, with settings that outrank those of the file."""
    return [sys.executable, "-m", "aiflow", *(word for each in settings for word in ("-c", each)), *argv]


def environ_of_children(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what a child sees of the environment: it is not the one that the service manager waits for."""
    return {name: value for name, value in environ.items() if name != "NOTIFY_SOCKET"}


def _require_room(fd: int) -> None:
    """Raise that the disk is full before a worker starts that could not even say so."""
    try:
        if os.write(fd, bytes(ROOM_BYTES)) < ROOM_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)


def _tidy(folder: Path, at_work: Container[str]) -> None:
    """Keep the output of the last few workers, and of those that work."""
    found = sorted(folder.glob("*.out"), key=_written_at)
    for old in found[: -KEPT or None]:
        if old.stem not in at_work:
            for path in (old, old.with_suffix(".err"), old.with_suffix(".json")):
                path.unlink(missing_ok=True)


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # a call beside this one was faster
        return 0.0
