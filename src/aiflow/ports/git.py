"""The protocols of git: the user's repository, the runs' worktrees, merging, and what is left of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiflow.domain.clean.cleaning import Item
    from aiflow.domain.clean.leftovers import Remains, TreeState
    from aiflow.domain.runs.merge import CutOffMove, Landing, Merge, Revert, Update
    from aiflow.domain.runs.worktree import (
        Changes,
        Comparison,
        FileDiff,
        LargeFile,
        Place,
        RepositoryFacts,
        Unfinished,
    )


class Workspaces(Protocol):
    """Git (GIT): the user's repository, read only, and the runs' own worktrees."""

    def facts(self, base_branch: str) -> RepositoryFacts:
        """Look at the user's repository; an empty base branch is the one that is checked out."""

    def version(self) -> tuple[int, ...]:
        """Return git's version."""

    def tracked(self, folder: str) -> tuple[str, ...]:
        """Return the files that git tracks in a folder of the user's checkout, by their paths from the root."""

    def untracked(self, place: Place) -> tuple[str, ...]:
        """Return what a set-up command made that git neither tracks nor ignores, a folder as one."""

    def prepare(self, place: Place, tip: str) -> bool:
        """Make the worktree on its branch, at a commit if the branch does not exist yet; True if it had to be made."""

    def note_set_up(self, place: Place, *, is_known: bool) -> None:
        """Record what set-up made; or forget it, if an agent may have changed it (not `is_known`)."""

    def is_as_set_up(self, place: Place, tip: str) -> bool:
        """Return whether what set-up made is as it was, at the branch's tip; if so, what git ignores beside it goes."""

    def is_intact(self, place: Place) -> bool:
        """Return whether the worktree is there and git knows it."""

    def tip(self, place: Place) -> str | None:
        """Return the commit that the branch points to."""

    def is_ancestor(self, place: Place, old: str, new: str) -> bool:
        """Return whether one commit leads to another."""

    def collect(self, place: Place, since: str) -> Changes:
        """Take everything a step changed since a commit into the index: own commits folded, refused paths put back.

        What is too large is not taken, but named.
        """

    def commit(self, place: Place, since: str, message: str, *, amends: bool = False) -> str:
        """Commit what was collected on top of a commit (or in its place: `amends`), and return the new one."""

    def find_commit(self, place: Place, since: str, trailers: Mapping[str, str]) -> str | None:
        """Return the branch's tip if it is the one commit after (or instead of) `since` with these trailers."""

    def tidy(self, place: Place) -> tuple[str, ...]:
        """Restore what tests or a reviewer changed after a commit, and return those paths."""

    def drop_leftovers(self, place: Place) -> tuple[str, ...]:
        """Restore what tests changed after a step was collected, and return those paths."""

    def diff(self, place: Place, since: str) -> str:
        """Return what was collected of a step since a commit, as text for a reviewer."""

    def compare(self, old: str, new: str) -> Comparison | None:
        """Return how two commits differ, from the repository alone; None if one of them is gone."""

    def snapshot(self, place: Place) -> str:
        """Return the tree of the worktree as it is, untracked files included."""

    def differing(self, place: Place, old: str, new: str) -> frozenset[str]:
        """Return the paths in which two trees or commits differ."""

    def keep_unfinished(self, place: Place, since: str, ref: str) -> Unfinished:
        """Keep what an unfinished step left under a ref; own commits folded back to `since`."""

    def restore(self, place: Place, since: str, kept: str) -> None:
        """Restore an unfinished step's kept commit in the worktree, on top of `since`."""

    def go_back(self, place: Place, commit: str, keep_as: str) -> tuple[LargeFile, ...]:
        """Set branch and worktree back to a commit; what was there stays reachable under a ref (RUN-6).

        Return what was too large for that, and is gone.
        """


class Merging(Protocol):
    """Bringing runs into the base branch (GIT-3); nothing moves before `move_base`."""

    def merge(self, place: Place, message: str, undone: Landing | None = None) -> Merge:
        """Merge a run's branch into the base branch as both stand now, with git's `merge-tree`; nothing is moved.

        Work that was `undone` is brought back, though git takes its commits for merged.
        """

    def landing(self, place: Place, accepted_as: str, work: tuple[str, str]) -> Landing | None:
        """Find what brought a run's work into the base branch; None if that is unknown.

        `work` is the commit where it began, and its last one.
        """

    def revert(self, place: Place, landing: Landing, message: str) -> Revert:
        """Take a run's work out of the current base branch, as a commit on top of it; nothing is moved."""

    def keep_branch(self, place: Place, commit: str) -> None:
        """Make a run's branch at a commit, if it is not there."""

    def sizes(self, pairs: Sequence[tuple[str, str]]) -> tuple[tuple[FileDiff, ...] | None, ...]:
        """Return which files differ between the old and the new commit of each pair, of all pairs in one go.

        It is None for a pair of which a commit is gone.
        """

    def check_out(self, commit: str, place: Place) -> None:
        """Lay a commit out in a worktree of a run's own, detached, in place of whatever is left there."""

    def discard(self, path: str) -> None:
        """Remove such a worktree; one that is not there is no trouble."""

    def move_base(self, place: Place, merge: Merge) -> bool:
        """Move the base branch to a merge commit, in a checkout by fast-forward; False if it has moved before."""

    def put_right(self) -> CutOffMove | None:
        """End or take back a fast-forward that was cut off together with its aiflow; None if there is none."""

    def find_cut_off(self) -> CutOffMove | None:
        """Report such a fast-forward that has not been repaired yet; changes nothing."""

    def update(self, place: Place, keep_as: str, undone: Landing | None = None) -> Update:
        """Merge the base branch into a run's branch as a commit kept under a ref; the branch itself stays.

        Work that was `undone` stays in it, though the base branch has taken it out.
        """

    def has_unsaved(self, place: Place) -> tuple[str, ...]:
        """Return what a person changed in a run's worktree and did not commit; nothing if there is no worktree."""

    def obeyed(self, place: Place) -> Mapping[str, str]:
        """Return by name what git obeys in the folder that all worktrees share, as fingerprints: hooks, filters."""

    def marked(self, place: Place, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Return which of these files of a run's worktree still hold conflict markers."""


class Housekeeping(Protocol):
    """What runs leave on disk and in git, and taking it away (GIT-5); looking changes nothing."""

    def survey(self, base_branches: frozenset[str]) -> Remains:
        """Find all that is left of runs, with a few calls of git; merged is what one of these branches has."""

    def state_of(self, place: Place, kept: str | None) -> TreeState:
        """Return whether git has all of a worktree: its branch, or the commit that keeps an unfinished step."""

    def size_of(self, item: Item) -> int:
        """Return how many bytes a thing takes on disk."""

    def take_away(self, item: Item) -> None:
        """Take a file or folder out of use at once: a folder only gets another name."""

    def drop_refs(self, items: Sequence[Item]) -> None:
        """Delete branches and refs that still stand where they were seen, all of them or none."""

    def clear_away(self, run_id: str) -> None:
        """Delete the folders of a run that were taken away; that may take its time."""


class Remote(Protocol):
    """Where branches are shown to others."""

    def push(self, place: Place) -> None:
        """Push a run's branch, without force."""
