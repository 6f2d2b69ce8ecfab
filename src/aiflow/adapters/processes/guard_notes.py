"""What the liveness file of a guard says (AGT-5): which process it is, and where its program works.

It outlives a guard that was killed, and is then how the program's processes are found: by cgroup and by folder.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.processes.cgroups import noted
from aiflow.adapters.processes.machine import boot_id, pid_namespace
from aiflow.domain.process import own_folder

if TYPE_CHECKING:
    from aiflow.domain.programs import Program

SUFFIX = ".guard"
MOST_BYTES = 100_000


class GuardNote(NamedTuple):
    """A guard of this boot and this container: its process, its program's worktree, and the call's cgroup."""

    pid: int
    started_at: float
    folder: str | None
    cgroup: str | None


def worktree_of(program: Program) -> str | None:
    """Return the run's worktree that a program works in, None if it works elsewhere."""
    return own_folder(os.path.realpath(program.cwd), program.run_id)


def name_of(path: str) -> str:
    """Return what a guard's call is called: its liveness file without the ending."""
    return os.path.basename(path).removesuffix(SUFFIX)


def note_of(pid: int, started_at: float | None, folder: str | None, cgroup: str | None) -> bytes:
    """Write down a guard."""
    where = json.dumps({"boot_id": boot_id(), "folder": folder, "cgroup": cgroup})
    return f"{pid} {started_at!r} {pid_namespace()}\n{where}\n".encode()


def read_note(path: str) -> GuardNote | None:
    """Read about a guard; None if there is none, or one of another boot or container, whose numbers mean nothing."""
    try:
        with open(path, "rb") as file:
            first, _, second = file.read(MOST_BYTES).decode().partition("\n")
        pid, started_at, *where = first.split()
        more = json.loads(second) if second else {}
        is_seen = where in ([], [str(pid_namespace())]) and more.get("boot_id") in (None, boot_id())
        folder = more.get("folder")
        cgroup = noted(more.get("cgroup"), name_of(path)) if more.get("boot_id") else None
        return GuardNote(int(pid), float(started_at), str(folder) if folder else None, cgroup) if is_seen else None
    except (FileNotFoundError, ValueError, AttributeError):
        return None


def liveness_files(guards_folder: str, run_id: str) -> list[str]:
    """Return the liveness files of a run's guards."""
    try:
        names = os.listdir(guards_folder)
    except FileNotFoundError:
        return []
    ours = (name for name in names if name.endswith(SUFFIX) and name_of(name).rpartition(".")[0] == run_id)
    return [os.path.join(guards_folder, name) for name in sorted(ours)]
