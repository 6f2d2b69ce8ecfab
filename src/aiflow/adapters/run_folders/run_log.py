"""A step's log (RUN-1, AGT-4): output as it comes, secrets masked, without what a terminal obeys, not too large."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import translated
from aiflow.domain.agents.plain_text import plain_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.adapters.secrets import Masker

MAX_CALL_BYTES = 10_000_000
MAX_LINE_BYTES = 64_000
LONGEST_SECRET = 8_000
TAIL_BYTES = 4_000
LEFT_OUT = b"\n[aiflow] the rest of this output is left out: more than 10 MB\n"


class StepLogFile:
    """Adds to one log file; whoever follows it gets every line as well."""

    def __init__(self, path: str, masker: Masker, follow: Callable[[bytes], None] | None = None) -> None:
        self._path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        self._masker = masker
        self._follow = follow
        self._partial = b""
        self._tail = b""
        self._written = 0

    def write(self, data: bytes) -> None:
        """Add output; an unfinished line waits for its end, so that no secret is cut in two."""
        lines, newline, rest = (self._partial + data).rpartition(b"\n")
        cut = self._masker.open_key(lines + newline)
        self._partial = (lines + newline)[cut:] + rest
        if cut:
            self._put((lines + newline)[:cut])
        if len(self._partial) > MAX_LINE_BYTES:  # a line without an end: enough stays for a secret that has only begun
            cut = self._masker.find_cut(self._partial, len(self._partial) - LONGEST_SECRET) or len(self._partial)
            self._put(self._partial[:cut])
            self._partial = self._partial[cut:]

    def say(self, text: str) -> None:
        """Add a line of aiflow's own, on a line of its own."""
        self._flush_partial()
        self._put(f"{text}\n".encode("utf-8", "backslashreplace"), is_counted=False)

    @property
    def tail(self) -> str:
        """The last lines, masked."""
        text = (self._tail + self._masker.mask(self._partial)).decode("utf-8", "replace")
        return text[-TAIL_BYTES:].strip()

    def close(self) -> None:
        """Write what is left and close the file; twice does no harm."""
        if self._fd >= 0:
            try:
                self._flush_partial()
            finally:
                os.close(self._fd)
                self._fd = -1

    def _flush_partial(self) -> None:
        if self._partial:
            self._put(self._partial + b"\n")
            self._partial = b""

    def _put(self, data: bytes, *, is_counted: bool = True) -> None:
        masked = self._masker.mask(plain_bytes(data))
        if data.endswith(b"\n") and not masked.endswith(b"\n"):  # it went with a secret
            masked += b"\n"
        if is_counted:
            self._tail = (self._tail + masked)[-TAIL_BYTES:]
            masked = self._within_the_limit(masked)
        with translated(self._path):
            _write_all(self._fd, masked)
        if self._follow is not None and masked:
            self._follow(masked)

    def _within_the_limit(self, masked: bytes) -> bytes:
        """Return what there is still room for; where it ends, it says so once."""
        room = MAX_CALL_BYTES - self._written
        self._written += len(masked)
        if len(masked) <= room:
            return masked
        return masked[:room] + LEFT_OUT if room >= 0 else b""


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
