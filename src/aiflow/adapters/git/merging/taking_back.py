"""Taking a run's work out of the base branch again, and bringing it back after that; nothing is moved here.

Git takes the commits of work that was reverted for merged: merging its branch once more brings nothing. So what the
acceptance changed is put on top of the base branch as it is, and the branch is merged into that.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.git.commits import leads_to, read_commit, stand_in
from aiflow.adapters.git.merging.merge_trees import Side, replay
from aiflow.domain.runs.merge import Landing

if TYPE_CHECKING:
    from aiflow.adapters.git.git_cli import Git
    from aiflow.domain.runs.worktree import Place

_MOST_COMMITS = 20


class BroughtBack(NamedTuple):
    """The base branch with work on top of it that was taken out, and the files that conflict with it by now."""

    side: Side
    conflicts: tuple[bytes, ...]


def bring_back(git: Git, base: Side, tip: Side, undone: Landing | None) -> BroughtBack | None:
    """Put work that was taken out on top of the base branch again; None if merging the branch already brings it in."""
    if undone is None or undone.undone_as is None:
        return None
    if leads_to(git, undone.undone_as, tip.commit) or not leads_to(git, undone.after, base.commit):
        return None
    tree, conflicts = replay(git, base, undone.before, Side(tip.branch, undone.after))
    return BroughtBack(Side(base.branch, stand_in(git, tree, (base.commit,))), conflicts)


def find_landing(git: Git, place: Place, accepted_as: str, work: tuple[str, str]) -> Landing | None:
    """Find what brought a run's work into the base branch; None if it is unknown.

    It is the merge that aiflow made; or, where the base had the work before (`work` from its first commit to its last),
    the oldest commit of the base that has it.
    """
    found = read_commit(git, accepted_as)
    if len(found.parents) > 1 and _is_merge_of(found.message, place.run_id):
        return Landing(found.parents[0], accepted_as, found.parents[1])
    start, tip = work
    if start == tip or not leads_to(git, tip, accepted_as):
        return None
    chain = git.run("rev-list", "--first-parent", accepted_as, f"^{start}").out.decode("ascii").split()
    oldest = _oldest_with(git, tip, chain)
    if oldest is None:
        return None
    parents = read_commit(git, oldest).parents
    if oldest != tip and len(parents) > 1 and not leads_to(git, tip, parents[0]):
        return Landing(parents[0], oldest, tip)
    return Landing(start, tip, tip) if oldest == tip else None


def built_on(git: Git, base: Side, landing: Landing, paths: tuple[bytes, ...]) -> tuple[str, ...]:
    """Return the messages of what changed these files in the base branch since a run's work came in, newest first."""
    args = ("log", "-z", "--first-parent", f"--max-count={_MOST_COMMITS}", "--format=tformat:%B")
    names = (f":(top,literal){os.fsdecode(path)}" for path in paths)
    done = git.run(*args, f"{landing.after}..{base.commit}", "--", *names)
    return tuple(item.decode("utf-8", "replace").strip() for item in done.items)


def _is_merge_of(message: str, run_id: str) -> bool:
    lines = message.splitlines()
    return f"Aiflow-Run: {run_id}" in lines and not any(line.startswith("Aiflow-Step:") for line in lines)


def _oldest_with(git: Git, tip: str, chain: list[str]) -> str | None:
    """Return the oldest of a branch's commits, newest first, that has a commit: those after it have it, too."""
    low, high = 0, len(chain)  # below `low` all have it, from `high` on none
    while low < high:
        middle = (low + high) // 2
        if leads_to(git, tip, chain[middle]):
            low = middle + 1
        else:
            high = middle
    return chain[low - 1] if low else None
