"""A step's log (RUN-1, AGT-4): output as it comes, secrets masked, without what a terminal obeys, not too large.

Its colours and times lie beside it, for the page (`log_marks.py`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import translated
from aiflow.adapters.run_folders.log_marks import MarkFile
from aiflow.domain.agents.plain_text import plain_bytes, split_looks
from aiflow.domain.runs.excerpt import HEAD_BYTES, TAIL_BYTES, excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from aiflow.adapters.secrets import Masker

MAX_CALL_BYTES = 10_000_000
MAX_LINE_BYTES = 64_000
LONGEST_SECRET = 8_000
# An escape sequence that has only begun is shorter; a longer one is no colour.
LONGEST_SEQUENCE = 80
LEFT_OUT = b"\n[aiflow] the rest of this output is left out: more than 10 MB\n"


class StepLogFile:
    """Adds to one log file; each follower gets every line as well."""

    def __init__(
        self,
        path: str,
        masker: Masker,
        follow: Callable[[bytes], None] | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        self._marks = MarkFile(path, os.fstat(self._fd).st_size, clock) if clock else None
        self._masker = masker
        self._follow = follow
        self._partial = b""
        self._head = self._tail = b""
        self._size = self._written = 0

    def write(self, data: bytes) -> None:
        """Add output; an unfinished line waits for its end, so that no secret is cut in two."""
        lines, newline, rest = (self._partial + data).rpartition(b"\n")
        lines, cut = self._up_to_open_key(lines + newline)
        self._partial = lines[cut:] + rest
        if cut:
            self._put(lines[:cut])
        if len(self._partial) > MAX_LINE_BYTES:
            self._partial = _without_looks(self._partial)
        if len(self._partial) > MAX_LINE_BYTES:  # a line without an end: enough stays for a secret that has only begun
            cut = self._masker.find_cut(self._partial, len(self._partial) - LONGEST_SECRET) or len(self._partial)
            self._put(self._partial[:cut])
            self._partial = self._partial[cut:]

    def _up_to_open_key(self, lines: bytes) -> tuple[bytes, int]:
        """Return lines and where a private key begins in them that continues; no colour hides where that is."""
        if b"\x1b" in lines:
            shown = plain_bytes(lines)
            lines = shown if self._masker.open_key(shown) < len(shown) else lines
        return lines, self._masker.open_key(lines)

    def say(self, text: str) -> None:
        """Add a line of aiflow's own, on a line of its own."""
        self._flush_partial()
        self._put(f"{text}\n".encode("utf-8", "backslashreplace"), is_counted=False)

    @property
    def tail(self) -> str:
        """The last lines, masked."""
        text = (self._tail + self._masker.mask(plain_bytes(self._partial))).decode("utf-8", "replace")
        return text[-TAIL_BYTES:].strip()

    @property
    def excerpt(self) -> str:
        """The beginning and the end of the output, masked."""
        rest = self._masker.mask(plain_bytes(self._partial))
        head, tail = (self._head + rest)[:HEAD_BYTES], (self._tail + rest)[-TAIL_BYTES:]
        return excerpt(head, tail, self._size + len(rest))

    def close(self) -> None:
        """Write what is left and close the file; twice does no harm."""
        if self._fd >= 0:
            try:
                self._flush_partial()
            finally:
                os.close(self._fd)
                self._fd = -1
                if self._marks is not None:
                    self._marks.close()

    def _flush_partial(self) -> None:
        if self._partial:
            self._put(self._partial + b"\n")
            self._partial = b""

    def _put(self, data: bytes, *, is_counted: bool = True) -> None:
        shown, looks = split_looks(data)
        masked = self._masker.mask(shown)
        looks = looks if masked == shown else list(_of_same_lines(looks, shown, masked))
        if data.endswith(b"\n") and not masked.endswith(b"\n"):  # it went with a secret
            masked += b"\n"
        if is_counted:
            self._tail = (self._tail + masked)[-TAIL_BYTES:]
            self._head += masked[: HEAD_BYTES - len(self._head)]
            self._size += len(masked)
            masked = self._within_the_limit(masked)
        with translated(self._path):
            if self._marks is not None and masked:
                size = os.fstat(self._fd).st_size
                self._marks.add(size, [look for look in looks if look[0] < len(masked)])
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


def _without_looks(partial: bytes) -> bytes:
    """Make a line that has no end yet plain: colours must not keep a secret apart where it is cut."""
    head, escape, begun = partial.rpartition(b"\x1b")
    return plain_bytes(head) + escape + begun if escape and len(begun) < LONGEST_SEQUENCE else plain_bytes(partial)


def _of_same_lines(looks: list[tuple[int, bytes]], shown: bytes, masked: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the looks of lines that are as they were, where they are now; a line with a secret in it has none."""
    before, after = shown.split(b"\n"), masked.split(b"\n")
    if len(before) != len(after):  # a secret of several lines
        return
    start = moved = 0
    rest = iter(looks)
    look = next(rest, None)
    for old, new in zip(before, after, strict=True):
        while look is not None and look[0] <= start + len(old):
            if old == new:
                yield look[0] + moved, look[1]
            look = next(rest, None)
        start += len(old) + 1
        moved += len(new) - len(old)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
