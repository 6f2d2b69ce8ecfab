"""The runs' worktrees in memory (GIT-1): made, collected from, committed and set back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.adapters.memory.repository import (
    HEADS,
    MemoryRepository,
    MemoryWorktree,
    Tree,
    diff_text,
    differing_paths,
    file_change,
)
from aiflow.domain.runs.worktree import (
    Changes,
    Comparison,
    FileDiff,
    RepositoryFacts,
    Unfinished,
    is_refused,
    refused_folders,
)
from aiflow.errors import EnvironmentProblemError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiflow.domain.runs.worktree import LargeFile, Place

VERSION = (2, 43, 0)


class MemoryWorkspaces:
    """The `Workspaces` port of one process, on one repository."""

    def __init__(self, repository: MemoryRepository, requests_dir: str = "requests") -> None:
        self._repository = repository
        self._refused = refused_folders(requests_dir)
        # What this process has collected of a worktree; the tests may change the files after that.
        self._collected: dict[str, str] = {}

    def facts(self, base_branch: str) -> RepositoryFacts:
        """Look at the user's repository; an empty base branch is the one that is checked out."""
        here = self._repository.head
        base = base_branch or here
        return RepositoryFacts(
            head_branch=here,
            head_commit=self._repository.branch(here),
            base_branch=base,
            base_commit=self._repository.branch(base),
            changed_paths=self._repository.dirty,
            identity="A Person <person@example.com>",
        )

    def version(self) -> tuple[int, ...]:
        """Return git's version."""
        return VERSION

    def tracked(self, folder: str) -> tuple[str, ...]:
        """Return the files that git tracks in a folder of the user's checkout, by their paths from the root."""
        head = self._repository.branch(self._repository.head)
        files = self._repository.files_of(head) if head else {}
        return tuple(sorted(path for path in files if path.startswith(f"{folder}/")))

    def untracked(self, place: Place) -> tuple[str, ...]:
        """Return what a set-up command made that git does not track, a folder as one."""
        files, known = self._enter(place).files, self._repository.files_of(self._tip(place))
        tops = {path.split("/")[0] for path in files if path not in known}
        return tuple(sorted(tops))

    def prepare(self, place: Place, tip: str) -> bool:
        """Make the worktree on its branch, at a commit if the branch does not exist yet; True if it had to be made."""
        repository = self._repository
        if place.path in repository.worktrees:
            return False
        if other := next((path for path, tree in repository.worktrees.items() if tree.branch == place.branch), None):
            problem = words("git.checked_out_at", branch=place.branch, path=other)
            raise EnvironmentProblemError(reason_code="GIT_FAILED", command="git worktree add", problem=problem)
        made = repository.refs.setdefault(f"{HEADS}{place.branch}", tip)
        repository.worktrees[place.path] = MemoryWorktree(dict(repository.files_of(made)), place.branch)
        return True

    def note_set_up(self, place: Place, *, is_known: bool) -> None:
        """Write down what set-up made: nothing is ignored here."""

    def is_as_set_up(self, place: Place, tip: str) -> bool:  # noqa: ARG002 - the port's
        """Return whether what set-up made is as it was: nothing is ignored here."""
        return True

    def is_intact(self, place: Place) -> bool:
        """Return whether the worktree is there and git knows it."""
        return place.path in self._repository.worktrees

    def tip(self, place: Place) -> str | None:
        """Return the branch's commit."""
        return self._repository.branch(place.branch)

    def is_ancestor(self, place: Place, old: str, new: str) -> bool:  # noqa: ARG002 - the port's
        """Return whether one commit leads to another; one that is gone leads nowhere."""
        return self._repository.leads_to(old, new)

    def collect(self, place: Place, since: str) -> Changes:
        """Take everything a step changed since a commit into the index: own commits folded, refused paths put back."""
        tree = self._enter(place)
        notes = self._take_back(place, since)
        old = self._repository.files_of(since)
        undone = tuple(path for path in differing_paths(old, tree.files) if is_refused(path, self._refused))
        for path in undone:
            tree.files.pop(path, None)
            tree.files.update({path: old[path]} if path in old else {})
        staged = self._staged(place, since)
        files = tuple(file_change(path, old, staged) for path in differing_paths(old, staged))
        tree.index = None
        self._collected.pop(place.path, None)
        if files:
            tree.index = self._collected[place.path] = self._repository.keep_tree(staged)
        return Changes(files, undone, notes)

    def commit(self, place: Place, since: str, message: str, *, amends: bool = False) -> str:
        """Commit what was collected on top of a commit (or in its place: `amends`), and return the new one."""
        repository, tree = self._repository, self._enter(place)
        self._take_back(place, since)
        before = repository.commits[since]
        if tree.index is None or (tree.index == before.tree and not amends):
            problem = words("git.no_commit")
            raise EnvironmentProblemError(reason_code="GIT_FAILED", command="git commit", problem=problem)
        made = repository.make_commit(tree.index, before.parents if amends else (since,), message)
        repository.refs[f"{HEADS}{place.branch}"] = made
        tree.index = None
        self._collected.pop(place.path, None)
        return made

    def find_commit(self, place: Place, since: str, trailers: Mapping[str, str]) -> str | None:
        """Return the branch's tip if it is the one commit after (or in place of) `since` with these trailers."""
        tip = self.tip(place)
        if tip is None or tip == since:
            return None
        found = self._repository.commits[tip]
        lines = set(found.message.splitlines())
        is_behind = found.parents in ((since,), self._repository.commits[since].parents)
        return tip if is_behind and all(f"{name}: {value}" in lines for name, value in trailers.items()) else None

    def tidy(self, place: Place) -> tuple[str, ...]:
        """Put back what tests or a reviewer changed after a commit, and return those paths."""
        tree, at = self._enter(place), self._tip(place)
        paths = tuple(differing_paths(self._repository.files_of(at), self._staged(place, at)))
        if paths:
            tree.files, tree.index = self._laid_out(place, self._repository.files_of(at)), None
        return paths

    def drop_leftovers(self, place: Place) -> tuple[str, ...]:
        """Put back what tests changed after a step was collected, and return those paths."""
        tree = self._enter(place)
        if place.path not in self._collected:
            return ()
        collected = self._repository.trees[self._collected[place.path]]
        paths = tuple(differing_paths(collected, self._staged(place, self._tip(place))))
        if paths:
            tree.files = self._laid_out(place, collected)
        tree.index = self._collected[place.path]
        return paths

    def diff(self, place: Place, since: str) -> str:
        """Return what was collected of a step since a commit, as text for a reviewer."""
        index = self._enter(place).index
        old = self._repository.files_of(since)
        return diff_text(old, self._repository.trees[index] if index is not None else old)

    def compare(self, old: str, new: str) -> Comparison | None:
        """Return how two commits differ, from the repository alone; None if one of them is gone."""
        repository = self._repository
        if old not in repository.commits or new not in repository.commits:
            return None
        before, after = repository.files_of(old), repository.files_of(new)
        changed = (file_change(path, before, after) for path in differing_paths(before, after))
        files = tuple(FileDiff(each.path, each.added, each.deleted) for each in changed)
        return Comparison(files, diff_text(before, after))

    def snapshot(self, place: Place) -> str:
        """Return the tree of the worktree as it is, untracked files included."""
        self._enter(place)
        return self._repository.keep_tree(self._staged(place, self._tip(place)))

    def differing(self, place: Place, old: str, new: str) -> frozenset[str]:
        """Return the paths in which two trees or commits differ."""
        self._enter(place)
        return frozenset(differing_paths(self._repository.files_of(old), self._repository.files_of(new)))

    def keep_unfinished(self, place: Place, since: str, ref: str) -> Unfinished:
        """Keep what an unfinished step left under a ref; own commits folded back to `since`."""
        repository, worktree = self._repository, self._enter(place)
        self._take_back(place, since)
        tree = repository.keep_tree(self._staged(place, since))
        commit = repository.refs[ref] = repository.make_commit(tree, (since,), "Kept by aiflow")
        worktree.index = None
        self._collected.pop(place.path, None)
        patch = diff_text(repository.files_of(since), repository.trees[tree]).encode()
        return Unfinished(tree, commit, patch)

    def restore(self, place: Place, since: str, kept: str) -> None:
        """Lay an unfinished step's kept commit out in the worktree again, after `since`."""
        tree = self._enter(place)
        self._take_back(place, since)
        tree.files, tree.index = self._laid_out(place, self._repository.files_of(kept)), None

    def go_back(self, place: Place, commit: str, keep_as: str) -> tuple[LargeFile, ...]:
        """Set branch and worktree back to a commit; what was there stays reachable under a ref (RUN-6)."""
        repository, worktree, tip = self._repository, self._enter(place), self.tip(place)
        tree, kept = repository.keep_tree(self._staged(place, tip or commit)), repository.refs.get(keep_as)
        is_back = tip == commit and tree == repository.commits[commit].tree
        if not (kept and is_back):
            parents = tuple(dict.fromkeys(filter(None, (tip, kept))))
            repository.refs[keep_as] = repository.make_commit(tree, parents, "Kept by aiflow")
        repository.refs[f"{HEADS}{place.branch}"] = commit
        worktree.branch, worktree.index = place.branch, None
        worktree.files = self._laid_out(place, repository.files_of(commit))
        return ()

    def _enter(self, place: Place) -> MemoryWorktree:
        tree = self._repository.worktrees.get(place.path)
        if tree is None:
            raise EnvironmentProblemError(reason_code="WORKTREE_LOST", path=place.path)
        return tree

    def _tip(self, place: Place) -> str:
        tip = self.tip(place)
        if tip is None:
            raise EnvironmentProblemError(reason_code="WORKTREE_LOST", path=place.path)
        return tip

    def _take_back(self, place: Place, since: str) -> tuple[str, ...]:
        """Put the branch at a commit, files as they are; say what was found."""
        found = self.tip(place)
        self._enter(place).branch = place.branch
        self._repository.refs[f"{HEADS}{place.branch}"] = since
        return (f"Put the branch back from {found[:12]}",) if found not in (None, since) and found else ()

    def _staged(self, place: Place, since: str) -> Tree:
        """Return the files as they would be committed: without those that were only copied there."""
        known = self._repository.files_of(since)
        files = self._enter(place).files
        return {path: data for path, data in files.items() if path in known or not is_copied(path, place.copied)}

    def _laid_out(self, place: Place, files: Mapping[str, bytes]) -> Tree:
        """Return files to lay out, beside those that were copied there."""
        kept = {path: data for path, data in self._enter(place).files.items() if is_copied(path, place.copied)}
        return {**kept, **files}


def is_copied(path: str, copied: tuple[str, ...]) -> bool:
    """Return whether a path is one that was copied into a worktree for the tools, or inside one."""
    return any(path == each or path.startswith(f"{each}/") for each in copied)
