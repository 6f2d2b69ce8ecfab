"""The runs' worktrees (GIT-1): made, collected from, committed and set back; nothing of the user's is touched.

Git is asked as little as possible (PRF-5): what stands plainly in the worktree's own git folder is read there, and an
index that nobody touched since it matched a commit needs no reset.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from aiflow.adapters.git.commits import is_commit_of, keep, leads_to
from aiflow.adapters.git.comparing import compare
from aiflow.adapters.git.git_cli import Git
from aiflow.adapters.git.git_files import GitCheckout, Signature, find_checkout
from aiflow.adapters.git.repository_facts import commit_of, look, readable, tracked_in, version_of
from aiflow.adapters.git.worktrees.folding import take_back
from aiflow.adapters.git.worktrees.large_files import as_facts, find_large, tree_with
from aiflow.adapters.git.worktrees.making_and_removing import branch_ref, make_worktree
from aiflow.adapters.git.worktrees.set_up_files import is_as_set_up, note_set_up
from aiflow.adapters.git.worktrees.staging import (
    back_to_index,
    changed_beside,
    clean_untracked,
    copied_paths,
    differing,
    fill_index,
    links_in,
    put_back_refused,
    stage_everything,
    tracked_among,
)
from aiflow.adapters.git.worktrees.submodules import changed_inside, changed_submodules, untracked_in
from aiflow.domain.runs.worktree import FREE, Changes, FileChange, Unfinished, refused_folders
from aiflow.errors import EnvironmentProblemError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.adapters.git.worktrees.large_files import Sizes
    from aiflow.domain.runs.worktree import Bounds, Comparison, LargeFile, Place, RepositoryFacts


class GitWorkspaces:
    """The `Workspaces` port, by the git program."""

    def __init__(
        self, root: str, run_id: str | None = None, *, hooks: bool = False, sign: bool = False, bounds: Bounds = FREE
    ) -> None:
        self._git = Git(root, run_id, hooks=hooks, sign=sign)
        self._bounds, self._refused = bounds, refused_folders(bounds.requests_dir)
        # By worktree: the commit of its branch; when the index was seen to match it; the index as collected.
        self._tips: dict[str, str] = {}
        self._matching: dict[str, tuple[str, Signature | None]] = {}
        self._collected: dict[str, Signature | None] = {}
        self._tracked: dict[tuple[str, tuple[str, ...]], list[bytes]] = {}
        # By worktree: the submodules of the commit that a step began with, and what tests left in them.
        self._links: dict[str, list[bytes]] = {}
        self._left_inside: dict[str, frozenset[bytes]] = {}
        self._large: dict[str, Sizes] = {}  # by worktree: what was too large to be staged

    def facts(self, base_branch: str) -> RepositoryFacts:
        """Look at the user's repository; an empty base branch is the one that is checked out."""
        return look(self._git, base_branch)

    def version(self) -> tuple[int, ...]:
        """Return git's version."""
        return version_of(self._git)

    def tracked(self, folder: str) -> tuple[str, ...]:
        """Return the files that git tracks in a folder of the user's checkout, by their paths from the root."""
        return tracked_in(self._git, folder)

    def prepare(self, place: Place, tip: str) -> bool:
        """Make the worktree on its branch, at a commit if the branch does not exist yet; True if it had to be made."""
        checkout = find_checkout(place.path, self._common)
        if checkout is not None:
            checkout.clear_locks(branch_ref(place))
            self._tips.pop(place.path, None)  # a person may have committed since
            return False
        made = make_worktree(self._git, self._common, place, tip)
        self._now_at(self._enter(place), made)
        return True

    def untracked(self, place: Place) -> tuple[str, ...]:
        """Return what a set-up command made that git neither tracks nor ignores, a folder as one."""
        checkout = self._enter(place)
        git = self._inside(checkout)
        return untracked_in(git, links_in(git, checkout.index))

    def note_set_up(self, place: Place, *, is_known: bool) -> None:
        """Record what set-up made; or forget it, where it is unknown what an agent made of it (not `is_known`)."""
        note_set_up(self._inside(self._enter(place)), copied_paths(place.copied), is_known=is_known)

    def is_as_set_up(self, place: Place, tip: str) -> bool:
        """Return whether what set-up made is as it was, at the branch's tip; if so, what git ignores beside it goes."""
        checkout = self._enter(place)
        self._take_back(place, checkout, tip)
        fill_index(self._inside(checkout), checkout.index, tip)
        return is_as_set_up(self._inside(checkout), self._common)

    def is_intact(self, place: Place) -> bool:
        """Return whether the worktree is there and git knows it."""
        return find_checkout(place.path, self._common) is not None

    def tip(self, place: Place) -> str | None:
        """Return the branch's commit."""
        return commit_of(self._git, place.branch, self._common)

    def is_ancestor(self, place: Place, old: str, new: str) -> bool:  # noqa: ARG002 - the port's
        """Return whether one commit leads to another; one that is gone leads nowhere."""
        return leads_to(self._git, old, new)

    def collect(self, place: Place, since: str) -> Changes:
        """Take everything a step changed since a commit into the index: own commits folded, refused paths put back."""
        checkout = self._enter(place)
        git = self._inside(checkout)
        notes = self._take_back(place, checkout, since)
        nested = self._stage_since(place, checkout, since)
        notes += [f"Took in the nested git repository {name} as plain files" for name in nested]
        numbers = git.run("diff-index", "--cached", "--numstat", "-z", "--no-renames", since, "--").items
        lines = [item.split(b"\t", 2) for item in numbers]
        undone = put_back_refused(git, since, [path for _, _, path in lines], self._refused)
        files = tuple(
            FileChange(readable(path), *(int(number) if number != b"-" else 0 for number in (added, deleted)))
            for added, deleted, path in lines
            if path not in undone
        )
        if files:
            checkout.keep_index()
            self._collected[place.path] = checkout.signature()
        else:
            self._now_at(checkout, since)
        known = (self._left_inside.get(place.path, frozenset()), copied_paths(place.copied))
        submodules = changed_submodules(git, self._links.get(place.path, []), {path for _, _, path in lines}, known)
        large = as_facts(self._large[place.path])
        return Changes(files, tuple(readable(path) for path in undone), tuple(notes), submodules, large)

    def commit(self, place: Place, since: str, message: str, *, amends: bool = False) -> str:
        """Commit what was collected on top of a commit (or in its place: `amends`), and return the new one."""
        checkout = self._enter(place)
        self._take_back(place, checkout, since)
        if place.path in self._collected and self._collected[place.path] != checkout.signature():
            checkout.bring_back_index()
        options = [] if self._git.hooks else ["--no-verify"]
        options += ["--amend", "--reset-author"] if amends else []
        line = ("commit", "--quiet", "--cleanup=verbatim", *options, "-F", "-")
        self._inside(checkout).run(*line, stdin=message.encode("utf-8", "replace"))
        made = self.tip(place)
        if made in (None, since):
            problem = words("git.no_commit")
            raise EnvironmentProblemError(reason_code="GIT_FAILED", command="git commit", problem=problem)
        self._now_at(checkout, made)
        return made

    def find_commit(self, place: Place, since: str, trailers: Mapping[str, str]) -> str | None:
        """Return the branch's tip if it is the one commit after (or in place of) `since` with these trailers."""
        tip = self.tip(place)
        if tip is None or tip == since:
            return None
        return tip if is_commit_of(self._git, tip, since, trailers) else None

    def tidy(self, place: Place) -> tuple[str, ...]:
        """Put back what tests or a reviewer changed after a commit, and return those paths."""
        checkout = self._enter(place)
        at = self._tips.get(place.path) or self.tip(place)
        if at is None:
            raise EnvironmentProblemError(reason_code="WORKTREE_LOST", path=place.path)
        self._take_back(place, checkout, at)
        paths = changed_beside(self._inside(checkout), copied_paths(place.copied))
        if paths:
            self._lay_out(place, checkout, at)
        return paths

    def drop_leftovers(self, place: Place) -> tuple[str, ...]:
        """Put back what tests changed after a step was collected, and return those paths."""
        checkout = self._enter(place)
        if place.path not in self._collected:
            return ()
        if self._collected[place.path] != checkout.signature():
            checkout.bring_back_index()
        git = self._inside(checkout)
        inside = changed_inside(git, self._links.get(place.path, []))
        self._left_inside[place.path] = frozenset(path for paths in inside.values() for path in paths)
        return back_to_index(git, copied_paths(place.copied))

    def diff(self, place: Place, since: str) -> str:
        """Return what was collected of a step since a commit, as text for a reviewer."""
        git = self._inside(self._enter(place))
        options = ("--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "-M")
        return readable(git.run("diff-index", "--cached", "-p", *options, since, "--").out)

    def compare(self, old: str, new: str) -> Comparison | None:
        """Return how two commits differ, from the repository alone; None if one of them is gone."""
        return compare(self._git, old, new)

    def snapshot(self, place: Place) -> str:
        """Return the tree of the worktree as it is, untracked files included."""
        checkout = self._enter(place)
        self._stage(place, checkout)
        return tree_with(self._inside(checkout), checkout.index, self._large[place.path])

    def differing(self, place: Place, old: str, new: str) -> frozenset[str]:
        """Return the paths in which two trees or commits differ."""
        return differing(self._inside(self._enter(place)), old, new)

    def keep_unfinished(self, place: Place, since: str, ref: str) -> Unfinished:
        """Keep what an unfinished step left under a ref; own commits folded back to `since`."""
        checkout = self._enter(place)
        git = self._inside(checkout)
        self._take_back(place, checkout, since)
        self._stage_since(place, checkout, since)
        large, tree = self._large[place.path], git.run("write-tree").word
        commit = keep(git, ref, tree, [since])
        options = ("--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
        patch = git.run("diff-tree", "-r", "-p", *options, "--src-prefix=a/", "--dst-prefix=b/", since, tree).out
        left = tree_with(git, checkout.index, large) if large else tree
        git.run("read-tree", since)  # a person who commits there commits what they add, not half a step
        return Unfinished(left, commit, patch, as_facts(large))

    def restore(self, place: Place, since: str, kept: str) -> None:
        """Lay an unfinished step's kept commit out in the worktree again, after `since`."""
        checkout = self._enter(place)
        self._take_back(place, checkout, since)
        self._collected.pop(place.path, None)
        self._inside(checkout).run("read-tree", "--reset", "-u", kept)
        clean_untracked(self._inside(checkout), copied_paths(place.copied))

    def go_back(self, place: Place, commit: str, keep_as: str) -> tuple[LargeFile, ...]:
        """Set branch and worktree back to a commit; what was there stays reachable under a ref (RUN-6).

        Return what was too large for that, and is gone.
        """
        checkout = self._enter(place)
        git = self._inside(checkout)
        self._stage(place, checkout)
        tree = git.run("write-tree").word
        # A kill may have come between keeping and going back: what was kept then stays reachable too.
        names = (f"{branch_ref(place)}^{{commit}}", "HEAD^{commit}", f"{keep_as}^{{commit}}")
        tip, head, kept = (git.run("rev-parse", "-q", "--verify", name, ok=(0, 1, 128)).word for name in names)
        is_back = tip == commit and tree == git.run("rev-parse", "--verify", f"{commit}^{{tree}}").word
        if not (kept and is_back):
            keep(git, keep_as, tree, list(dict.fromkeys(filter(None, (tip, head, kept)))))
        self._take_back(place, checkout, tip or commit)
        self._lay_out(place, checkout, commit)
        return as_facts(self._large[place.path])

    @cached_property
    def _common(self) -> str:
        return self._git.common_dir()

    def _enter(self, place: Place) -> GitCheckout:
        """Return the worktree, freed of what a killed git left there."""
        checkout = find_checkout(place.path, self._common)
        if checkout is None:
            raise EnvironmentProblemError(reason_code="WORKTREE_LOST", path=place.path)
        checkout.clear_locks(branch_ref(place))
        return checkout

    def _inside(self, checkout: GitCheckout) -> Git:
        return self._git.inside(checkout.git_dir, checkout.path)

    def _take_back(self, place: Place, checkout: GitCheckout, since: str) -> list[str]:
        """Put HEAD on our branch and the branch at a commit, files and index as they are; say what was found."""
        self._tips[place.path] = since
        if checkout.head() == branch_ref(place) and self.tip(place) == since and not checkout.under_way():
            return []
        return take_back(self._inside(checkout), checkout, branch_ref(place), since)

    def _stage_since(self, place: Place, checkout: GitCheckout, since: str) -> list[str]:
        """Fill the index from a commit and what is in the worktree, whatever was staged before."""
        if self._matching.get(place.path) != (since, checkout.signature()):
            fill_index(self._inside(checkout), checkout.index, since)
        return self._stage(place, checkout)

    def _stage(self, place: Place, checkout: GitCheckout) -> list[str]:
        git = self._inside(checkout)
        self._matching.pop(place.path, None)
        self._collected.pop(place.path, None)
        copied = copied_paths(place.copied)
        if (place.path, copied) not in self._tracked:
            self._tracked[place.path, copied] = tracked_among(git, copied)
        links = self._links[place.path] = links_in(git, checkout.index)
        large = self._large[place.path] = find_large(git, self._bounds.most_bytes, copied, links)
        return stage_everything(git, copied, self._tracked[place.path, copied], links, large)

    def _now_at(self, checkout: GitCheckout, commit: str) -> None:
        """Remember that branch and index are at a commit."""
        checkout.forget_index()
        self._collected.pop(checkout.path, None)
        self._tips[checkout.path] = commit
        self._matching[checkout.path] = (commit, checkout.signature())

    def _lay_out(self, place: Place, checkout: GitCheckout, commit: str) -> None:
        """Set branch, index and files to a commit; ignored and copied files stay."""
        git = self._inside(checkout)
        git.run("reset", "--quiet", "--hard", commit)
        clean_untracked(git, copied_paths(place.copied))
        self._now_at(checkout, commit)
