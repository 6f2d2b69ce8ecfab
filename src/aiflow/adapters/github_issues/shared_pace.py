"""The pace that all processes of a user keep with one account (ISS-11): a small file, named by a hash of the token.

It holds moments of the wall clock. One that a clock was set away from is believed no longer than it was meant to last,
and a file that cannot be read or written says nothing: then each process keeps its own pace, as GitHub answers it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.files.guard_files import guarded
from aiflow.adapters.files.user_folders import data_home, private_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from aiflow.ports.time import Time

FOLDER = "github"
# No queue of writers is longer: a turn that is further off was noted by a clock that was set since.
LONGEST_QUEUE_SECONDS = 60.0
_MOST_BYTES = 400


class _Noted(NamedTuple):
    """When the limit was noted, when it ends, and when the next write may be."""

    closed_at: float = 0.0
    closed_until: float = 0.0
    write_at: float = 0.0


def pace_file(environ: Mapping[str, str], api_url: str, account: str) -> Path:
    """Return the file of an account at an address; nothing in its name leads back to a token."""
    name = hashlib.sha256(f"aiflow-pace\n{api_url}\n{account}".encode()).hexdigest()[:32]
    return data_home(environ) / FOLDER / name


class SharedPace:
    """What other processes learnt about the limits of an account, and their writes."""

    def __init__(self, path: Path, time: Time, *, is_to_write: bool = True) -> None:
        self._path, self._time, self._is_to_write = path, time, is_to_write

    def closed_seconds(self) -> float:
        """Return for how long GitHub takes no call, by its last answer to one of us."""
        noted, now = self._read(), self._time.now().timestamp()
        return min(noted.closed_until - now, noted.closed_until - noted.closed_at)

    def close(self, seconds: float) -> None:
        """Inform the others that GitHub takes no call for so long."""
        now = self._time.now().timestamp()
        self._change(lambda noted: noted._replace(closed_at=now, closed_until=now + seconds))

    def take_turn(self, apart_seconds: float) -> float:
        """Take the next turn to write; returns how long it is until then."""
        now = self._time.now().timestamp()
        turn = now

        def after(noted: _Noted) -> _Noted:
            nonlocal turn
            is_near = now < noted.write_at <= now + LONGEST_QUEUE_SECONDS
            turn = noted.write_at if is_near else now
            return noted._replace(write_at=turn + apart_seconds)

        self._change(after)
        return turn - now

    def _read(self) -> _Noted:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return _Noted()
        try:
            return _parsed(os.pread(fd, _MOST_BYTES, 0))
        except OSError:
            return _Noted()
        finally:
            os.close(fd)

    def _change(self, change: Callable[[_Noted], _Noted]) -> None:
        if not self._is_to_write:
            return
        with contextlib.suppress(OSError):
            private_folder(self._path.parent)
            with guarded(self._path) as fd:
                written = json.dumps(change(_parsed(os.pread(fd, _MOST_BYTES, 0)))._asdict())
                # Of one length, so that a reader meanwhile never finds the end of another text.
                os.pwrite(fd, written.ljust(_MOST_BYTES).encode(), 0)


def _parsed(data: bytes) -> _Noted:
    try:
        known = json.loads(data)
        return _Noted(*(float(known[name]) for name in _Noted._fields))
    except (ValueError, TypeError, KeyError, RecursionError):
        return _Noted()
