"""Which branches a repository's worktrees have checked out or are about to write (GIT-3); looking changes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.git.git_files import GitCheckout, find_checkout, git_dir_of, is_same_path, read_line
from aiflow.adapters.git.worktrees.listing import list_worktrees

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.adapters.git.git_cli import Git

# Where git notes the branches that a rebase or a bisect in progress will return to.
_NOTES = {
    "rebase-merge/head-name": "rebase",
    "rebase-merge/update-refs": "rebase",
    "rebase-apply/head-name": "rebase",
    "BISECT_START": "bisect",
}
# A rebase of many stacked branches notes each.
_NOTE_BYTES = 10_000_000


class Use(NamedTuple):
    """A worktree with the ref it has checked out ("" if none); without a checkout it cannot be reached now.

    One that is gone has left its entry only.
    """

    path: str
    ref: str
    checkout: GitCheckout | None
    is_gone: bool = False


def find_uses(git: Git, common: str) -> Iterator[Use]:
    """Find every worktree, also one whose folder is gone: it may have been moved, and git counts it too."""
    listed = list_worktrees(git).out.split(b"\0\0")
    for number, block in enumerate(filter(None, listed)):
        facts = dict(item.partition(" ")[::2] for item in map(os.fsdecode, block.split(b"\0")))
        path, ref = facts["worktree"], facts.get("branch", "")
        if number == 0:
            if "bare" not in facts:
                yield _main(git, common, path, ref)
        else:
            checkout = find_checkout(path, common)
            is_kept = facts.get("locked", "initializing") != "initializing"  # it will come back
            yield Use(path, ref, checkout, is_gone=checkout is None and not is_kept)


def what_rewrites(checkout: GitCheckout, ref: str) -> str | None:
    """Name what is in progress in a worktree and will write a branch at its end."""
    names = {ref, ref.removeprefix("refs/heads/")}
    for note, name in _NOTES.items():
        if names & set((read_line(os.path.join(checkout.git_dir, note), _NOTE_BYTES) or "").splitlines()):
            return name
    return None


def _main(git: Git, common: str, listed: str, ref: str) -> Use:
    """Return the main worktree; git lists a wrong path if its git folder is elsewhere, as a submodule's is."""
    for path in (git.cwd, listed):
        found = git_dir_of(path)
        if found is not None and is_same_path(found, common):
            return Use(path, ref, GitCheckout(path, common, common))
    return Use(listed, ref, None)
