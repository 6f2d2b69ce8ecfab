"""Commits as git keeps them: read, made without a worktree, recognised, kept reachable."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.git.git_cli import Git

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aiflow.domain.runs.worktree import Place


# Commits that only keep something reachable have no author, and must not fail for want of a name.
_KEEPER = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "aiflow"), ("EMAIL", "aiflow@localhost"))
}


class Commit(NamedTuple):
    """What a commit says."""

    tree: str
    parents: tuple[str, ...]
    message: str


def read_commit(git: Git, commit: str) -> Commit:
    """Read a commit."""
    text = git.run("cat-file", "commit", commit).out.decode("utf-8", "replace")
    head, _, message = text.partition("\n\n")
    words = [line.split(" ") for line in head.splitlines()]
    parents = tuple(rest[0] for name, *rest in words if name == "parent")
    return Commit(next(rest[0] for name, *rest in words if name == "tree"), parents, message)


def make_commit(git: Git, tree: str, parents: Iterable[str], message: str) -> str:
    """Commit a tree in the user's name, without a worktree and without moving any branch."""
    # `commit-tree` does not heed commit.gpgSign.
    signing = "-S" if git.sign else "--no-gpg-sign"
    words = [word for parent in parents for word in ("-p", parent)]
    text = message.encode("utf-8", "replace").rstrip(b"\n") + b"\n"
    return git.run("commit-tree", signing, tree, *words, stdin=text).word


def stand_in(git: Git, tree: str, parents: Iterable[str] = ()) -> str:
    """Make a commit that only gives a tree its place in a history: the same one every time, and on no branch."""
    words = [word for parent in parents for word in ("-p", parent)]
    dates = {f"GIT_{role}_DATE": "2000-01-01T00:00:00Z" for role in ("AUTHOR", "COMMITTER")}
    return git.run("commit-tree", "--no-gpg-sign", tree, *words, "-m", "-", environ={**_KEEPER, **dates}).word


def keep(git: Git, ref: str, tree: str, parents: Iterable[str]) -> str:
    """Make a commit of a tree that keeps it and its parents reachable under a ref, and return it."""
    words = [word for parent in parents for word in ("-p", parent)]
    commit = git.run("commit-tree", tree, *words, "-m", "Kept by aiflow", environ=_KEEPER).word
    git.run("update-ref", "--create-reflog", ref, commit)
    return commit


def is_commit_of(git: Git, commit: str, since: str, trailers: Mapping[str, str]) -> bool:
    """Return whether a commit comes right after another, or replaces it, and has these trailers."""
    found = read_commit(git, commit)
    lines = set(found.message.splitlines())
    if not all(f"{name}: {value}" in lines for name, value in trailers.items()):
        return False
    return found.parents == (since,) or found.parents == read_commit(git, since).parents


def leads_to(git: Git, old: str, new: str) -> bool:
    """Return whether one commit leads to another; one that is gone leads nowhere."""
    if old == new:
        return True
    args = ("merge-base", "--is-ancestor", old, new)
    done = git.run(*args, ok=(0, 1, 128))
    if done.code == 128 and b"Not a valid" not in done.err:
        raise git.problem(args, done)
    return done.code == 0


# A push that takes longer waits for something that does not come; the run's lock must outlive it.
PUSH_SECONDS = 600.0


class GitRemote:
    """The remote `origin` of one checkout."""

    def __init__(self, root: str, *, hooks: bool = False, seconds: float = PUSH_SECONDS) -> None:
        self._root = root
        self._hooks = hooks
        self._seconds = seconds

    def push(self, place: Place) -> None:
        """Push a run's branch as it is; twice does no harm."""
        git = Git(self._root, place.run_id, hooks=self._hooks)
        ref = f"refs/heads/{place.branch}:refs/heads/{place.branch}"
        git.run_alone("push", "--quiet", "--no-follow-tags", "origin", ref, seconds=self._seconds)
