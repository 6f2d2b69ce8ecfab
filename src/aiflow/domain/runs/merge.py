"""Bringing a run's work into its base branch (GIT-3): what a merge of the two is, before anything has moved."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Seven, or more where `.gitattributes` says so (conflict-marker-size).
_BEGIN = re.compile(rb"^<{7,} ", re.MULTILINE)
_END = re.compile(rb"^>{7,} ", re.MULTILINE)


# What a set-up command goes by: where none of these differs, what it made still fits.
_LOCK_FILES = frozenset(
    {
        *(
            "package.json",
            "package-lock.json",
            "npm-shrinkwrap.json",
            "yarn.lock",
            "pnpm-lock.yaml",
            "bun.lockb",
            "bun.lock",
        ),
        *("pyproject.toml", "setup.py", "setup.cfg", "uv.lock", "poetry.lock", "pdm.lock", "Pipfile", "Pipfile.lock"),
        *("Cargo.toml", "Cargo.lock", "go.mod", "go.sum", "Gemfile", "Gemfile.lock", "composer.json", "composer.lock"),
        *("mix.exs", "mix.lock", "pom.xml", "build.gradle", "build.gradle.kts", "gradle.lockfile", "Package.resolved"),
        *("flake.lock", "environment.yml", "conda-lock.yml", "deno.lock", ".gitmodules", ".tool-versions", "Makefile"),
    }
)
_REQUIREMENTS = re.compile(r"(?:.*[-_.])?requirements(?:[-_.].*)?\.(?:txt|in)")
# Tested in the run's own worktree; a kill in the middle leaves the merge laid out there.
IN_PLACE = "in_place"


def is_for_set_up(path: str) -> bool:
    """Return whether a path is one that a set-up command goes by: a lock file, or what a lock file is made from."""
    name = path.rsplit("/", 1)[-1]
    return name in _LOCK_FILES or _REQUIREMENTS.fullmatch(name) is not None or "requirements/" in path


@dataclass(frozen=True, slots=True)
class Merge:
    """A run's branch merged into the base branch, made without touching either.

    `base` and `tip` are the commits of the two branches; `paths` is what the run changed since they parted.
    `commit` is the merge commit; None if there is nothing to merge (the base has the work already), or if `conflicts`
    names files that both changed. `ignores_case` says that the checkout ignores the case of names.
    An `is_undo` takes the work out again: `tip` is then the base's commit that brought it in.
    """

    base: str
    tip: str
    paths: tuple[str, ...] = ()
    commit: str | None = None
    conflicts: tuple[str, ...] = ()
    ignores_case: bool = False
    is_undo: bool = False

    @property
    def verb(self) -> str:
        """What the reflog of the base branch calls its move."""
        return "undo" if self.is_undo else "accept"


@dataclass(frozen=True, slots=True)
class Landing:
    """How a run's work came into the base branch: `before` is the base without it, `after` with it, `tip` the work.

    Once it was undone, `undone_as` is the base's commit from which on it is out again.
    """

    before: str
    after: str
    tip: str
    undone_as: str | None = None


@dataclass(frozen=True, slots=True)
class Revert:
    """A run's work taken out of the base branch again, made without touching it.

    Without a commit or conflicts there is nothing to take out. `later` are the messages of what changed the files in
    conflict since, newest first.
    """

    merge: Merge
    later: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CutOffMove:
    """A fast-forward of the base branch in a person's checkout that was cut off in the middle, with its aiflow.

    Put right, the base has the merge after all (`has_moved`), or the checkout is as it was before; `left` are files
    that are neither, because somebody changed them since, and `locks` those of a git that is still at work there.
    """

    run_id: str
    path: str
    branch: str
    has_moved: bool = False
    left: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """How it was put right, or why not yet."""
        if self.locks:
            return "locked"
        return "moved" if self.has_moved else "left" if self.left else "back"


@dataclass(frozen=True, slots=True)
class Update:
    """The base branch merged into a run's branch: the commit to continue from, with conflicts as markers.

    `unmarked` are those of the conflicts that no marker shows, as of a binary file: it has one side's version, or none.
    """

    base: str
    commit: str
    conflicts: tuple[str, ...] = ()
    unmarked: tuple[str, ...] = ()

    def tasks(self) -> list[str]:
        """Say what to do, for the agent that resolves the conflicts."""
        marked = [path for path in self.conflicts if path not in self.unmarked]
        tasks = [f"resolve the conflict markers in: {', '.join(marked)}"] if marked else []
        if self.unmarked:
            tasks.append(
                "both sides changed these, but no conflict markers show it (a file that is not text, was deleted or "
                f"moved on one side): decide for each which version holds, or bring both together: "
                f"{', '.join(self.unmarked)}"
            )
        return tasks


def merge_ref(run_id: str, step_id: str) -> str:
    """Name the ref that keeps the merge on which a step resolves conflicts."""
    return f"refs/aiflow/merges/{run_id}/{step_id}"


def has_markers(text: bytes) -> bool:
    """Return whether a file still has git's conflict markers, both ends of one."""
    return _BEGIN.search(text) is not None and _END.search(text) is not None
