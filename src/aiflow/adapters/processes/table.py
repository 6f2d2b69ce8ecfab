"""What this machine knows of its processes (LCK-4, AGT-5): which are running, since when, and whose run they belong to.

A start time is an opaque number, comparable only on the same machine: seconds since boot on Linux, where psutil's
`create_time` would shift whenever somebody sets the clock, and psutil's number elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, NamedTuple, Protocol

from aiflow.adapters.processes.machine import PROC, boot_id, host_name, machine_id, pid_namespace
from aiflow.domain.process import OwnerFacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class KnownProcess(NamedTuple):
    """What is known of one process."""

    parent: int
    group: int
    started_at: float
    is_zombie: bool
    session: int = 0
    has_terminal: bool = False


class Table(Protocol):
    """A way to look at the processes of this machine."""

    def pids(self) -> list[int]:
        """Return everything that runs."""

    def look(self, pid: int) -> KnownProcess | None:
        """Return what is known of a process, None if it is gone."""

    def carries(self, pid: int, mark: str, value: str) -> bool:
        """Return whether a process was started with `mark=value` in its environment."""

    def folders(self, pid: int) -> tuple[str, ...]:
        """Return where a process works: its current folder, and its root; none of somebody else's."""

    def environ(self, pid: int) -> dict[str, str]:
        """Return what a process was started with in its environment; nothing of somebody else's."""


class ProcTable:
    """Straight from Linux's /proc."""

    def pids(self) -> list[int]:
        """Return everything that runs."""
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]

    def look(self, pid: int) -> KnownProcess | None:
        """Return what is known of a process, None if it is gone."""
        # The second field is the program's name in parentheses, and may itself hold spaces and parentheses.
        fields = _read(pid, "stat").rpartition(b")")[2].split()
        if len(fields) < 20 or fields[0] in (b"X", b"x"):
            return None
        started_at = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        parent, group, session, terminal = (int(field) for field in fields[1:5])
        return KnownProcess(parent, group, started_at, fields[0] == b"Z", session, has_terminal=terminal != 0)

    def carries(self, pid: int, mark: str, value: str) -> bool:
        """Return whether a process was started with `mark=value` in its environment."""
        return os.fsencode(f"{mark}={value}") in _read(pid, "environ").split(b"\0")

    def folders(self, pid: int) -> tuple[str, ...]:
        """Return where a process works: its current folder, and its root; none of somebody else's."""
        found: list[str] = []
        with contextlib.suppress(OSError):
            if os.stat(f"{PROC}/{pid}").st_uid == os.geteuid():
                # One that was removed is called so.
                found += (os.readlink(f"{PROC}/{pid}/{name}").removesuffix(" (deleted)") for name in ("cwd", "root"))
        return tuple(found)

    def environ(self, pid: int) -> dict[str, str]:
        """Return what a process was started with in its environment; nothing of somebody else's."""
        return dict(pair.split("=", 1) for pair in os.fsdecode(_read(pid, "environ")).split("\0") if "=" in pair)


class PsutilTable:
    """Through psutil, where there is no /proc."""

    def pids(self) -> list[int]:
        """Return everything that runs."""
        import psutil

        return psutil.pids()

    def look(self, pid: int) -> KnownProcess | None:
        """Return what is known of a process, None if it is gone."""
        import psutil

        try:
            process = psutil.Process(pid)
            is_zombie = process.status() == psutil.STATUS_ZOMBIE
            group, session = os.getpgid(pid), os.getsid(pid)
            has_terminal = process.terminal() is not None
            return KnownProcess(process.ppid(), group, process.create_time(), is_zombie, session, has_terminal)
        except psutil.ZombieProcess:
            return KnownProcess(0, 0, 0.0, is_zombie=True)
        except (psutil.Error, OSError):
            return None

    def carries(self, pid: int, mark: str, value: str) -> bool:
        """Return whether a process was started with `mark=value` in its environment."""
        import psutil

        try:
            return psutil.Process(pid).environ().get(mark) == value
        except (psutil.Error, OSError):  # gone, or somebody else's
            return False

    def folders(self, pid: int) -> tuple[str, ...]:
        """Return where a process works: its current folder; none of somebody else's."""
        import psutil

        try:
            process = psutil.Process(pid)
            return (process.cwd(),) if process.uids().effective == os.geteuid() else ()
        except (psutil.Error, OSError):
            return ()

    def environ(self, pid: int) -> dict[str, str]:
        """Return what a process was started with in its environment; nothing of somebody else's."""
        import psutil

        try:
            return dict(psutil.Process(pid).environ())
        except (psutil.Error, OSError):
            return {}


def table() -> Table:
    """Return this machine's way to look."""
    return ProcTable() if sys.platform == "linux" else PsutilTable()


def facts_of(pid: int | None) -> OwnerFacts:
    """Return what a process that was written down is judged by."""
    known = table().look(pid) if pid is not None else None
    return OwnerFacts(
        host=host_name(),
        boot_id=boot_id(),
        process_started_at=known.started_at if known else None,
        is_zombie=known is not None and known.is_zombie,
        is_hidden=known is None and pid is not None and _is_hidden(pid),
        pid_namespace=pid_namespace(),
        machine_id=machine_id(),
    )


def _is_hidden(pid: int) -> bool:
    """Return whether a process that we cannot see exists anyway: another user's, hidden from us (hidepid)."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def started_at(pid: int) -> float | None:
    """Return when a process started, None if it is gone."""
    known = table().look(pid)
    return known.started_at if known else None


def everything(source: Table | None = None) -> dict[int, KnownProcess]:
    """Return all processes there are."""
    source = source or table()
    looked = ((pid, source.look(pid)) for pid in source.pids())
    return {pid: known for pid, known in looked if known is not None}


def marked(mark: str, run_id: str, source: Table | None = None) -> list[int]:
    """Return the running processes that carry a run's mark; never ourselves nor our ancestors."""
    source = source or table()
    processes = everything(source)
    spared = lineage(processes, os.getpid())
    living = (pid for pid, known in processes.items() if not known.is_zombie and pid not in spared)
    return sorted(pid for pid in living if source.carries(pid, mark, run_id))


def lineage(processes: Mapping[int, KnownProcess], pid: int) -> set[int]:
    """Return a process and all its ancestors."""
    found: set[int] = set()
    while pid in processes and pid not in found:
        found.add(pid)
        pid = processes[pid].parent
    return found | {pid}


def below(processes: Mapping[int, KnownProcess], roots: Iterable[int]) -> set[int]:
    """Return everything that some processes have started and that still hangs below them."""
    children: dict[int, list[int]] = {}
    for pid, known in processes.items():
        children.setdefault(known.parent, []).append(pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        fresh = set(children.get(waiting.pop(), ())) - found
        found |= fresh
        waiting.extend(fresh)
    return found


def _read(pid: int, name: str) -> bytes:
    """Read one of a process's files; nothing if it is gone or not ours to read."""
    try:
        with open(f"{PROC}/{pid}/{name}", "rb", buffering=0) as file:
            return file.readall()
    except OSError:
        return b""


def is_open_anywhere(path: str) -> bool:
    """Return whether a process that we may look at has a file open; never where the system does not show it."""
    try:
        wanted = os.stat(path)
        pids = [name for name in os.listdir(PROC) if name.isdigit()]
    except OSError:
        return False
    return any(os.path.samestat(found, wanted) for pid in pids for found in _open_files(f"{PROC}/{pid}/fd"))


def _open_files(folder: str) -> Iterator[os.stat_result]:
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                yield os.stat(f"{folder}/{name}")
