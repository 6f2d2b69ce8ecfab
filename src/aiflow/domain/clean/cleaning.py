"""What may go once runs are over (GIT-5): facts of a run in, what goes and why, what stays and why.

Pure, so that a dry run and the real one are the same decision. Nothing that could be anybody's only copy goes without
being asked for: a worktree only if git has all of it, a branch only if it is merged, what unfinished steps left only
with a run that was accepted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from aiflow.domain.clean.leftovers import Found, Leftover, LeftoverKind, RunStanding, TreeState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class ItemKind(StrEnum):
    """What a run leaves."""

    WORKTREE = "worktree"
    BRANCH = "branch"
    REF = "ref"
    RUN = "run"
    LEFTOVER = "leftover"


class CleanReason(StrEnum):
    """Why something stays, beside what a worktree's state says; and why it goes, beside the run's standing."""

    LOCKED = "locked"
    ACTIVE = "active"
    YOUNG = "young"
    NOT_MERGED = "not_merged"
    UNFINISHED = "unfinished"
    CHECKED_OUT = "checked_out"
    WORKTREE_KEPT = "worktree_kept"
    CHECKOUT_AWAY = "checkout_away"
    NEXT_RUN = "next_run"
    ASIDE = "aside"
    AMBIGUOUS = "ambiguous"
    CHANGED = "changed"
    LEFTOVER = "leftover"


@dataclass(frozen=True, slots=True)
class CleanRules:
    """How old something must be, in days, and whether work that was never merged goes too."""

    now: datetime
    after_days: int
    runs_after_days: int = 0
    takes_unmerged: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that goes, or (in `Plan.kept`) stays: a path or a ref, with the commit that brings it back."""

    kind: ItemKind
    name: str
    why: str
    run_id: str
    request_id: str | None = None
    commit: str | None = None
    size_bytes: int | None = None

    @property
    def is_unmerged(self) -> bool:
        """Whether work goes with it that is in no base branch."""
        return self.why in (CleanReason.NOT_MERGED, CleanReason.UNFINISHED)

    @property
    def key(self) -> tuple[ItemKind, str]:
        """What it is, whatever became of it."""
        return self.kind, self.name


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes of one run, in the order in which it has to, and what stays though it might be expected to go."""

    found: Found
    going: tuple[Item, ...] = ()
    kept: tuple[Item, ...] = ()


def plan_cleaning(found: Iterable[Found], rules: CleanRules) -> list[Plan]:
    """Plan for every run, the newest first: a run that one names that stays, as replaced or continued, is kept."""
    needed: set[str] = set()
    plans = []
    for each in sorted(found, key=lambda one: one.run_id, reverse=True):
        plan = plan_run(each, rules, is_needed=each.run_id in needed)
        if not any(item.kind is ItemKind.RUN for item in plan.going):
            needed.update(each.names)
        plans.append(plan)
    return plans


def plan_run(found: Found, rules: CleanRules, *, is_needed: bool = False) -> Plan:
    """Say what goes of one run and what stays."""
    finished = [
        _item(found, ItemKind.LEFTOVER, each.path, CleanReason.LEFTOVER) for each in found.leftovers if _is_gone(each)
    ]
    untouched = why_untouched(found, rules)
    if untouched is not None:
        kept = (_item(found, ItemKind.RUN, found.run_id, untouched),)
        return Plan(found, tuple(finished), kept)
    going: list[Item] = []
    kept_too: list[Item] = []
    for item, goes in (*_worktree(found), *_leftovers(found)):
        (going if goes else kept_too).append(item)
    if found.standing is not RunStanding.WAITING:
        has_worktree = any(item.kind is ItemKind.WORKTREE for item in kept_too)
        for item, goes in _history(found, rules, has_worktree=has_worktree):
            (going if goes else kept_too).append(item)
        if not kept_too and not is_needed and _goes_for_good(found, rules):
            going.append(_item(found, ItemKind.RUN, found.folder or "", found.standing))
    return Plan(found, (*finished, *going), tuple(kept_too))


def why_untouched(found: Found, rules: CleanRules) -> CleanReason | None:
    """Say why nothing of a run is looked at any closer; None if it may be."""
    if found.is_ambiguous or found.is_locked:
        return CleanReason.AMBIGUOUS if found.is_ambiguous else CleanReason.LOCKED
    if found.standing is RunStanding.ACTIVE:
        return CleanReason.ACTIVE
    return None if is_old(found.changed_at, rules.now, rules.after_days) else CleanReason.YOUNG


def is_old(changed_at: datetime | None, now: datetime, days: int) -> bool:
    """Return whether a change was more than so many days ago; what has no date is never old, but 0 days take it all."""
    if days == 0:
        return True
    return changed_at is not None and (now - changed_at) / timedelta(days=1) > days


def without(plan: Plan, fresh: Plan) -> Plan:
    """Keep of a plan only what a second check, right before, still allows; the rest stays, for what was found then."""
    still = {item.key: item for item in fresh.going}
    now_kept = {item.key: item for item in fresh.kept}
    stays = [now_kept.get(item.key, _changed(item)) for item in plan.going if item.key not in still]
    return Plan(fresh.found, tuple(item for item in plan.going if item.key in still), (*plan.kept, *stays))


def _changed(item: Item) -> Item:
    return Item(item.kind, item.name, CleanReason.CHANGED, item.run_id, item.request_id, item.commit)


def _item(found: Found, kind: ItemKind, name: str, why: str, commit: str | None = None) -> Item:
    return Item(kind, name, why, found.run_id, found.request_id, commit)


def _is_gone(leftover: Leftover) -> bool:
    return leftover.kind is LeftoverKind.GONE


def _worktree(found: Found) -> Iterator[tuple[Item, bool]]:
    if found.worktree is not None:
        goes = found.tree_state in (TreeState.SAVED, TreeState.MISSING)
        yield _item(found, ItemKind.WORKTREE, found.worktree, found.standing if goes else found.tree_state), goes


def _leftovers(found: Found) -> Iterator[tuple[Item, bool]]:
    for each in found.leftovers:
        goes = each.kind is not LeftoverKind.ASIDE or each.is_empty
        if not _is_gone(each):
            yield _item(found, ItemKind.LEFTOVER, each.path, CleanReason.LEFTOVER if goes else CleanReason.ASIDE), goes


def _history(found: Found, rules: CleanRules, *, has_worktree: bool) -> Iterator[tuple[Item, bool]]:
    """Judge the branch and what unfinished steps left together: one may be what makes sense of the other."""
    stays = _why_history_stays(found, has_worktree=has_worktree)
    open_work = _open_work(found)
    goes = stays is None and (open_work is None or rules.takes_unmerged)
    why = stays or open_work or found.standing
    if found.branch is not None:
        yield _item(found, ItemKind.BRANCH, found.branch.name, why, found.branch.commit), goes
    for ref in found.refs:
        yield _item(found, ItemKind.REF, ref.name, why, ref.commit), goes


def _why_history_stays(found: Found, *, has_worktree: bool) -> CleanReason | None:
    if found.branch is not None and found.checked_out_at not in (None, found.worktree):
        return CleanReason.CHECKED_OUT
    if has_worktree:
        return CleanReason.WORKTREE_KEPT
    if found.is_wanted:
        return CleanReason.NEXT_RUN
    return None if found.is_surely_ours else CleanReason.CHECKOUT_AWAY


def _open_work(found: Found) -> CleanReason | None:
    """Name the work that would go with the branch and the refs, though no base branch has it."""
    if found.branch is not None and not found.branch.is_merged:
        return CleanReason.NOT_MERGED
    is_superseded = found.standing is RunStanding.ACCEPTED or all(ref.is_merged for ref in found.refs)
    return None if is_superseded else CleanReason.UNFINISHED


def _goes_for_good(found: Found, rules: CleanRules) -> bool:
    """Return whether the run's own files go: the last run of a request that is still open never does."""
    if found.folder is None or found.is_last or rules.runs_after_days <= 0:
        return False
    return is_old(found.changed_at, rules.now, rules.runs_after_days)
