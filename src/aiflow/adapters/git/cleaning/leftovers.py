"""Finding what runs left (GIT-5): one list of worktrees, one of refs and one of what is merged, however many there are.

Looking changes nothing, follows no link, and sees only what carries a run's own name in this checkout's places.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.git.worktrees.listing import list_worktrees
from aiflow.adapters.run_folders.run_files import DRAFT_SUFFIX, RUN_PREFIX
from aiflow.adapters.run_folders.run_files import FOLDER as RUNS
from aiflow.domain.clean.leftovers import Leftover, LeftoverKind, Ref, Remains

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aiflow.adapters.git.git_cli import Git

RUN_ID = r"RUN-\d{8}-\d{6}-[0-9a-f]{6,16}"
TREES, RESULTS = "worktrees", "results"
GONE = ".gone"
_TREE = re.compile(rf"({RUN_ID})(?:\.(merge|aside|gone)(?:-\d+)?)?")
_RESULT = re.compile(rf"({RUN_ID})\..+")
_PUT_AWAY = re.compile(rf"\.({RUN_ID})\.gone(?:-\d+)?")
_DRAFT = re.compile(rf"\.({RUN_ID}){re.escape(DRAFT_SUFFIX)}")
_TORN = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")
_BRANCH = re.compile(rf"refs/heads/(aiflow/[^/]+/{RUN_ID})")
_REF = re.compile(rf"refs/aiflow/(?:wip|retried|merges)/({RUN_ID})/.+")
_OURS = ("refs/heads/aiflow", "refs/aiflow")
_TORN_SECONDS = 3600.0


class LeftoverEntry(NamedTuple):
    """A worktree that git knows, and the branch that is checked out there."""

    path: str
    branch: str | None = None


class Places(NamedTuple):
    """Where a checkout's runs leave things, links resolved: the checkout itself and its state folder."""

    root: str
    state: str

    @property
    def trees(self) -> str:
        """The folder of the worktrees."""
        return os.path.join(self.state, TREES)

    @property
    def results(self) -> str:
        """The folder of the agents' answers."""
        return os.path.join(self.state, RESULTS)

    @property
    def runs(self) -> str:
        """The folder of the runs."""
        return os.path.join(self.root, RUNS)


def find_remains(git: Git, places: Places, base_branches: frozenset[str]) -> Remains:
    """Find all that is left of runs."""
    entries = list(worktree_entries(git))
    ours = [entry for entry in entries if os.path.realpath(os.path.dirname(entry.path)) == places.trees]
    others = [entry.path for entry in entries if entry not in ours and not _TREE.fullmatch(_name(entry.path))]
    checkouts = [path for path in others if os.path.realpath(path) != places.root]
    # Git lists a wrong path for a main worktree whose git folder is elsewhere, as a submodule's is.
    at_root = [entry.branch for entry in entries if os.path.realpath(entry.path) == places.root]
    here = next(iter((*at_root, *(entry.branch for entry in entries[:1]))), None)
    bases = frozenset(filter(None, (base or here for base in base_branches)))
    trees, leftovers = _look_through(places, [_name(entry.path) for entry in ours])
    branches, refs = _refs(git, bases)
    return Remains(
        worktrees=trees,
        branches=branches,
        checked_out={
            # One that is checked out twice, with force: what is not ours counts.
            entry.branch: _as_ours(places, entry.path)
            for entry in sorted(entries, key=lambda entry: entry not in ours)
            if entry.branch
        },
        refs=refs,
        leftovers=leftovers,
        runs_folder=places.runs,
        foreign=frozenset(run_id for path in checkouts for run_id in _run_ids(os.path.join(path, RUNS))),
        is_whole=all(os.path.isdir(path) for path in checkouts),
    )


def worktree_entries(git: Git) -> Iterator[LeftoverEntry]:
    """List the worktrees that git knows, there or not."""
    path, branch = "", None
    for item in map(os.fsdecode, list_worktrees(git).items):
        word, _, value = item.partition(" ")
        if word == "worktree":
            path, branch = value, None
        elif word == "branch":
            branch = value.removeprefix("refs/heads/")
        elif not item and path:
            yield LeftoverEntry(path, branch)


def _as_ours(places: Places, path: str) -> str:
    """Name a worktree as its run does, however git came to its folder."""
    is_ours = os.path.realpath(os.path.dirname(path)) == places.trees
    return os.path.join(places.trees, _name(path)) if is_ours else path


