"""Taking everything in a worktree into its index (RUN-3), nested repositories as plain files."""

from __future__ import annotations

import os
import posixpath
import re
import stat
from typing import TYPE_CHECKING

from aiflow.adapters.git.repository_facts import ignores_case, path_of_status, readable
from aiflow.domain.runs.worktree import is_refused, refused_top

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aiflow.adapters.git.git_cli import Done, Git

_ANY_FAILURE = (0, 1, 128)
# The mode of a submodule in an index, and the mark of an index that is partly in another file.
_LINK_MODE, _SHARED = b"\0\0\xe0\0", b"link"


def stage_everything(
    git: Git, copied: Iterable[str], tracked: Iterable[bytes], links: list[bytes], large: Iterable[bytes] = ()
) -> list[str]:
    """Add all that is not ignored; return the nested repositories that had to be taken in as plain files.

    `copied` are left out, except those that were in git before (`tracked`), and `large` files. So are submodules
    (`links`): `git add` would start a git in each that heeds its own settings, which an agent may have written, outside
    of every sandbox.
    """
    copied = (*copied, *map(os.fsdecode, large))
    outside = (name for name in copied if not is_below(os.fsencode(name), links))  # git refuses paths inside of one
    apart = (*outside, *map(os.fsdecode, links))
    add = ("add", "-A", "--sparse", "--", ":/", *(_without(name) for name in apart))
    done = git.run(*add, ok=_ANY_FAILURE)
    nested: list[bytes] = []
    if _has_failed(done) or b"embedded git repository" in done.err:
        nested, empty = _take_in_nested(git, [os.fsencode(name) for name in copied])
        if _has_failed(done) and not (nested or empty):
            raise git.problem(add, done)
        again = (*add, *(_without(os.fsdecode(name)) for name in empty))
        if _has_failed(done := git.run(*again, ok=_ANY_FAILURE)):
            raise git.problem(again, done)
    if links:
        git.run("update-index", "--add", "--remove", "-z", "--stdin", stdin=joined(links))
    if paths := [path for path in tracked if path not in set(large)]:
        git.run("update-index", "--remove", "-z", "--stdin", stdin=joined(paths))
    return [readable(name) for name in nested]


