"""The machine a run works on (GIT-1, GIT-4, AGT-4): where worktrees go, shell commands, files to copy, room."""

from __future__ import annotations

import errno
import hashlib
import os
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from aiflow.adapters.files.atomic_files import is_inside, translated
from aiflow.adapters.files.file_system import is_network, kind_of
from aiflow.adapters.processes.environment import minimal
from aiflow.domain.programs import Program
from aiflow.errors import EnvironmentProblemError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiflow.domain.programs import Ended
    from aiflow.domain.runs.worktree import Place
    from aiflow.ports import Processes
    from aiflow.settings import Settings


def state_home(environ: Mapping[str, str]) -> Path:
    """Return the user's state directory of aiflow, outside every repository."""
    base = environ.get("XDG_STATE_HOME", "")
    home = Path(base) if os.path.isabs(base) else Path(environ.get("HOME") or os.path.expanduser("~"), ".local/state")
    return home / "aiflow"


def checkout_folder(root: str, environ: Mapping[str, str]) -> Path:
    """Return the folder of one checkout in the state directory: readable, and never shared by two checkouts."""
    real = os.path.realpath(root)
    return state_home(environ) / f"{os.path.basename(real)}-{hashlib.sha256(real.encode()).hexdigest()[:8]}"


class LocalWorkshop:
    """This machine, for one checkout."""

    def __init__(self, root: str, environ: Mapping[str, str], settings: Settings, processes: Processes) -> None:
        self._root = root
        self._environ = environ
        self._settings = settings
        self._processes = processes
        self._folder = checkout_folder(root, environ)

    def worktree_path(self, run_id: str) -> str:
        """Return where a run's worktree goes."""
        return str(self._folder / "worktrees" / run_id)

    def copy(self, paths: tuple[str, ...], target: str) -> tuple[str, ...]:
        """Copy what is there of these paths from the user's checkout; one outside it is a mistake in the settings."""
        copied = []
        for path in paths:
            source = Path(self._root, path)
            is_all_of_it = os.path.realpath(source) == os.path.realpath(self._root)
            if os.path.isabs(path) or is_all_of_it or not is_inside(self._root, source):
                problem = words("copy.whole") if is_all_of_it else words("copy.outside")
                raise EnvironmentProblemError(reason_code="SETUP_FAILED", path=path, problem=problem)
            if source.exists():
                with translated(source):
                    _copy(source, Path(target, path))
                copied.append(path)
        return tuple(copied)

    def shell(
        self, command: str, place: Place, output: Callable[[bytes], None], should_stop: Callable[[], bool]
    ) -> Ended:
        """Run a test or set-up command in a worktree."""
        program = Program(
            argv=("/bin/sh", "-c", command),
            cwd=place.path,
            environ=minimal(self._environ, self._settings.texts("tests.env")),
            run_id=place.run_id,
            timeout_seconds=self._settings.number("tests.timeout_seconds"),
            idle_seconds=self._settings.number("tests.idle_seconds"),
        )
        return self._processes.run(program, output, should_stop)

    def find_program(self, command: str) -> str | None:
        """Return the program that a shell command starts with if it cannot be found, else None."""
        try:
            words = shlex.split(command)
        except ValueError:
            return None
        program = next((word for word in words if "=" not in word), "")
        if not program or any(mark in program for mark in "$`(){};&|<>*!["):  # the shell's own business
            return None
        path = self._environ.get("PATH", os.defpath)
        is_there = shutil.which(program, path=path) or os.path.exists(os.path.join(self._root, program))
        return None if is_there or program in _BUILTINS else program

    def is_repository_root(self) -> bool:
        """Return whether the project is a repository, and not a folder inside one."""
        return os.path.exists(os.path.join(self._root, ".git"))

    def file_system(self) -> str | None:
        """Return the kind of file system the checkout is on if it is a network's, else None."""
        kind = kind_of(self._root)
        return kind if kind is not None and is_network(kind) else None

    def confinement(self) -> str | None:
        """Return what confines agents on this machine, None if nothing does."""
        return self._processes.confinement()

    def unwritable(self) -> tuple[str, str] | None:
        """Return the folder that keeps worktrees from being made and what is the matter with it, else None."""
        folder = self._folder / "worktrees"
        there = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
        if not there.is_dir():
            return str(there), os.strerror(errno.ENOTDIR)
        may_write = os.access(there, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)
        return None if may_write else (str(there), os.strerror(errno.EACCES))

    def least_room(self) -> tuple[str, int]:
        """Return the checkout or where worktrees go, whichever has less room, and how many bytes that is."""
        rooms = (
            (str(folder), shutil.disk_usage(_existing(folder)).free) for folder in (Path(self._root), self._folder)
        )
        return min(rooms, key=lambda room: room[1])


def _copy(source: Path, target: Path) -> None:
    """Copy a file or a folder, links as links, over what an earlier copy left."""
    if not source.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)
        return
    for folder, names, files in os.walk(source):
        for name in (*names, *files):
            there = target / os.path.relpath(os.path.join(folder, name), source)
            if os.path.islink(os.path.join(folder, name)) and os.path.islink(there):
                there.unlink()
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)


_BUILTINS = frozenset(
    [
        "cd",
        "true",
        "false",
        "test",
        "[",
        ":",
        ".",
        "exec",
        "set",
        "export",
        "eval",
        "exit",
        "if",
        "for",
        "while",
        "case",
    ]
)


def _existing(folder: Path) -> Path:
    return next(each for each in (folder, *folder.parents) if each.exists())
