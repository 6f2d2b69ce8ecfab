"""What in the git folder that all worktrees share makes git change what files hold, or run a program for others (SEC).

What is written there decides what the user's git, and aiflow's own, makes of a file. Branches, remotes and the like are
not among it, for they change all the time; nor are hooks, which tools such as husky set while dependencies are
installed: aiflow runs none, and those of a person are theirs to look after.

The files are read here, and not by git: this is asked around every call of an agent.
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING

from aiflow.adapters.git.git_files import find_checkout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.adapters.git.git_cli import Git

# Names as git writes them: section and key in lower case.
_KEYS = re.compile(
    r"(filter|diff|merge)\..+\.(clean|smudge|process|required|textconv|command|driver)"
    r"|core\.(attributesfile|fsmonitor|sshcommand|gitproxy|askpass|editor|pager|worktree|ignorecase)"
    r"|include\.path|includeif\..+\.path|alias\..+|pager\..+|sequence\.editor"
    r"|gpg\.(.+\.)?program|credential\.(.+\.)?helper|diff\.external|url\..+\.(pushinsteadof|insteadof)",
    re.DOTALL,
)
_SECTION = re.compile(r"""\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]""")
_KEY = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:=(.*))?", re.DOTALL)
_ATTRIBUTES = "info/attributes"


def read_obeyed(git: Git, worktree: str) -> dict[str, str]:
    """Return by name what git obeys in the shared folder and for one worktree, each as a fingerprint."""
    common = git.common_dir()
    checkout = find_checkout(worktree, common)
    files = [os.path.join(common, "config")]
    files += [os.path.join(checkout.git_dir, "config.worktree")] if checkout else []
    found: dict[str, str] = {}
    for file in files:
        for name, value in _settings(_content(file).decode("utf-8", "replace")):
            if _KEYS.fullmatch(name):  # of several values each counts
                found[name] = _digest((found.get(name, "") + value).encode("utf-8", "replace"))
    attributes = os.path.join(common, _ATTRIBUTES)
    return found | ({_ATTRIBUTES: _digest(_content(attributes))} if os.path.lexists(attributes) else {})


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Yield what a file of git's settings sets; a value is as it is written: enough to tell two apart."""
    section = ""
    for line in re.sub(r"\\\r?\n", "", text).splitlines():
        rest = line
        if told := _SECTION.match(line):
            section = told[1].lower() + (f".{told[2]}" if told[2] is not None else "")
            rest = line[told.end() :]
        if (key := _KEY.match(rest)) is not None:
            yield f"{section}.{key[1].lower()}", (key[2] or "").strip()


def _content(path: str) -> bytes:
    """Return what a file holds; of one that cannot be read, why."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""
    except OSError as error:
        return str(error.errno).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
