"""What the user's repository is like (GIT-1, GIT-2, RUN-7); looking changes nothing there."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

from aiflow.adapters.git.git_files import common_dir, read_ref
from aiflow.domain.runs.worktree import RepositoryFacts
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.adapters.git.git_cli import Git

# Git reports these settings with any command (trace2), which saves a process; the first we always set ourselves.
_TOLD = ("core.quotepath", "user.*", "author.*", "committer.*", "remote.origin.url", "url.*.insteadof")
_TELLING = {
    "GIT_TRACE2_EVENT": "1",
    "GIT_TRACE2_EVENT_NESTING": "1",
    "GIT_TRACE2_CONFIG_PARAMS": ",".join(_TOLD),
}
# What git itself strips from names and addresses; nothing but these is no identity.
_CRUD = "".join(map(chr, range(33))) + ".,:;<>\"\\'"

Settings = dict[str, list[str]]


def look(git: Git, base_branch: str) -> RepositoryFacts:
    """Look at the user's repository; an empty base branch is the one that is checked out."""
    status = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=no", "--no-renames")
    done = git.run(*status, environ=_TELLING)
    head: dict[bytes, str] = {}
    changed: list[str] = []
    for item in done.items:
        if item.startswith(b"# branch."):
            name, _, value = item.removeprefix(b"# branch.").partition(b" ")
            head[name] = os.fsdecode(value)
        elif path := path_of_status(item):
            changed.append(readable(path))
    commit = None if head[b"oid"] == "(initial)" else head[b"oid"]
    branch = None if head[b"head"] == "(detached)" else head[b"head"]
    base = base_branch or branch or ""
    settings = _told(done.err) or _asked(git)
    return RepositoryFacts(
        head_branch=branch,
        head_commit=commit,
        base_branch=base,
        base_commit=commit if base == branch else commit_of(git, base),
        changed_paths=tuple(changed),
        identity=_identity(git, settings),
        origin_url=_origin(settings),
        has_submodules=os.path.lexists(os.path.join(git.cwd, ".gitmodules")),
        uses_lfs=_uses_lfs(git.cwd),
        # Git has no room for `aiflow/…` next to a branch named `aiflow`.
        is_name_taken=bool((common := common_dir(git.cwd)) and read_ref(common, "refs/heads/aiflow")),
    )


def commit_of(git: Git, branch: str, common: str | None = None) -> str | None:
    """Return a branch's commit, or None if there is no such branch."""
    ref = f"refs/heads/{branch}"
    common = common or common_dir(git.cwd)
    known = read_ref(common, ref) if common and branch else None
    if known is not None or not branch:
        return known or None
    return git.run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", ok=(0, 1)).word or None


def tracked_in(git: Git, folder: str) -> tuple[str, ...]:
    """Return the files that git tracks in a folder, and in folders below it, by their paths from the root."""
    listed = git.run("ls-files", "-z", "--cached", "--", f":(top,literal){folder}/")
    return tuple(sorted(map(readable, listed.items)))


def version_of(git: Git) -> tuple[int, ...]:
    """Return git's version; a maker's own additions (`.windows.1`, `(Apple Git-1)`) apart."""
    found = re.search(r"\d+(?:\.\d+)*", git.run("version").word)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def path_of_status(item: bytes) -> bytes | None:
    """Return the path of an entry of `git status --porcelain=v2 -z --no-renames`, or None if it names none."""
    before = {b"1": 8, b"u": 10, b"?": 1}.get(item[:1])
    return item.split(b" ", before)[-1] if before else None


def ignores_case(git: Git) -> bool:
    """Return whether names that differ only in case are the same file in a checkout, by git's setting or its disk."""
    if git.run("config", "--bool", "core.ignorecase", ok=(0, 1, 128)).word == "true":
        return True
    head, other = (os.path.join(git.common_dir(), name) for name in ("HEAD", "head"))
    return os.path.exists(other) and os.path.samefile(head, other)


def readable(path: bytes) -> str:
    """Return a path that can be shown and written as UTF-8, whatever bytes it has."""
    return path.decode("utf-8", "backslashreplace")


def _told(err: bytes) -> Settings:
    """Read the settings that git reported with a command; nothing if this git reports none."""
    settings: Settings = {}
    for line in err.splitlines():
        if not line.startswith(b'{"event":"def_param"'):
            continue
        event = json.loads(line.decode("utf-8", "surrogateescape"))
        if "/" not in event["sid"]:  # not a submodule's
            settings.setdefault(event["param"], []).append(event["value"])
    return settings if _TOLD[0] in settings else {}


def _asked(git: Git) -> Settings:
    settings: Settings = {}
    for item in git.run("config", "--list", "-z").items:
        name, _, value = os.fsdecode(item).partition("\n")
        settings.setdefault(name, []).append(value)
    return settings


def _identity(git: Git, settings: Settings) -> str | None:
    """Return who would commit; None if git would refuse to, as it does with what it would have to make up."""
    people = [_given(role, settings) for role in ("committer", "author")]
    if all(people):
        return people[0]
    try:
        idents = [git.run("var", name).word for name in ("GIT_COMMITTER_IDENT", "GIT_AUTHOR_IDENT")]
    except AiflowError:
        return None
    return idents[0].rsplit(" ", 2)[0]


def _given(role: str, settings: Settings, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return a name and an address that were both given, where git needs to guess nothing."""
    words = []
    for part in ("name", "email"):
        chosen = environ.get(f"GIT_{role}_{part}".upper())
        for key in (f"{role}.{part}", f"user.{part}"):
            chosen = chosen if chosen is not None else settings.get(key, [None])[-1]
        words.append((chosen or "").strip(_CRUD))
    return f"{words[0]} <{words[1]}>" if all(words) else None


def _origin(settings: Settings) -> str | None:
    """Return where `origin` is, short forms of the user (`url.….insteadOf`) written out."""
    url = settings.get("remote.origin.url", [""])[0]
    longest = ""
    written_out = url
    for key, shorts in settings.items():
        match = re.fullmatch(r"url\.(.*)\.insteadof", key, re.DOTALL)
        for short in shorts if match else ():
            if match and url.startswith(short) and len(short) > len(longest):
                longest, written_out = short, match[1] + url.removeprefix(short)
    return written_out or None


def _uses_lfs(root: str) -> bool:
    try:
        with open(os.path.join(root, ".gitattributes"), "rb") as file:
            return b"filter=lfs" in file.read(1_000_000)
    except OSError:
        return False
