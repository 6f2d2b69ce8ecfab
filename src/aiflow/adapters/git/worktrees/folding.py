"""Taking a worktree back to its run's branch and commit (RUN-3), whatever an agent did with git there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiflow.adapters.git.git_cli import Git
    from aiflow.adapters.git.git_files import GitCheckout


def take_back(git: Git, checkout: GitCheckout, ref: str, since: str) -> list[str]:
    """Put HEAD on a branch and the branch at a commit, files and index as they are; say what was found."""
    head = git.run("symbolic-ref", "-q", "HEAD", ok=(0, 1)).word
    found = git.run("rev-parse", "-q", "--verify", "HEAD^{commit}", ok=(0, 1, 128)).word
    notes = []
    if head != ref:
        at = f"branch {head.removeprefix('refs/heads/')}" if head else "a detached HEAD"
        notes.append(f"Switched back to the run's branch from {at}")
        git.run("symbolic-ref", "HEAD", ref)
    if found and found != since:
        own = git.run("rev-list", "--count", f"{since}..{found}").word
        folded, moved = f"Folded in the agent's own commits: {own}", f"Put the branch back from {found[:12]}"
        notes.append(folded if own != "0" else moved)
    if under_way := checkout.under_way():
        notes.append(f"Ended what git had under way: {', '.join(under_way)}")
        checkout.forget_under_way()
    git.run("update-ref", "--no-deref", ref, since)
    return notes
