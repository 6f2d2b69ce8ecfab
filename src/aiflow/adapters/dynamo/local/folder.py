"""The folder of this machine's store (QUE-2a): its key, its data, its log, and who runs it.

All of it is for the user alone: the names of the database's files contain the key.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.files.atomic_files import create_file, read_regular, replace_file, sync_folder
from aiflow.adapters.files.file_system import is_network, kind_of
from aiflow.adapters.files.guard_files import guarded
from aiflow.adapters.files.user_folders import data_home, private_folder
from aiflow.adapters.processes.machine import host_name
from aiflow.adapters.processes.table import facts_of
from aiflow.domain.process import Liveness, Process, liveness
from aiflow.errors import EnvironmentProblemError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

JAVA = "java"
DOCKER = "docker"
LARGE_LOG_BYTES = 1_000_000
# With less than this a database cannot write even a little: it needs room for what it would undo.
LEAST_FREE_BYTES = 500_000


class Record(NamedTuple):
    """Who runs the store, as it was written down; without `pid` or `container`, it was stopped on purpose."""

    how: str
    port: int
    pid: int | None = None
    started_at: float | None = None
    boot_id: str | None = None
    container: str | None = None
    pid_namespace: str | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether it was stopped and not started since."""
        return self.pid is None and self.container is None

    def is_process_alive(self) -> bool:
        """Return whether the process that was recorded is running: not one that got its number later."""
        if self.pid is None or self.started_at is None:
            return False
        written = Process(host_name(), self.pid, self.boot_id, self.pid_namespace, self.started_at)
        return liveness(written, facts_of(self.pid)) is Liveness.ALIVE


class StoreFolder:
    """Where the store of this machine keeps what it has."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._home = data_home(environ)
        self.path: Path = self._home / "store"
        self.data = self.path / "data"
        self.log = self.path / "log"
        self.guard = self.path / "guard"
        self.alive = self.path / "alive"
        self.scratch = self.path / "tmp"
        self._key = self.path / "key"
        self._next_key = self.path / "key.next"
        self._record = self.path / "state.json"

    def make(self) -> None:
        """Make the folder for the user alone; locks and databases do not work over a network."""
        private_folder(self._home)
        for folder in (self.path, self.data):
            private_folder(folder)
        kind = kind_of(str(self.path))
        if kind is not None and is_network(kind):
            raise EnvironmentProblemError(reason_code="NETWORK_FILE_SYSTEM", kind=kind, path=str(self.path))

    def key(self) -> str | None:
        """Return the access key of our database, None if there is none yet."""
        return _read_key(self._key)

    def next_key(self) -> str | None:
        """Return the key that is to take the place of ours as soon as the store is started again."""
        return _read_key(self._next_key)

    def plan_key(self) -> None:
        """Make up the next key: somebody else may know the one we have."""
        if self.next_key() is None:
            with guarded(self.guard):
                if self.next_key() is None:
                    self._next_key.unlink(missing_ok=True)
                    self._make_key_file(self._next_key)

    def change_key(self) -> None:
        """Let the next key be ours, once the data has its name."""
        self._next_key.replace(self._key)

    def rename_data(self, old: str, new: str) -> None:
        """Give the files of the old key's database the name that the new key finds; done again, nothing happens."""
        for path in self.data.glob(f"{old}_*"):
            path.rename(path.with_name(f"{new}{path.name.removeprefix(old)}"))
        sync_folder(self.data)  # before the key: a power cut must not leave the new one with the old name

    def make_key(self) -> str:
        """Return the access key, made up by chance the first time: who does not know it sees another database."""
        key = self.key()
        if key is None:
            with guarded(
                self.guard
            ):  # or two at once each make one, and the first loses what it has begun with its own
                if self.key() is None:
                    self._key.unlink(missing_ok=True)  # empty or damaged: no database was ever named by it
                    self._make_key_file(self._key)
            key = self.key()
            assert key is not None
        elif self._key.stat().st_mode & 0o077:
            self._key.chmod(0o600)
        return key

    def _make_key_file(self, path: Path) -> None:
        # Closed from the first moment: another start that saw it open would take it for one that others know.
        create_file(path, f"{os.urandom(20).hex()}\n".encode(), self.path, 0o600)

    def exposed(self) -> tuple[str, ...]:
        """Return what of it others than the user may read or change."""
        found: list[str] = []
        for path in (self.path, self._key):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                if status.st_mode & 0o077 or status.st_uid != os.geteuid():
                    found.append(str(path))
        return tuple(found)

    def record(self) -> Record | None:
        """Return who runs the store, as written down; what cannot be read says nothing."""
        try:
            found = json.loads(read_regular(self._record, 100_000))
            record = Record(**{name: found.get(name) for name in Record._fields})
        except (FileNotFoundError, ValueError, AttributeError):
            return None
        return record if record.how in (JAVA, DOCKER) and isinstance(record.port, int) else None

    def write(self, record: Record) -> None:
        """Write down who runs the store."""
        replace_file(self._record, json.dumps(record._asdict()).encode(), self.path)

    def is_full(self) -> bool:
        """Return whether the disk has no room for more data."""
        try:
            disk = os.statvfs(self.data)
        except OSError:
            return False
        return disk.f_bavail * disk.f_frsize < LEAST_FREE_BYTES

    def clear_scratch(self) -> None:
        """Make the folder for what Java unpacks at every start, and leaves there when it is killed."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        private_folder(self.scratch)

    def rotate_log(self) -> None:
        """Put a large log aside; the one before that goes."""
        with contextlib.suppress(FileNotFoundError):
            if self.log.stat().st_size > LARGE_LOG_BYTES:
                self.log.replace(self.path / "log.1")


def _read_key(path: Path) -> str | None:
    try:
        key = read_regular(path, 1000).decode("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    return key if key.isalnum() else None
