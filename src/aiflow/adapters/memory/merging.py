"""Bringing runs into the base branch in memory (GIT-3): file by file, a conflict where both sides changed one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.memory.repository import HEADS, MemoryRepository, MemoryWorktree, Tree, differing_paths
from aiflow.adapters.memory.workspaces import MemoryWorkspaces, is_copied
from aiflow.domain.runs.merge import Landing, Merge, Revert, Update, has_markers
from aiflow.errors import EnvironmentProblemError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from aiflow.domain.runs.merge import CutOffMove
    from aiflow.domain.runs.worktree import FileDiff, Place


class _Sides(NamedTuple):
    """Two commits that are merged, and what came of it."""

    tree: Tree
    conflicts: tuple[str, ...]


class _BroughtBack(NamedTuple):
    """The base branch with work on top of it that was taken out."""

    commit: str
    conflicts: tuple[str, ...]


class MemoryMerging:
    """The `Merging` port, on one repository."""

    def __init__(self, repository: MemoryRepository) -> None:
        self._repository = repository

    def merge(self, place: Place, message: str, undone: Landing | None = None) -> Merge:
        """Merge a run's branch into the base branch as both stand now; nothing is moved."""
        repository, base, tip = self._repository, self._base(place), self._tip(place)
        back = self._brought_back(base, tip, undone)
        if repository.leads_to(tip, base) and back is None:
            return Merge(base, tip)
        parted = repository.parted(base, tip)
        before = repository.files_of(parted) if parted else {}
        merged = self._merged(back.commit if back else base, tip)
        if back:
            before = repository.files_of(base)
            if merged.tree == before:
                return Merge(base, tip)
        paths = tuple(differing_paths(before, merged.tree if back else repository.files_of(tip)))
        conflicts = tuple(sorted({*merged.conflicts, *(back.conflicts if back else ())}))
        if conflicts:
            return Merge(base, tip, paths, conflicts=conflicts)
        commit = repository.make_commit(repository.keep_tree(merged.tree), (base, tip), message)
        return Merge(base, tip, paths, commit)

    def landing(self, place: Place, accepted_as: str, work: tuple[str, str]) -> Landing | None:
        """Find what brought a run's work into the base branch; None if it is unknown."""
        repository, found = self._repository, self._repository.commits[accepted_as]
        if len(found.parents) > 1 and f"Aiflow-Run: {place.run_id}" in found.message.splitlines():
            return Landing(found.parents[0], accepted_as, found.parents[1])
        start, tip = work
        oldest, commit = None, accepted_as
        while commit != start and repository.leads_to(tip, commit):
            oldest, commit = commit, repository.commits[commit].parents[0]
        if oldest is None or start == tip:
            return None
        return Landing(start, tip, tip) if oldest == tip else Landing(commit, oldest, tip)

    def revert(self, place: Place, landing: Landing, message: str) -> Revert:
        """Take a run's work out of the base branch as it stands now; nothing is moved."""
        repository, base = self._repository, self._base(place)
        tree, conflicts = self._replayed(base, landing.after, landing.before)
        if conflicts:
            merge = Merge(base, landing.after, conflicts, conflicts=conflicts, is_undo=True)
            return Revert(merge, tuple(self._later(base, landing, conflicts)))
        paths = tuple(differing_paths(repository.files_of(base), tree))
        commit = repository.make_commit(repository.keep_tree(tree), (base,), message) if paths else None
        return Revert(Merge(base, landing.after, paths, commit, is_undo=True))

    def keep_branch(self, place: Place, commit: str) -> None:
        """Make a run's branch at a commit, if it is not there."""
        self._repository.refs.setdefault(f"{HEADS}{place.branch}", commit)

    def sizes(self, pairs: Sequence[tuple[str, str]]) -> tuple[tuple[FileDiff, ...] | None, ...]:
        """Return which files differ in each pair of commits; None for a pair of which one is gone."""
        looks = MemoryWorkspaces(self._repository, "")
        compared = (looks.compare(old, new) for old, new in pairs)
        return tuple(None if found is None else found.files for found in compared)

    def check_out(self, commit: str, place: Place) -> None:
        """Lay a commit out in a worktree of a run's own, detached, in place of whatever is left there."""
        self._repository.worktrees[place.path] = MemoryWorktree(dict(self._repository.files_of(commit)), None)

    def obeyed(self, place: Place) -> Mapping[str, str]:  # noqa: ARG002 - the port's
        """Return by name what git obeys in the folder that all worktrees share."""
        return dict(self._repository.obeyed)

    def discard(self, path: str) -> None:
        """Remove such a worktree; one that is not there is no trouble."""
        self._repository.worktrees.pop(path, None)

    def move_base(self, place: Place, merge: Merge) -> bool:
        """Move the base branch to a merge commit; False if the branch moved before."""
        assert not merge.conflicts, place.run_id
        if merge.commit is None:
            return True
        if self._base(place) != merge.base:
            return False
        self._repository.refs[f"{HEADS}{place.base_branch}"] = merge.commit
        return True

    def put_right(self) -> CutOffMove | None:
        """End or take back a move that was cut off: here each is whole, unless a test says otherwise."""
        found, self._repository.cut_off = self._repository.cut_off, None
        return found

    def find_cut_off(self) -> CutOffMove | None:
        """Return such a move; changes nothing."""
        return self._repository.cut_off

    def update(self, place: Place, keep_as: str, undone: Landing | None = None) -> Update:
        """Merge the base branch into a run's branch as a commit kept under a ref; the branch itself stays."""
        repository, base, tip = self._repository, self._base(place), self._tip(place)
        title = f"Merge {place.base_branch} into {place.branch}\n"
        kept = repository.refs.get(keep_as)
        earlier = repository.commits[kept] if kept else None
        if earlier and kept == tip and earlier.message == title and len(earlier.parents) == 2:
            tip = earlier.parents[0]  # a kill came after the branch was put there
        commit = tip
        conflicts: tuple[str, ...] = ()
        if not repository.leads_to(base, tip):
            back = self._brought_back(base, tip, undone)
            merged, conflicts = self._merged(tip, back.commit if back else base)
            conflicts = tuple(sorted({*conflicts, *back.conflicts})) if back else conflicts
            tree = repository.keep_tree(merged)
            is_kept = earlier is not None and (earlier.tree, earlier.parents) == (tree, (tip, base))
            commit = kept if kept and is_kept else repository.make_commit(tree, (tip, base), title)
        repository.refs[keep_as] = commit
        files = repository.files_of(commit)
        unmarked = tuple(path for path in conflicts if not has_markers(files.get(path, b"")))
        return Update(base, commit, conflicts, unmarked)

    def has_unsaved(self, place: Place) -> tuple[str, ...]:
        """Return what a person changed in a run's worktree and did not commit; nothing if there is no worktree."""
        tree, tip = self._repository.worktrees.get(place.path), self._repository.branch(place.branch)
        if tree is None or tip is None:
            return ()
        known = self._repository.files_of(tip)
        changed = differing_paths(known, tree.files)
        return tuple(path for path in changed if path in known or not is_copied(path, place.copied))

    def marked(self, place: Place, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Return which of these files of a run's worktree still hold conflict markers."""
        tree = self._repository.worktrees.get(place.path)
        return tuple(path for path in paths if tree is not None and has_markers(tree.files.get(path, b"")))

    def _brought_back(self, base: str, tip: str, undone: Landing | None) -> _BroughtBack | None:
        """Put work that was taken out on top of the base branch; None if merging the branch already brings it in."""
        repository = self._repository
        if undone is None or undone.undone_as is None:
            return None
        if repository.leads_to(undone.undone_as, tip) or not repository.leads_to(undone.after, base):
            return None
        tree, conflicts = self._replayed(base, undone.before, undone.after)
        return _BroughtBack(repository.make_commit(repository.keep_tree(tree), (base,), "-\n"), conflicts)

    def _later(self, base: str, landing: Landing, paths: tuple[str, ...]) -> Iterator[str]:
        """Yield the messages of what changed these files in the base branch since, newest first."""
        repository, commit = self._repository, base
        while commit != landing.after:
            new = repository.files_of(commit)
            message, first = repository.commits[commit].message, repository.commits[commit].parents[0]
            old = repository.files_of(first)
            if any(old.get(path) != new.get(path) for path in paths):
                yield message.strip()
            commit = first

    def _replayed(self, ours: str, old: str, new: str) -> _Sides:
        """Bring what changed from one commit to another onto a third."""
        return self._three_way(self._repository.files_of(old), ours, new)

    def _merged(self, ours: str, theirs: str) -> _Sides:
        """Merge two commits."""
        parted = self._repository.parted(ours, theirs)
        return self._three_way(self._repository.files_of(parted) if parted else {}, ours, theirs)

    def _three_way(self, before: Tree, ours: str, theirs: str) -> _Sides:
        """Merge two commits file by file; where both changed one, both versions stand between markers."""
        mine, other = self._repository.files_of(ours), self._repository.files_of(theirs)
        tree, conflicts = dict(mine), []
        for path in differing_paths(before, other):
            if mine.get(path) == before.get(path):
                tree.pop(path, None)
                tree.update({path: other[path]} if path in other else {})
            elif mine.get(path) != other.get(path):
                conflicts.append(path)
                if path in mine and path in other:
                    tree[path] = b"<<<<<<< ours\n%s=======\n%s>>>>>>> theirs\n" % (mine[path], other[path])
        return _Sides(tree, tuple(conflicts))

    def _base(self, place: Place) -> str:
        commit = self._repository.branch(place.base_branch)
        if commit is None:
            raise EnvironmentProblemError(reason_code="BASE_BRANCH_MISSING", branch=place.base_branch)
        return commit

    def _tip(self, place: Place) -> str:
        commit = self._repository.branch(place.branch)
        if commit is None:
            problem = words("git.branch_gone", branch=place.branch)
            raise EnvironmentProblemError(reason_code="GIT_FAILED", command="git merge-tree", problem=problem)
        return commit
