"""The runner beside a server (API-1): a process in a session of its own, tied to the server by a pipe.

The pipe is the runner's standard input, and only the server has its other end. Its end means that the server has gone,
in order or killed: the runner then ends after its task. What it says is in a file.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import TYPE_CHECKING, BinaryIO

from aiflow.adapters.files.atomic_files import read_own, state_dir, translated
from aiflow.adapters.processes.workers import command_line, environ_of_children

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FOLDER = "server"
LOG_FILE = "runner.log"
MOST_LOG_BYTES = 5_000_000
SHOWN = 300


class RunnerProcess:
    """Starts and releases the runner of one server."""

    def __init__(self, root: Path, environ: Mapping[str, str], settings: Sequence[str] = ()) -> None:
        self._root = root
        self._environ = environ_of_children(environ)
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        self.release()
        with translated(self._root), self._log() as log:
            self._process = subprocess.Popen(
                command_line(self._settings, ("runner", "--with-parent")),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self._root,
                env=self._environ,
                start_new_session=True,
            )

    def is_working(self) -> bool:
        """Return whether it works."""
        return self._process is not None and self._process.poll() is None

    def release(self) -> None:
        """Let it end after its task."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def end(self) -> None:
        """Ask it to end what it does now, in order."""
        if self._process is not None:
            self._process.terminate()

    def said(self) -> str:
        """Return the last line that it said."""
        try:
            text = read_own(self._root / ".aiflow" / FOLDER / LOG_FILE, MOST_LOG_BYTES * 2).decode("utf-8", "replace")
        except OSError:
            return ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1][:SHOWN] if lines else ""

    def _log(self) -> BinaryIO:
        """Open its log, from the start again where it has grown too long."""
        path = state_dir(self._root, FOLDER) / LOG_FILE
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(path, flags, 0o600)
        if os.fstat(fd).st_size > MOST_LOG_BYTES:
            os.ftruncate(fd, 0)
        return os.fdopen(fd, "ab")
