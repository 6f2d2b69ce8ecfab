"""Ending what a dead runner left behind, before anybody takes its place (LCK-4, AGT-5).

A guard that lives ends everything by itself and then lets go of its liveness file; only where the guard was lost too
are processes looked for by the mark they carry.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import translated
from aiflow.adapters.files.guard_files import is_held
from aiflow.adapters.processes import table
from aiflow.adapters.processes.machine import pid_namespace
from aiflow.domain.programs import GIT_MARK, GUARD_MARK, RUN_MARK

if TYPE_CHECKING:
    from collections.abc import Callable

GUARD_SECONDS = 8.0
GIT_SECONDS = 10.0
SWEEP_SECONDS = 5.0
SUFFIX = ".guard"


def end_leftovers(guards_folder: str, run_id: str, since: float | None) -> int:
    """End whatever a run's dead runner left running, and return how many processes had to be killed.

    `since` is a start time of `table.started_at`: nothing older is touched but the guards themselves.
    """
    with translated(guards_folder):
        if not _wait(lambda: not are_guards_at_work(guards_folder, run_id), GUARD_SECONDS):
            _kill_guards(guards_folder, run_id)
        ended = sweep(RUN_MARK, run_id, since)
        # Git ends by itself soon after its caller; killed in the middle it would leave its own locks behind.
        _wait(lambda: not _targets(GIT_MARK, run_id, since), GIT_SECONDS)
        ended += sweep(GIT_MARK, run_id, since)
        for path in liveness_files(guards_folder, run_id):
            _remove_if_free(path)
    return ended


def sweep(mark: str, run_id: str, since: float | None, seconds: float = SWEEP_SECONDS) -> int:
    """Kill every process that carries a mark, and what it started, until none is left; return how many."""
    ended: set[int] = set()
    quiet = 0
    deadline = time.monotonic() + seconds
    # Once is not enough: somebody may fork between our listing and our look at the parent.
    while quiet < 2 and time.monotonic() < deadline:
        targets = _targets(mark, run_id, since)
        _kill(targets)
        ended |= set(targets)
        quiet = 0 if targets else quiet + 1
        time.sleep(0.005)
    return len(ended)


def liveness_files(guards_folder: str, run_id: str) -> list[str]:
    """Return the liveness files of a run's guards."""
    try:
        names = os.listdir(guards_folder)
    except FileNotFoundError:
        return []
    ours = (name for name in names if name.endswith(SUFFIX) and name.removesuffix(SUFFIX).rpartition(".")[0] == run_id)
    return [os.path.join(guards_folder, name) for name in sorted(ours)]


def _targets(mark: str, run_id: str, since: float | None) -> dict[int, table.KnownProcess]:
    """Return the living processes of a mark with everything below them; never ourselves nor whoever started us."""
    carrying = table.marked(mark, run_id)
    if not carrying:
        return {}
    processes = table.everything()
    spared = table.lineage(processes, os.getpid())
    found = {pid: processes[pid] for pid in {*carrying, *table.below(processes, carrying)} - spared if pid in processes}
    return {pid: one for pid, one in found.items() if not one.is_zombie and (since is None or one.started_at >= since)}


def _kill(targets: dict[int, table.KnownProcess]) -> None:
    """Kill processes, each by its group too where that is led by one of them: nobody can fork away from that."""
    for pid, known in targets.items():
        if table.started_at(pid) != known.started_at:  # gone, and the number may be somebody else's by now
            continue
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if known.group == pid:
                os.killpg(pid, signal.SIGKILL)
            else:
                os.kill(pid, signal.SIGKILL)


def are_guards_at_work(guards_folder: str, run_id: str) -> bool:
    """Tell whether a guard still holds its liveness file, or lives though somebody removed that."""
    if any(is_held(path) for path in liveness_files(guards_folder, run_id)):
        return True
    return bool(table.marked(GUARD_MARK, run_id))


def _kill_guards(guards_folder: str, run_id: str) -> None:
    """Kill guards that do not come to an end, one that was stopped for example."""
    pids = table.marked(GUARD_MARK, run_id)
    for path in liveness_files(guards_folder, run_id):
        if is_held(path) and (pid := _recorded(path)) is not None:
            pids.append(pid)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    _wait(lambda: not are_guards_at_work(guards_folder, run_id), 1.0)


def _recorded(path: str) -> int | None:
    """Return the guard that a liveness file names, if that is the process of this number still."""
    try:
        with open(path, encoding="ascii") as file:
            pid, started_at, *where = file.read(100).split()
        is_seen = where in ([], [str(pid_namespace())])  # from another container, its number is somebody else's here
        return int(pid) if is_seen and table.started_at(int(pid)) == float(started_at) else None
    except (FileNotFoundError, ValueError):
        return None


def _remove_if_free(path: str) -> None:
    if not is_held(path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _wait(is_so: Callable[[], bool], seconds: float) -> bool:
    """Wait until something is so; False if it is not in time."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True
