"""The files that an agent reads and writes through its client: those of its folders, and no others.

A way through a symbolic link counts as where it leads. The kernel confines the agent besides, where it can.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from aiflow.adapters.agents.acp.permissions import Where

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BYTES = 20_000_000


class RefusedError(Exception):
    """The agent may not have this file; the text says why."""


class MissingError(RefusedError):
    """There is no such file."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where an agent works, its worktree first; `own` is what its program keeps for itself."""

    paths: tuple[str, ...]
    is_writable: bool
    own: tuple[str, ...] = ()

    def find(self, path: str) -> Where:
        """Say where a path leads, relative to the worktree or not."""
        real = self._real(path)
        if _is_within(real, self.paths):
            return Where.INSIDE
        return Where.OWN if _is_within(real, self.own) else Where.OUTSIDE

    def read(self, path: str, first_line: int | None, lines: int | None) -> str:
        """Return a text file's content, or some of its lines, counted from 1."""
        real = self._of_ours(path)
        with open(_opened(real, os.O_RDONLY), "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise RefusedError("it is too large")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise RefusedError("it is no UTF-8 text") from None
        if first_line is None and lines is None:
            return text
        start = max((first_line or 1) - 1, 0)
        return "".join(islice(text.splitlines(keepends=True), start, None if lines is None else start + lines))

    def write(self, path: str, text: str) -> None:
        """Give a file this content; folders on the way to it are made."""
        if not self.is_writable:
            raise RefusedError("this role only reads")
        real = self._of_ours(path)
        try:
            os.makedirs(os.path.dirname(real), exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            with open(_opened(real, flags), "w", encoding="utf-8", newline="") as file:
                file.write(text)
        except (OSError, UnicodeEncodeError) as error:
            raise RefusedError(str(error)) from None

    def _real(self, path: str) -> str:
        return os.path.realpath(os.path.join(self.paths[0], path))

    def _of_ours(self, path: str) -> str:
        """Return where a path leads, if that is the agent's business; git's own files are not."""
        if not path or "\0" in path:
            raise RefusedError("it is no path")
        real = self._real(path)
        if not _is_within(real, self.paths):
            raise RefusedError("it is outside the worktree")
        if ".git" in os.path.relpath(real, os.path.realpath(self.paths[0])).split(os.sep):
            raise RefusedError("it is git's own")
        return real


def _opened(real: str, flags: int) -> int:
    """Open a file that is no link any more, and no pipe that would keep us waiting."""
    try:
        fd = os.open(real, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except FileNotFoundError as error:
        raise MissingError(error.strerror) from None
    except OSError as error:
        raise RefusedError(error.strerror) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise RefusedError("it is no regular file")
    return fd


def _is_within(real: str, folders: Sequence[str]) -> bool:
    inside = map(os.path.realpath, folders)
    return any(real == folder or real.startswith(folder.rstrip(os.sep) + os.sep) for folder in inside)
