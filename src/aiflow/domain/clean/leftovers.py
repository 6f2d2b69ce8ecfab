"""What is left of runs (GIT-5): worktrees, branches, refs, leftovers; and what a run still is to its request."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.lifecycle import ACTIVE_RUN_STATES, RunState
from aiflow.domain.request import RequestStatus

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class RunStanding(StrEnum):
    """What a run still is to its request; all but the first two are closed."""

    ACTIVE = "active"
    WAITING = "waiting"
    ACCEPTED = "accepted"
    REPLACED = "replaced"
    SENT_BACK = "sent_back"
    SUPERSEDED = "superseded"
    REQUEST_CLOSED = "request_closed"
    REQUEST_GONE = "request_gone"
    ORPHANED = "orphaned"


class TreeState(StrEnum):
    """What is in a worktree: the first two may go, each of the others is a reason to keep it."""

    SAVED = "saved"
    MISSING = "missing"
    UNSAVED = "unsaved"
    UNDER_WAY = "under_way"
    OTHER_BRANCH = "other_branch"
    HELD = "held"
    UNKNOWN = "unknown"
    MOUNTED = "mounted"
    NESTED = "nested"
    ELSEWHERE = "elsewhere"
    BROKEN = "broken"


class LeftoverKind(StrEnum):
    """What remains only after a kill."""

    GONE = "gone"  # on its way out already: a clean was killed
    MERGE = "merge"
    FILE = "file"
    ASIDE = "aside"


@dataclass(frozen=True, slots=True)
class Ref:
    """A branch (by its short name) or another ref of a run, and whether a base branch has its commit."""

    name: str
    commit: str
    changed_at: datetime | None = None
    is_merged: bool = False


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file or folder that is not needed; one that was moved `ASIDE` may hold work if it is not empty."""

    path: str
    kind: LeftoverKind
    is_empty: bool = True


@dataclass(frozen=True, slots=True)
class Remains:
    """Everything of runs that is in a checkout's state folder, in `runs/` beside the runs, and in the repository.

    `worktrees`, `refs` and `leftovers` are by run id, `branches` by name, `checked_out` from branch to worktree.
    `foreign` are the runs of other checkouts of the repository; if one of those cannot be looked at, `is_whole` is
    False, and what has no run here may still have one there.
    """

    worktrees: Mapping[str, str] = field(default_factory=dict)
    branches: Mapping[str, Ref] = field(default_factory=dict)
    checked_out: Mapping[str, str] = field(default_factory=dict)
    refs: Mapping[str, tuple[Ref, ...]] = field(default_factory=dict)
    leftovers: Mapping[str, tuple[Leftover, ...]] = field(default_factory=dict)
    runs_folder: str = ""
    foreign: frozenset[str] = frozenset()
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    """One run with all that is left of it.

    `is_last`: it is the newest of a request that is still open. `names` are the runs it replaces or continues. If it
    `is_wanted`, the next run continues its branch (REQ-6a). `is_surely_ours`: no other checkout can have it.
    """

    run_id: str
    request_id: str | None
    standing: RunStanding
    changed_at: datetime | None = None
    is_locked: bool = False
    is_ambiguous: bool = False
    worktree: str | None = None
    tree_state: TreeState = TreeState.SAVED
    branch: Ref | None = None
    checked_out_at: str | None = None
    refs: tuple[Ref, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    folder: str | None = None
    is_last: bool = False
    names: tuple[str, ...] = ()
    is_wanted: bool = False
    is_surely_ours: bool = True


def standing_of(
    state: RunState,
    reason_code: str | None,
    status: RequestStatus | None,
    *,
    is_accepted: bool,
    is_current: bool,
) -> RunStanding:
    """Return what a run still is to its request; `status` is None if there is no such request any more.

    `is_accepted`: its work was brought in. `is_current`: it is the newest, or the one that speaks (SEL-4).
    """
    if state in ACTIVE_RUN_STATES:
        return RunStanding.ACTIVE
    if is_accepted:
        return RunStanding.ACCEPTED
    closed = {"REPLANNED": RunStanding.REPLACED, "SENT_BACK": RunStanding.SENT_BACK}.get(reason_code or "")
    if closed is not None or not is_current:
        return closed or RunStanding.SUPERSEDED
    if status is None:
        return RunStanding.REQUEST_GONE
    return RunStanding.REQUEST_CLOSED if status in _CLOSED_REQUESTS else RunStanding.WAITING


_CLOSED_REQUESTS = (RequestStatus.DONE, RequestStatus.ARCHIVED)
