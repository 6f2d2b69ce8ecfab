"""What in the git folder that all worktrees share makes git run a program, or change what files hold (SEC).

Whoever writes there decides what the user's git, and aiflow's own, does next. Branches, remotes and the like are not
among it: they change all the time, and are nobody's command.
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING

from aiflow.adapters.git.git_files import find_checkout
from aiflow.adapters.git.repository_facts import readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.adapters.git.git_cli import Git

# Names as git writes them: section and key in lower case.
_KEYS = re.compile(
    rb"(filter|diff|merge)\..+\.(clean|smudge|process|required|textconv|command|driver)"
    rb"|core\.(attributesfile|hookspath|fsmonitor|sshcommand|gitproxy|askpass|editor|pager|worktree|ignorecase)"
    rb"|extensions\.worktreeconfig|include\.path|includeif\..+\.path|alias\..+|pager\..+|sequence\.editor"
    rb"|gpg\.(.+\.)?program|credential\.(.+\.)?helper|diff\.external|url\..+\.(pushinsteadof|insteadof)",
    re.DOTALL,
)
_SAMPLE = ".sample"


def read_obeyed(git: Git, worktree: str) -> dict[str, str]:
    """Return by name what git obeys in the shared folder and for one worktree, each as a fingerprint."""
    common = git.common_dir()
    checkout = find_checkout(worktree, common)
    sources = [("--local", "--includes")]
    own = os.path.join(checkout.git_dir, "config.worktree") if checkout else ""
    if os.path.isfile(own):
        sources.append(("--includes", f"--file={own}"))
    found: dict[str, str] = {}
    for source in sources:
        for item in git.run("config", "--list", "-z", *source).items:
            key, _, value = item.partition(b"\n")
            name = readable(key)
            if _KEYS.fullmatch(key):  # of several values each counts
                found[name] = _digest(found.get(name, "").encode() + value)
    return found | {name: _digest(_content(os.path.join(common, name))) for name in _files(common)}


def _files(common: str) -> Iterator[str]:
    """Yield the files that count, by their paths in the git folder."""
    if os.path.lexists(os.path.join(common, "info/attributes")):
        yield "info/attributes"
    try:
        hooks = sorted(os.listdir(os.path.join(common, "hooks")))
    except OSError:
        return
    yield from (f"hooks/{name}" for name in hooks if not name.endswith(_SAMPLE))


def _content(path: str) -> bytes:
    """Return what a file holds and whether it is one that git would run; what cannot be read is told by that alone."""
    try:
        with open(path, "rb") as file:
            return f"{os.stat(path).st_mode:o}\n".encode() + file.read()
    except OSError as error:
        return str(error.errno).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
