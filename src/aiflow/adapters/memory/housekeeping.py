"""What runs leave in a memory repository, and taking it away (GIT-5); looking changes nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aiflow.adapters.memory.machine import STATE
from aiflow.adapters.memory.repository import HEADS, MAIN, differing_paths
from aiflow.adapters.memory.workspaces import is_copied
from aiflow.domain.clean.cleaning import ItemKind
from aiflow.domain.clean.leftovers import Leftover, LeftoverKind, Ref, Remains, TreeState
from aiflow.errors import EnvironmentProblemError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiflow.adapters.memory.repository import MemoryRepository
    from aiflow.adapters.memory.run_store import MemoryRunFiles
    from aiflow.domain.clean.cleaning import Item
    from aiflow.domain.runs.worktree import Place

TREES = f"{STATE}/worktrees/"
RUNS = "/root/runs"
_REF = re.compile(r"refs/aiflow/(?:wip|retried|merges)/([^/]+)/.+")


class MemoryHousekeeping:
    """The `Housekeeping` port, on one repository and the files of its runs."""

    def __init__(self, repository: MemoryRepository, runs: MemoryRunFiles) -> None:
        self._repository = repository
        self._runs = runs

    def survey(self, base_branches: frozenset[str]) -> Remains:
        """Find all that is left of runs; merged is what one of these branches has."""
        repository = self._repository
        bases = [tip for name in sorted(base_branches) if (tip := repository.branch(name or MAIN))]
        merged = {commit for tip in bases for commit in repository.history(tip)}
        branches = {
            name: Ref(name, commit, None, commit in merged)
            for ref, commit in repository.refs.items()
            if (name := ref.removeprefix(HEADS)).startswith("aiflow/")
        }
        refs: dict[str, tuple[Ref, ...]] = {}
        for name, commit in repository.refs.items():
            if match := _REF.fullmatch(name):
                refs[match[1]] = (*refs.get(match[1], ()), Ref(name, commit, None, commit in merged))
        trees = {path.removeprefix(TREES): tree for path, tree in repository.worktrees.items()}
        return Remains(
            worktrees={name: f"{TREES}{name}" for name in trees if "." not in name},
            branches=branches,
            checked_out={tree.branch: f"{TREES}{name}" for name, tree in trees.items() if tree.branch},
            refs=refs,
            leftovers=self._leftovers(),
            runs_folder=RUNS,
        )

    def state_of(self, place: Place, kept: str | None) -> TreeState:
        """Return whether git has all of a worktree: its branch, or the commit that keeps an unfinished step."""
        tree, tip = self._repository.worktrees.get(place.path), self._repository.branch(place.branch)
        if tree is None:
            return TreeState.MISSING
        if tree.branch != place.branch or tip is None:
            return TreeState.OTHER_BRANCH
        for commit in filter(None, (tip, kept)):
            known = self._repository.files_of(commit)
            changed = differing_paths(known, tree.files)
            if all(path not in known and is_copied(path, place.copied) for path in changed):
                return TreeState.SAVED
        return TreeState.UNSAVED

    def size_of(self, item: Item) -> int:
        """Return how many bytes a thing takes."""
        tree = self._repository.worktrees.get(item.name)
        return sum(map(len, tree.files.values())) if tree is not None else 0

    def take_away(self, item: Item) -> None:
        """Take a file or folder out of use at once: a folder only gets another name."""
        if item.kind is ItemKind.RUN:
            self._runs.forget(item.run_id)
        elif self._repository.worktrees.pop(item.name, None) is not None:
            self._repository.gone.setdefault(item.run_id, []).append(f"{item.name}.gone")

    def drop_refs(self, items: Sequence[Item]) -> None:
        """Delete branches and refs that still stand where they were seen, all of them or none."""
        refs = self._repository.refs
        there = {name: item for item in items if (name := _full_name(item)) in refs}
        trees = self._repository.worktrees
        used = {f"{HEADS}{tree.branch}" for tree in trees.values()}
        for name, item in there.items():
            if refs[name] != item.commit or name in used:
                path = next((path for path, tree in trees.items() if f"{HEADS}{tree.branch}" == name), "-")
                problem = words("git.used_at", ref=name, path=path)
                raise EnvironmentProblemError(reason_code="GIT_FAILED", command="git update-ref -d", problem=problem)
        for name in there:
            del refs[name]

    def clear_away(self, run_id: str) -> None:
        """Delete the folders of a run that were taken away."""
        self._repository.gone.pop(run_id, None)

    def _leftovers(self) -> dict[str, tuple[Leftover, ...]]:
        found = {
            run_id: tuple(Leftover(path, LeftoverKind.GONE) for path in paths)
            for run_id, paths in self._repository.gone.items()
        }
        for path in self._repository.worktrees:
            run_id, _, kind = path.removeprefix(TREES).partition(".")
            if kind == LeftoverKind.MERGE:
                found[run_id] = (*found.get(run_id, ()), Leftover(path, LeftoverKind.MERGE))
        return found


def _full_name(item: Item) -> str:
    return f"{HEADS}{item.name}" if item.kind is ItemKind.BRANCH else item.name
