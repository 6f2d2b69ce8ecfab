"""Where servers register (API-1): in the checkout, and in a folder of the user's for all of them.

A record is believed only if the server answers with the same instance id; a guard file that the server keeps locked
makes sure that a checkout has one.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from datetime import datetime
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import read_own, replace_file, state_dir, translated
from aiflow.adapters.files.user_folders import data_home, private_folder
from aiflow.ports.server import ServerRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

FOLDER = "server"
RECORD_FILE = "server.json"
ALL_FOLDER = "servers"
MOST_BYTES = 100_000


class RecordFiles:
    """The records of servers, as files."""

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self._root = root
        self._all = data_home(environ) / ALL_FOLDER

    @contextlib.contextmanager
    def holding(self) -> Iterator[bool]:
        """Be the one server of this checkout while the block lasts; False if there is another."""
        with translated(self._root):
            folder = private_folder(state_dir(self._root, FOLDER))
            fd = os.open(folder / "up", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(fd)

    def write(self, record: ServerRecord) -> None:
        """Say where this server is; what servers before it said that were killed is taken back."""
        for dead in self.others():
            if dead.root == record.root:
                self.remove(dead.instance_id)
        data = json.dumps({**record._asdict(), "started_at": record.started_at.isoformat()}).encode() + b"\n"
        with translated(self._root):
            folder = state_dir(self._root, FOLDER)
            replace_file(folder / RECORD_FILE, data, folder)
            everybody = private_folder(self._all)
            replace_file(everybody / f"{record.instance_id}.json", data, everybody)

    def read(self) -> ServerRecord | None:
        """Return what this checkout's server recorded last; it may be gone by now."""
        return _read(self._root / ".aiflow" / FOLDER / RECORD_FILE)

    def others(self) -> Sequence[ServerRecord]:
        """Return what the servers of all checkouts said last."""
        found = (_read(path) for path in sorted(self._all.glob("*.json"))) if self._all.is_dir() else ()
        return [record for record in found if record is not None]

    def remove(self, instance_id: str) -> None:
        """Take back what a server said, unless another one says something by now."""
        with contextlib.suppress(OSError):
            (self._all / f"{instance_id}.json").unlink(missing_ok=True)
            own = self.read()
            if own is not None and own.instance_id == instance_id:
                (self._root / ".aiflow" / FOLDER / RECORD_FILE).unlink(missing_ok=True)


def _read(path: Path) -> ServerRecord | None:
    try:
        kept = json.loads(read_own(path, MOST_BYTES))
        words = {name: str(kept[name]) for name in ("instance_id", "url", "root", "version")}
        return ServerRecord(**words, pid=int(kept["pid"]), started_at=datetime.fromisoformat(kept["started_at"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
