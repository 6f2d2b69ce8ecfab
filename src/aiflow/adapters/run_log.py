"""A step's log (RUN-1, AGT-4): output as it comes, secrets masked, not larger than a person would want to keep."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.adapters.secrets import Masker

MAX_CALL_BYTES = 10_000_000
MAX_LINE_BYTES = 64_000
TAIL_BYTES = 4_000


class StepLogFile:
    """Adds to one log file; whoever follows it gets every line as well."""

    def __init__(self, path: str, masker: Masker, follow: Callable[[bytes], None] | None = None) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._masker = masker
        self._follow = follow
        self._partial = b""
        self._tail = b""
        self._written = 0

    def write(self, data: bytes) -> None:
        """Add output; an unfinished line waits for its end, so that no secret is cut in two."""
        lines, newline, self._partial = (self._partial + data).rpartition(b"\n")
        if newline:
            self._put(lines + newline)
        while len(self._partial) > MAX_LINE_BYTES:
            # A line without an end: cut at a blank, where a secret does not go on.
            cut = self._partial.rfind(b" ", 0, MAX_LINE_BYTES) + 1 or MAX_LINE_BYTES
            self._put(self._partial[:cut])
            self._partial = self._partial[cut:]

    def say(self, text: str) -> None:
        """Add a line of aiflow's own, on a line of its own."""
        self._flush_partial()
        self._put(f"{text}\n".encode("utf-8", "surrogateescape"), is_counted=False)

    @property
    def tail(self) -> str:
        """The last lines, masked."""
        text = (self._tail + self._masker.mask(self._partial)).decode("utf-8", "replace")
        return text[-TAIL_BYTES:].strip()

    def close(self) -> None:
        """Write what is left and close the file; twice does no harm."""
        if self._fd >= 0:
            self._flush_partial()
            os.close(self._fd)
            self._fd = -1

    def _flush_partial(self) -> None:
        if self._partial:
            self._put(self._partial + b"\n")
            self._partial = b""

    def _put(self, data: bytes, *, is_counted: bool = True) -> None:
        masked = self._masker.mask(data)
        if is_counted:
            self._tail = (self._tail + masked)[-TAIL_BYTES:]
            room = MAX_CALL_BYTES - self._written
            self._written += len(masked)
            if room <= 0:
                return
            if len(masked) > room:
                masked = masked[:room] + b"\n[aiflow] the rest of this output is left out: more than 10 MB\n"
        _write_all(self._fd, masked)
        if self._follow is not None:
            self._follow(masked)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