def links_in(git: Git, index: str) -> list[bytes]:
    """Return the submodules that an index has; git is asked only if it may have any."""
    try:
        with open(index, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return []
    if _LINK_MODE not in data and _SHARED not in data:
        return []
    entries = git.run("ls-files", "-s", "-z").items
    return [entry.partition(b"\t")[2] for entry in entries if entry.startswith(b"160000 ")]


def show_hidden(git: Git) -> None:
    """Take back `update-index --assume-unchanged` and `--skip-worktree`: they keep changes out of the commit.

    Where only a part of the repository is checked out, what is not there was skipped by git itself, and stays so.
    """
    entries = git.run("ls-files", "-v", "-z").items
    hidden = [entry[2:] for entry in entries if entry[:1].islower()]
    if hidden:
        git.run("update-index", "--no-assume-unchanged", "-z", "--stdin", stdin=joined(hidden))
    skipped = [entry[2:] for entry in entries if entry[:1] in b"Ss"]
    if skipped and is_sparse(git):
        skipped = [path for path in skipped if os.path.lexists(os.path.join(os.fsencode(git.cwd), path))]
    if skipped:
        git.run("update-index", "--no-skip-worktree", "-z", "--stdin", stdin=joined(skipped))


def is_sparse(git: Git) -> bool:
    """Return whether git was told to check out only a part of the repository."""
    return git.run("config", "--bool", "core.sparseCheckout", ok=(0, 1)).word == "true"


def fill_index(git: Git, index: str, since: str) -> None:
    """Fill the index from a commit, whatever was staged or hidden before; the files stay as they are."""
    if git.run("reset", "--quiet", "--mixed", since, ok=(0, 128)).code:  # an index that cannot be read
        os.unlink(index)
        git.run("reset", "--quiet", "--mixed", since)
    show_hidden(git)


def tracked_among(git: Git, copied: Iterable[str]) -> list[bytes]:
    """Return the paths among those copied that git has."""
    wanted = [f":(top,literal){name}" for name in copied]
    return git.run("ls-files", "-z", "--", *wanted).items if wanted else []


def clean_untracked(git: Git, copied: Iterable[str]) -> None:
    """Remove what git neither has nor ignores, nested repositories too, but not what was copied."""
    kept = [word for name in copied for word in ("-e", "/" + re.sub(r"([\\*?\[\]#! ])", r"\\\1", name))]
    git.run("clean", "-ffdq", *kept)


def copied_paths(copied: Iterable[str]) -> tuple[str, ...]:
    """Return the copied paths as git writes them; what is not below the worktree is not among them."""
    clean = (posixpath.normpath(name) for name in copied if name)
    return tuple(name for name in clean if name != "." and not name.startswith(("/", "../")) and name != "..")


def put_back_refused(git: Git, since: str, paths: list[bytes], folders: tuple[str, ...]) -> list[bytes]:
    """Put back what was changed in folders that no run may change (REQ-8), and return the paths."""
    any_case = {path: top for path in paths if (top := refused_top(readable(path), folders, ignores_case=True))}
    strict = [path for path in any_case if is_refused(readable(path), folders)]
    undone = list(any_case) if len(strict) < len(any_case) and ignores_case(git) else strict
    if undone:
        tops = {b"/".join(path.split(b"/")[: any_case[path].count("/") + 1]) for path in undone}
        restore = ("restore", f"--source={since}", "--staged", "--worktree", "--")
        git.run(*restore, *(f":(top,literal){os.fsdecode(top)}" for top in sorted(tops)))
    return undone


def is_below(path: bytes, folders: Iterable[bytes]) -> bool:
    """Return whether a path is one of these or inside one."""
    return any(path.rstrip(b"/") == folder or path.startswith(folder + b"/") for folder in folders)


def _take_in_nested(git: Git, copied: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Stage the files of nested repositories; return those that had files and those that had none.

    Git would add a nested repository as a link to a commit that exists only there, and refuses one without a commit;
    an agent that began a project with a tool that runs `git init` meant its files. Once some of its files are in the
    index, git treats the folder as any other.
    """
    submodules = _submodules(git.cwd)
    raw = git.run("diff-index", "--cached", "--raw", "-z", "--no-renames", "HEAD").items
    links = [path for facts, path in zip(raw[::2], raw[1::2], strict=True) if _is_new_link(facts)]
    if links:
        git.run("update-index", "--force-remove", "-z", "--stdin", stdin=joined(links))
    others = git.run("ls-files", "-o", "-z", "--exclude-standard").items
    found = [path[:-1] for path in others if path.endswith(b"/") and not is_below(path, [*submodules, *copied])]
    files = {name: list(_files_in(os.fsencode(git.cwd), name, copied)) for name in found}
    everything = joined(path for paths in files.values() for path in paths)
    ignored = set(git.run("check-ignore", "-z", "--stdin", stdin=everything, ok=(0, 1)).items) if everything else set()
    wanted = {name: [path for path in paths if path not in ignored] for name, paths in files.items()}
    staged = joined(path for paths in wanted.values() for path in paths)
    if staged:
        git.run("update-index", "--add", "--remove", "-z", "--stdin", stdin=staged)
    return [name for name in found if wanted[name]], [name for name in found if not wanted[name]]


def _has_failed(done: Done) -> bool:
    """Return whether `git add` failed; it also exits with 1 if a path to leave out is ignored, but adds the rest."""
    is_about_ignored = b"paths are ignored by one of your" in done.err and b"error: " not in done.err
    return done.code != 0 and not (done.code == 1 and is_about_ignored)


def _is_new_link(facts: bytes) -> bool:
    old, new = facts.split()[:2]
    return new == b"160000" and old != b":160000"


def _files_in(root: bytes, name: bytes, copied: list[bytes]) -> Iterator[bytes]:
    """Walk through a nested repository's files and links, its git folder apart."""
    for folder, folders, files in os.walk(os.path.join(root, name)):
        if b".git" in folders:
            folders.remove(b".git")
        for each in sorted([*files, *folders]):
            path = os.path.join(folder, each)
            mode = os.lstat(path).st_mode
            below = os.path.relpath(path, root)
            if each != b".git" and (stat.S_ISREG(mode) or stat.S_ISLNK(mode)) and not is_below(below, copied):
                yield below


def _submodules(path: str) -> list[bytes]:
    """Return the paths that `.gitmodules` names."""
    try:
        with open(os.path.join(path, ".gitmodules"), "rb") as file:
            lines = re.findall(rb"^\s*path\s*=\s*(.*?)\s*$", file.read(1_000_000), re.MULTILINE)
    except OSError:
        return []
    return [line.strip(b'"') for line in lines]


def _without(name: str) -> str:
    return f":(top,exclude,literal){name}"


def joined(paths: Iterable[bytes]) -> bytes:
    """Write paths as git reads them with `-z --stdin`."""
    return b"".join(path + b"\0" for path in paths)


def differing(git: Git, old: str, new: str) -> frozenset[str]:
    """Return the paths in which two trees or commits differ."""
    words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", f"{old}^{{tree}}", f"{new}^{{tree}}")
    return frozenset(readable(item) for item in git.run(*words).items)


def changed_beside(git: Git, copied: tuple[str, ...], *, counts_index: bool = True) -> tuple[str, ...]:
    """Return what differs from the commit (or only from the index) and is not tracked, copied paths apart."""
    options = ("--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")
    ours = [os.fsencode(name) for name in copied]
    found = [(item, path) for item in git.run("status", *options).items if (path := path_of_status(item))]
    return tuple(
        sorted(
            readable(path)
            for item, path in found
            if not (item.startswith(b"?") and is_below(path, ours))
            and (counts_index or item.startswith(b"?") or item[3:4] != b".")
        )
    )


def back_to_index(git: Git, copied: tuple[str, ...]) -> tuple[str, ...]:
    """Set the worktree back to the index, and return what else was changed; ignored and copied files stay."""
    paths = changed_beside(git, copied, counts_index=False)
    if paths:
        git.run("checkout-index", "--quiet", "--force", "--all")
        clean_untracked(git, copied)
    return paths