def _name(path: str) -> str:
    return os.path.basename(path)


def _refs(git: Git, bases: frozenset[str]) -> tuple[dict[str, Ref], dict[str, tuple[Ref, ...]]]:
    """List the runs' branches by name and their other refs by run, each with whether a base branch has it."""
    listed = ("for-each-ref", "--format=%(objectname) %(committerdate:unix) %(symref) %(refname)", *_OURS)
    lines = [
        os.fsdecode(line).split(" ", 3)
        for line in git.run(*listed, *(f"refs/heads/{base}" for base in bases)).out.splitlines()
    ]
    heads = {ref.removeprefix("refs/heads/"): commit for commit, _, _, ref in lines}
    tips = {heads[base] for base in bases if base in heads and not base.startswith("aiflow/")}
    merged = set()
    if tips:
        words = (*(f"--merged={tip}" for tip in sorted(tips)), "--format=%(refname)", *_OURS)
        merged = set(os.fsdecode(git.run("for-each-ref", *words).out).splitlines())
    branches: dict[str, Ref] = {}
    refs: defaultdict[str, tuple[Ref, ...]] = defaultdict(tuple)
    for commit, date, symbolic, name in lines:
        if symbolic:
            continue
        moment = datetime.fromtimestamp(int(date), UTC) if date else None
        if match := _BRANCH.fullmatch(name):
            branches[match[1]] = Ref(match[1], commit, moment, name in merged)
        elif match := _REF.fullmatch(name):
            refs[match[1]] += (Ref(name, commit, moment, name in merged),)
    return branches, dict(refs)


def _look_through(places: Places, known: Iterable[str]) -> tuple[dict[str, str], dict[str, tuple[Leftover, ...]]]:
    """Look through the folders: worktrees by run, also those that only git remembers, and leftovers by run."""
    trees: dict[str, str] = {}
    leftovers: defaultdict[str, tuple[Leftover, ...]] = defaultdict(tuple)
    for name in sorted({*_names(places.trees), *known}):
        match = _TREE.fullmatch(name)
        path = os.path.join(places.trees, name)
        if match and not match[2]:
            trees[match[1]] = path
        elif match and not os.path.islink(path):
            kind = LeftoverKind(match[2])
            leftovers[match[1]] += (Leftover(path, kind, kind is not LeftoverKind.ASIDE or _is_empty(path)),)
    for name in sorted(_names(places.results)):
        path = os.path.join(places.results, name)
        if (match := _RESULT.fullmatch(name)) and not os.path.islink(path):
            leftovers[match[1]] += (Leftover(path, LeftoverKind.FILE),)
    for run_id, leftover in _beside_runs(places.runs):
        leftovers[run_id] += (leftover,)
    return trees, dict(leftovers)


def _beside_runs(runs: str) -> Iterator[tuple[str, Leftover]]:
    """Find what a kill left among the runs' own files."""
    for owner in sorted(_names(runs)):
        if match := _PUT_AWAY.fullmatch(owner):
            yield match[1], Leftover(os.path.join(runs, owner), LeftoverKind.GONE)
            continue
        for name in sorted(_names(os.path.join(runs, owner))):
            path = os.path.join(runs, owner, name)
            if match := _DRAFT.fullmatch(name):
                yield match[1], Leftover(path, LeftoverKind.FILE)
            elif name.startswith(RUN_PREFIX):
                for torn in filter(_TORN.fullmatch, sorted(_names(path))):
                    if _is_torn(os.path.join(path, torn)):
                        yield name, Leftover(os.path.join(path, torn), LeftoverKind.FILE)


def _run_ids(runs: str) -> Iterator[str]:
    for owner in _names(runs):
        yield from (name for name in _names(os.path.join(runs, owner)) if name.startswith(RUN_PREFIX))


def _names(folder: str) -> list[str]:
    """List a folder that is one, and no link to one."""
    if os.path.islink(folder):
        return []
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _is_empty(folder: str) -> bool:
    """Return whether surely nothing but git's own file is in a folder."""
    try:
        return set(os.listdir(folder)) <= {".git"}
    except OSError:
        return False


def _is_torn(path: str) -> bool:
    """Return whether a temporary file is one that a killed process left: writing one never takes an hour."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime > _TORN_SECONDS
