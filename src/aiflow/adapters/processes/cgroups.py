"""A cgroup for every guarded call, where Linux lets us make one (AGT-5): clearing the environment does not leave it.

It is a child of our own cgroup, named as the call's liveness file is, and made by the guard (`forking.py`). Where there
is no cgroup v2 or it is not ours to change (version 1 alone, mounted read-only, not delegated to us), a call works
without.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time

from aiflow.adapters.processes import table
from aiflow.adapters.processes.machine import PROC

PREFIX = "aiflow-"
MEMBERS = "cgroup.procs"
# A killed process keeps its cgroup busy until it has given back its memory.
REMOVE_SECONDS = 1.0
KILL_SECONDS = 5.0


def cgroup_for(name: str) -> str | None:
    """Return where the cgroup of a call belongs, below our own; None where we may make none."""
    parent = own_cgroup()
    return f"{parent}/{PREFIX}{name}" if parent is not None and os.access(parent, os.W_OK) else None


def own_cgroup() -> str | None:
    """Return the folder of the cgroup that we are in, None if there is none to be seen."""
    try:
        return folder_of(_read(f"{PROC}/self/cgroup"), _read(f"{PROC}/self/mountinfo"))
    except OSError:
        return None


def folder_of(cgroups: str, mounts: str) -> str | None:
    """Return where a process's cgroup of version 2 is mounted: from its `cgroup` and `mountinfo` of /proc."""
    own = next((line.removeprefix("0::") for line in cgroups.splitlines() if line.startswith("0::/")), "")
    for root, point in _mounted(mounts):
        inside = own if root == "/" else own.removeprefix(root) if f"{own}/".startswith(f"{root}/") else None
        if own and inside is not None and ".." not in own.split("/"):
            return f"{point}{inside}".rstrip("/")
    return None


def is_call(path: str, name: str, mounts: str) -> bool:
    """Return whether a path is where the cgroup of the call with this name can be: no other is ever touched."""
    is_below = any(path.startswith(f"{point}/") for _, point in _mounted(mounts))
    return is_below and os.path.basename(path) == PREFIX + name and os.path.realpath(path) == path


def noted(path: object, name: str) -> str | None:
    """Return a call's cgroup that was written down, None if the path cannot be that."""
    try:
        return path if isinstance(path, str) and is_call(path, name, _read(f"{PROC}/self/mountinfo")) else None
    except (OSError, ValueError):
        return None


def end_members(path: str | None, guard: int = 0) -> int:
    """Kill everything in a call's cgroup but us and our ancestors, and return how many there were.

    The lost guard is not counted: it releases its pipes and files a moment before it is gone from there.
    """
    if path is None or not (found := members(path)):
        return 0
    spared = table.lineage(table.everything(), os.getpid())
    ended: set[int] = set()
    deadline = time.monotonic() + KILL_SECONDS
    while (found - spared) and time.monotonic() < deadline:
        ended |= found - spared
        if found & spared or not _kill_at_once(path):
            kill_each(path, found - spared)
        time.sleep(0.002)
        found = members(path)
    return len(ended - {guard})


def members(path: str) -> set[int]:
    """Return the processes in a cgroup and in those below it."""
    found: set[int] = set()
    for folder, _, _ in os.walk(path):
        with contextlib.suppress(OSError):
            found |= {int(pid) for pid in _read(f"{folder}/{MEMBERS}").split()}
    return found - {0}  # a process that has no number here is called so


def _kill_at_once(path: str) -> bool:
    """Let the kernel kill everything in a cgroup; False before Linux 5.14, which cannot."""
    try:
        _write(f"{path}/cgroup.kill", 1)
    except OSError:
        return False
    return True


def kill_each(path: str, pids: set[int]) -> None:
    """Kill processes of a cgroup one by one."""
    with contextlib.ExitStack() as stack:
        handles: dict[int, int] = {}
        for pid in pids:
            with contextlib.suppress(OSError):
                handles[pid] = os.pidfd_open(pid)
                stack.callback(os.close, handles[pid])
        # A number that is listed still was not given to somebody else before we took hold of it.
        for pid in members(path) & set(handles):
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(handles[pid], signal.SIGKILL)


def remove(path: str | None, seconds: float = REMOVE_SECONDS) -> None:
    """Remove an empty cgroup; one that stays busy is left to the next start."""
    deadline = time.monotonic() + seconds
    pause = 0.0001
    while path is not None and not _is_removed(path) and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(pause * 2, 0.01)


def remove_empty(parent: str | None = None) -> None:
    """Remove what killed runners left of their calls' cgroups beside ours."""
    parent = parent or own_cgroup()
    with contextlib.suppress(OSError):
        for name in os.listdir(parent) if parent else ():
            path = f"{parent}/{name}"
            with contextlib.suppress(OSError):
                if name.startswith(PREFIX) and "populated 0" in _read(f"{path}/cgroup.events"):
                    _is_removed(path)


def _is_removed(path: str) -> bool:
    """Remove a cgroup and those below it; False if it is busy."""
    for folder, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(folder)
        except OSError as error:
            if error.errno == errno.EBUSY:
                return False
    return True


def _mounted(mounts: str) -> list[tuple[str, str]]:
    """Return every cgroup v2 of a `mountinfo`: what of it is mounted, and where."""
    lines = (line.partition(" - ") for line in mounts.splitlines())
    fields = (before.split(" ") for before, _, after in lines if after.startswith("cgroup2 "))
    return [(each[3], each[4]) for each in fields if len(each) > 4]


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def _write(path: str, number: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"%d" % number)
    finally:
        os.close(fd)
