"""Bringing runs into the base branch (GIT-3), by the git program; nothing moves before `move_base`."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from aiflow.adapters.git.commits import leads_to, make_commit, read_commit
from aiflow.adapters.git.comparing import compare_sizes
from aiflow.adapters.git.git_cli import Git
from aiflow.adapters.git.git_files import clear_ref_lock, find_checkout
from aiflow.adapters.git.merging.base_moving import find_cut_off, move_base, put_right
from aiflow.adapters.git.merging.merge_trees import Side, merge_trees, replay, without_label
from aiflow.adapters.git.merging.taking_back import bring_back, built_on, find_landing
from aiflow.adapters.git.obeyed import read_obeyed
from aiflow.adapters.git.repository_facts import commit_of, ignores_case, readable
from aiflow.adapters.git.worktrees.making_and_removing import lay_out, remove_worktree
from aiflow.adapters.git.worktrees.staging import changed_beside, copied_paths, differing
from aiflow.adapters.git.worktrees.unsaved_work import hidden_changes
from aiflow.domain.runs.merge import Merge, Revert, Update, has_markers
from aiflow.domain.runs.worktree import OWN_FOLDERS, is_refused
from aiflow.errors import AiflowError, EnvironmentProblemError, as_problem
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiflow.domain.runs.merge import CutOffMove, Landing
    from aiflow.domain.runs.worktree import FileDiff, Place

# A text that a person or an agent resolves conflicts in is far smaller.
_LOOKED_AT_BYTES = 10_000_000
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)


class GitMerging:
    """The `Merging` port for one repository."""

    def __init__(self, root: str, *, hooks: bool = False, sign: bool = False) -> None:
        self._git = Git(root, hooks=hooks, sign=sign)

    def merge(self, place: Place, message: str, undone: Landing | None = None) -> Merge:
        """Merge a run's branch into the base branch as both are now; nothing is moved."""
        git = self._git_for(place)
        base, tip = self._base(place), self._tip(place)
        parted = git.run("merge-base", base.commit, tip.commit, ok=(0, 1)).word
        back = bring_back(git, base, tip, undone)
        if parted == tip.commit and back is None:
            return Merge(base.commit, tip.commit)
        ours = back.side if back else base
        merged = merge_trees(git, ours, tip)
        if back and merged.tree == read_commit(git, base.commit).tree:  # somebody brought it back by hand
            return Merge(base.commit, tip.commit)
        changed = differing(git, base.commit, merged.tree) if back else differing(git, parted, tip.commit)
        paths = tuple(sorted(changed))
        is_loose = any(is_refused(each, OWN_FOLDERS, ignores_case=True) for each in paths) and ignores_case(git)
        conflicts = {*merged.conflicts, *(back.conflicts if back else ())}
        if conflicts:
            names = {readable(without_label(name, ours, tip)) for name in conflicts}
            return Merge(base.commit, tip.commit, paths, None, tuple(sorted(names)), is_loose)
        commit = make_commit(git, merged.tree, (base.commit, tip.commit), message)
        return Merge(base.commit, tip.commit, paths, commit, ignores_case=is_loose)

    def landing(self, place: Place, accepted_as: str, work: tuple[str, str]) -> Landing | None:
        """Find what brought a run's work, from its first commit to its last, into the base branch."""
        return find_landing(self._git_for(place), place, accepted_as, work)

    def revert(self, place: Place, landing: Landing, message: str) -> Revert:
        """Take a run's work out of the base branch as it is now; nothing is moved."""
        git, base = self._git_for(place), self._base(place)
        tree, conflicts = replay(git, base, landing.after, Side(place.branch, landing.before))
        if conflicts:
            names = tuple(sorted(map(readable, conflicts)))
            merge = Merge(base.commit, landing.after, names, conflicts=names, is_undo=True)
            return Revert(merge, built_on(git, base, landing, conflicts))
        paths = tuple(sorted(differing(git, base.commit, tree)))
        commit = make_commit(git, tree, (base.commit,), message) if paths else None
        return Revert(Merge(base.commit, landing.after, paths, commit, is_undo=True))

    def keep_branch(self, place: Place, commit: str) -> None:
        """Make a run's branch at a commit, if it is not there."""
        git, ref = self._git_for(place), f"refs/heads/{place.branch}"
        if commit_of(git, place.branch, self._common) is None:
            clear_ref_lock(self._common, ref)
            git.run("update-ref", "--create-reflog", ref, commit, "0" * len(commit))

    def sizes(self, pairs: Sequence[tuple[str, str]]) -> tuple[tuple[FileDiff, ...] | None, ...]:
        """Return which files differ in each pair of commits, in one go; None for a pair of which one is gone."""
        return compare_sizes(self._git, pairs)

    def check_out(self, commit: str, place: Place) -> None:
        """Lay a commit out in a worktree of its own, detached, in place of whatever is left there."""
        lay_out(self._git_for(place), self._common, place.path, commit)

    def obeyed(self, place: Place) -> Mapping[str, str]:
        """Return by name what git obeys in the folder that all worktrees share, as fingerprints."""
        return read_obeyed(self._git, place.path)

    def discard(self, path: str) -> None:
        """Remove such a worktree; one that is not there is no trouble."""
        remove_worktree(self._git, self._common, path)

    def move_base(self, place: Place, merge: Merge) -> bool:
        """Move the base branch to a merge commit; False if the branch moved meanwhile, then nothing was done."""
        assert not merge.conflicts, place.run_id
        if merge.commit is None:  # the base has the work already
            return True
        # Nothing is signed here, and Ctrl-C must not end git in the middle of a person's checkout.
        git = replace(self._git_for(place), sign=False)
        return move_base(git, self._common, place, merge, merge.commit)

    def put_right(self) -> CutOffMove | None:
        """End or take back a fast-forward that was cut off together with its aiflow; None if there is none."""
        common = self._known_common()
        return put_right(replace(self._git, sign=False), common) if common else None

    def find_cut_off(self) -> CutOffMove | None:
        """Return such a fast-forward; changes nothing."""
        common = self._known_common()
        return find_cut_off(self._git, common) if common else None

    def update(self, place: Place, keep_as: str, undone: Landing | None = None) -> Update:
        """Merge the base branch into a run's branch as a commit kept under a ref; the branch itself stays."""
        git = self._git_for(place)
        base, tip = self._base(place), self._tip(place)
        title = f"Merge {base.branch} into {tip.branch}\n"
        kept = git.run("rev-parse", "-q", "--verify", f"{keep_as}^{{commit}}", ok=(0, 1)).word
        earlier = read_commit(git, kept) if kept else None
        if earlier and kept == tip.commit and earlier.message == title and len(earlier.parents) == 2:
            # A kill came after the branch was put there: the merge is of what the branch was before.
            tip = tip._replace(commit=earlier.parents[0])
        commit = tip.commit
        conflicts: tuple[bytes, ...] = ()
        if not leads_to(git, base.commit, tip.commit):
            back = bring_back(git, base, tip, undone)
            tree, conflicts = merge_trees(git, tip, back.side if back else base)
            conflicts = tuple(sorted({*conflicts, *back.conflicts})) if back else conflicts
            parents = (tip.commit, base.commit)
            is_kept = earlier is not None and (earlier.tree, earlier.parents) == (tree, parents)
            commit = kept if is_kept else make_commit(git, tree, parents, title)
        if commit != kept:
            clear_ref_lock(self._common, keep_as)
            git.run("update-ref", "--create-reflog", keep_as, commit)
        unmarked = [name for name in conflicts if not _is_marked(git, commit, name)]
        return Update(base.commit, commit, *(tuple(sorted(map(readable, names))) for names in (conflicts, unmarked)))

    def has_unsaved(self, place: Place) -> tuple[str, ...]:
        """Return what a person changed in a run's worktree and did not commit; nothing if there is no worktree."""
        checkout = find_checkout(place.path, self._common)
        if checkout is None:
            return ()
        inside = self._git_for(place).inside(checkout.git_dir, place.path)
        return changed_beside(inside, copied_paths(place.copied)) or hidden_changes(inside)

    def marked(self, place: Place, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Return which of these files of a run's worktree still hold conflict markers."""
        checkout = find_checkout(place.path, self._common)
        if checkout is None:
            return ()
        names = {path: os.fsencode(path) for path in paths}
        if any("\\" in path for path in paths):  # how a name that is not UTF-8 is shown
            git = self._git_for(place).inside(checkout.git_dir, place.path)
            names |= {readable(name): name for name in git.run("ls-files", "-z").items if readable(name) in names}
        root = os.fsencode(place.path)
        return tuple(path for path, name in names.items() if has_markers(_read_inside(root, name)))

    @cached_property
    def _common(self) -> str:
        return self._git.common_dir()

    def _known_common(self) -> str | None:
        with contextlib.suppress(AiflowError):  # no repository: the doctor says so
            return self._common
        return None

    def _git_for(self, place: Place) -> Git:
        return replace(self._git, run_id=place.run_id)

    def _base(self, place: Place) -> Side:
        commit = commit_of(self._git, place.base_branch, self._common)
        if commit is None:
            raise EnvironmentProblemError(reason_code="BASE_BRANCH_MISSING", branch=place.base_branch)
        return Side(place.base_branch, commit)

    def _tip(self, place: Place) -> Side:
        commit = commit_of(self._git, place.branch, self._common)
        if commit is None:
            problem = words("git.branch_gone", branch=place.branch)
            raise EnvironmentProblemError(reason_code="GIT_FAILED", command="git merge-tree", problem=problem)
        return Side(place.branch, commit)


def _is_marked(git: Git, commit: str, name: bytes) -> bool:
    """Return whether a file of a commit has conflict markers; what is no file there has none."""
    return has_markers(git.run("cat-file", "blob", f"{commit}:{os.fsdecode(name)}", ok=(0, 128)).out)


def _read_inside(root: bytes, name: bytes) -> bytes:
    """Return the beginning of a plain file below a folder; nothing if it is none, or a link leads elsewhere."""
    path, real = os.path.join(root, name), os.path.realpath(root)
    if os.path.commonpath([os.path.realpath(os.path.dirname(path)), real]) != real:
        return b""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(file, _LOOKED_AT_BYTES) if stat.S_ISREG(os.fstat(file).st_mode) else b""
        finally:
            os.close(file)
    except OSError as error:
        if error.errno in _NO_FILE:
            return b""
        raise as_problem(error, os.fsdecode(path)) from error
