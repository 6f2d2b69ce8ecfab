"""Named pipes by which the runners of this machine hear of news at once (PRF-4); the poll remains the safety net.

`<folder>/<namespace>/<runner id>`: made by the runner that listens, written to by processes that put something into the
queue. A pipe without a reader was left by a killed runner; the process that finds it removes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import time

# What fits into a pipe at once is never torn apart (POSIX).
LINE_BYTES = 512
READ_BYTES = 65_536


class WakePipes:
    """The pipes below a folder of the user's; with a namespace and a runner's id it listens itself."""

    def __init__(self, folder: str, namespace: str | None = None, runner_id: str | None = None) -> None:
        self._folder = folder
        self._path: str | None = None
        self._pipe: int | None = None
        if namespace is not None and runner_id is not None:
            self._path = f"{folder}/{namespace}/{runner_id}"
            self._listen()

    def _listen(self) -> None:
        """Make the pipe and open it, unless the open one is still to be found; where that fails, the poll has to do.

        A writer that comes between the two finds a pipe without a reader, and removes it a moment later: so this is
        looked at again before every wait.
        """
        if self._path is None or self._is_found():
            return
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.mkfifo(self._path, 0o600)
            # Open for writing too: else its end would show whenever the last writer leaves.
            pipe = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            before, self._pipe = self._pipe, pipe
            if before is not None:
                os.close(before)

    def _is_found(self) -> bool:
        """Return whether our open pipe is the one that our path names."""
        if self._pipe is None or self._path is None:
            return False
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._pipe))
        except OSError:
            return False

    def wait(self, seconds: float) -> tuple[str, ...]:
        """Wait for news at most this long; returns the ids of tasks that were named, none if the time is over."""
        self._listen()
        if self._pipe is None:
            time.sleep(max(0.0, seconds))
            return ()
        readable, _, _ = select.select([self._pipe], [], [], max(0.0, seconds))
        if not readable:
            return ()
        try:
            told = os.read(self._pipe, READ_BYTES)
        except OSError:
            return ()
        return tuple(dict.fromkeys(told.decode("utf-8", "replace").split()))

    def poke(self, namespace: str, task_id: str) -> int:
        """Notify every runner of a namespace on this machine of a task, and return how many heard; never raises."""
        folder = f"{self._folder}/{namespace}"
        try:
            names = os.listdir(folder)
        except OSError:
            return 0
        line = f"{task_id}\n".encode()[-LINE_BYTES:]
        return sum(_tell(f"{folder}/{name}", line) for name in names)

    def close(self) -> None:
        """Stop to be notified; twice does no harm."""
        path, self._path = self._path, None
        pipe, self._pipe = self._pipe, None
        if pipe is None or path is None:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        os.close(pipe)


def count_listeners(folder: str) -> int:
    """Count the runners of all namespaces that listen, without telling them anything; never raises."""
    count = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # it has no reader
                os.close(os.open(f"{place}/{name}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW))
                count += 1
    return count


def _tell(path: str, line: bytes) -> bool:
    """Write into one pipe; a full one has news enough, one without a reader is removed."""
    try:
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.ENXIO:
            with contextlib.suppress(OSError):
                os.unlink(path)
        return False
    try:
        os.write(pipe, line)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(pipe)
    return True
