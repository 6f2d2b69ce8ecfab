"""The demo on disk (CLI `demo`): its files come from the package, its folder becomes a repository of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import aiflow
from aiflow.adapters.files.atomic_files import translated
from aiflow.adapters.git.git_cli import Git
from aiflow.adapters.machine import checkout_folder
from aiflow.errors import BadInputError
from aiflow.settings import TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

SOURCE = Path(aiflow.__file__).parent / "demo"
# It is the same repository for every user: with an identity, and with no person's settings between it and its files.
CONFIG = {
    "user.name": "aiflow demo",
    "user.email": "demo@example.com",
    "commit.gpgSign": "false",
    "core.autocrlf": "false",
    "core.excludesFile": os.devnull,
    "core.attributesFile": os.devnull,
}


class DemoFolder:
    """A folder for a demo: one that is named, or a new one below the system's temporary folder."""

    def __init__(self, path: str | None, environ: MutableMapping[str, str]) -> None:
        self._path = path
        self._environ = environ
        self.python = "python3" if _find("python3") else sys.executable
        self.needs = (*_unset(environ), *_way_to_program())

    def leave_settings(self) -> None:
        """Take the person's own settings out of the environment: a demo needs its own agent and no other."""
        for name in _names_of_settings():
            self._environ.pop(name, None)

    @staticmethod
    def source(language: str) -> str:
        """Return the folder that the demo's files in one language come from."""
        return str(SOURCE / language)

    def load(self, language: str) -> dict[str, str]:
        """Return the demo's files in one language, path -> text."""
        folder = Path(self.source(language))
        with translated(folder):
            found = (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
            return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in found}

    def build(self, files: Mapping[str, str], message: str) -> str:
        """Make a repository with these files in its first commit and return its folder, or leave nothing behind."""
        root, is_new = _make_empty(self._path)
        try:
            with translated(root):
                for name, text in files.items():
                    path = root / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8", newline="\n")
            _commit(str(root), message)
        except BaseException:
            for path in (root,) if is_new else tuple(root.iterdir()):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
            raise
        return str(root)

    def traces(self, root: str) -> tuple[str, ...]:
        """Return every folder that a demo and its runs leave: its own, and that of its worktrees."""
        return root, str(checkout_folder(root, self._environ))


def _make_empty(name: str | None) -> tuple[Path, bool]:
    """Make the folder, or see that it is empty; and whether it is new."""
    if name is None:
        with translated("TMPDIR"):
            return Path(os.path.realpath(tempfile.mkdtemp(prefix="aiflow-demo-"))), True
    root = Path(os.path.abspath(name))
    with translated(root):
        try:
            root.mkdir(parents=True)
        except FileExistsError:
            if not root.is_dir() or any(root.iterdir()):
                raise BadInputError(reason_code="FOLDER_IN_USE", path=str(root)) from None
            return root, False
    return root, True


def _commit(root: str, message: str) -> None:
    git = Git(root)
    git.run("init", "--quiet", "--initial-branch=main", "--template=")
    for name, value in CONFIG.items():
        git.run("config", name, value)
    git.run("add", "--all")
    git.run("commit", "--quiet", "--message", message)


def _names_of_settings() -> tuple[str, ...]:
    return tuple(name for setting in TABLE for name in setting.env_names)


def _unset(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command that takes settings out of the environment of a person's shell; the language may stay."""
    names = [name for name in _names_of_settings() if name in environ and not name.startswith("AIFLOW_LANG")]
    return (f"unset {' '.join(names)}",) if names else ()


def _way_to_program() -> tuple[str, ...]:
    """Return the command that lets a shell find this `aiflow`, if it does not already."""
    own = os.path.join(os.path.dirname(sys.executable), "aiflow")
    found = _find("aiflow")
    if found and os.path.realpath(found) in (os.path.realpath(own), os.path.realpath(sys.argv[0])):
        return ()
    if os.access(own, os.X_OK):
        return (f'export PATH={shlex.quote(os.path.dirname(own))}:"$PATH"',)
    return (f'aiflow() {{ {shlex.quote(sys.executable)} -m aiflow "$@"; }}',)


def _find(program: str) -> str | None:
    """Return where a program is; one that is found from here alone does not count."""
    found = shutil.which(program)
    return found if found and os.path.isabs(found) else None
