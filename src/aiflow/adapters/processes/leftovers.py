"""Ending what a killed runner left running, before another takes its place (LCK-4, AGT-5).

A running guard ends everything itself and then releases its liveness file; only if the guard was killed too
are processes looked for: in its call's cgroup where there was one, by the mark they carry, and by where they work, for
one may have emptied its environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import translated
from aiflow.adapters.files.guard_files import is_held
from aiflow.adapters.processes import cgroups, table
from aiflow.adapters.processes.guard_notes import liveness_files, read_note
from aiflow.domain.process import Seen, is_persons, left_by_call
from aiflow.domain.programs import GIT_MARK, GUARD_MARK, RUN_MARK

if TYPE_CHECKING:
    from collections.abc import Callable

GUARD_SECONDS = 8.0
GIT_SECONDS = 10.0
SWEEP_SECONDS = 5.0


def end_leftovers(guards_folder: str, run_id: str, since: float | None) -> int:
    """End whatever a run's killed runner left running, and return how many processes had to be killed.

    `since` is a start time of `table.started_at`: nothing older is touched but the guards themselves.
    """
    with translated(guards_folder):
        if not _wait(lambda: not are_guards_at_work(guards_folder, run_id), GUARD_SECONDS):
            _kill_guards(guards_folder, run_id)
        free = [read_note(path) for path in liveness_files(guards_folder, run_id) if not is_held(path)]
        notes = [note for note in free if note]
        ended = sum(cgroups.end_members(note.cgroup, note.pid) for note in notes)
        ended += sweep(RUN_MARK, run_id, since)
        ended += sum(sweep_worktree(note.folder, run_id, note.started_at) for note in notes)
        # Git ends soon after its caller; killed in the middle, it would leave its locks.
        _wait(lambda: not _targets(GIT_MARK, run_id, since), GIT_SECONDS)
        ended += sweep(GIT_MARK, run_id, since)
        for path in liveness_files(guards_folder, run_id):
            _remove_if_free(path)
        for note in notes:
            cgroups.remove(note.cgroup)
        cgroups.remove_empty()
    return ended


def sweep(mark: str, run_id: str, since: float | None, seconds: float = SWEEP_SECONDS) -> int:
    """Kill every process that carries a mark, and what it started, until none is left; return how many."""
    return _until_none(lambda: _targets(mark, run_id, since), seconds)


def sweep_worktree(folder: str | None, run_id: str, since: float | None) -> int:
    """Kill what a lost guard's program left running in a run's worktree, marked or not; return how many."""
    if folder is None or since is None:
        return 0
    return _until_none(lambda: _strays(folder, run_id, since), SWEEP_SECONDS)


def _until_none(look: Callable[[], dict[int, table.KnownProcess]], seconds: float) -> int:
    """Kill what is found until nothing is; return how many."""
    ended: set[int] = set()
    quiet = 0
    deadline = time.monotonic() + seconds
    # Once is not enough: somebody may fork between our listing and our look at the parent.
    while quiet < 2 and time.monotonic() < deadline:
        targets = look()
        _kill(targets)
        ended |= set(targets)
        quiet = 0 if targets else quiet + 1
        time.sleep(0.005)
    return len(ended)


def _targets(mark: str, run_id: str, since: float | None) -> dict[int, table.KnownProcess]:
    """Return the running processes of a mark with all descendants; never ourselves nor our ancestors."""
    carrying = table.marked(mark, run_id)
    if not carrying:
        return {}
    processes = table.everything()
    spared = table.lineage(processes, os.getpid())
    found = {pid: processes[pid] for pid in {*carrying, *table.below(processes, carrying)} - spared if pid in processes}
    return {pid: one for pid, one in found.items() if not one.is_zombie and (since is None or one.started_at >= since)}


def _strays(folder: str, run_id: str, since: float) -> dict[int, table.KnownProcess]:
    """Return the living processes that a call in a run's worktree left behind (`left_by_call`)."""
    source = table.table()
    processes = {pid: one for pid, one in table.everything(source).items() if not one.is_zombie}

    def seen(pid: int, one: table.KnownProcess) -> Seen:
        basic = Seen(one.parent, one.session, one.started_at, has_terminal=one.has_terminal)
        folders = source.folders(pid) if one.started_at >= since else ()
        if not folders:  # older than the call, or somebody else's
            return replace(basic, is_persons=True)
        environ = source.environ(pid)
        return replace(
            basic,
            is_inside=any(f"{each}/".startswith(f"{folder}/") for each in folders),
            is_marked=environ.get(RUN_MARK) == run_id,
            # Git and guards end without help; we wait for them.
            is_persons=is_persons(environ) or not {GIT_MARK, GUARD_MARK}.isdisjoint(environ),
        )

    found = {pid: seen(pid, one) for pid, one in processes.items()}
    return {pid: processes[pid] for pid in left_by_call(found, since, table.lineage(processes, os.getpid()))}


def _kill(targets: dict[int, table.KnownProcess]) -> None:
    """Kill processes, and their group if one of them leads it: no process can escape that by forking."""
    for pid, known in targets.items():
        if table.started_at(pid) != known.started_at:  # gone, and the number may be somebody else's by now
            continue
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if known.group == pid:
                os.killpg(pid, signal.SIGKILL)
            else:
                os.kill(pid, signal.SIGKILL)


def are_guards_at_work(guards_folder: str, run_id: str) -> bool:
    """Return whether a guard still holds its liveness file, or is running although the file was removed."""
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
    note = read_note(path)
    return note.pid if note and table.started_at(note.pid) == note.started_at else None


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
