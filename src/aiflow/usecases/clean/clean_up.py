"""Clean up after runs (GIT-5): list what would be removed, then remove it, run by run and checked once more.

A run's things are removed while no process can take a lock: a run that starts, resumes or is accepted at that moment
finds everything of it, or nothing. A dry run is the plan alone.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.clean.cleaning import CleanReason, CleanRules, Item, ItemKind, Plan, plan_cleaning, plan_run, without
from aiflow.domain.clean.leftovers import Found, RunStanding, TreeState
from aiflow.errors import AiflowError
from aiflow.messages.details import as_text, words
from aiflow.usecases.clean.find_leftovers import find_runs, is_locked, look_again

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aiflow.domain.runs.run import Run
    from aiflow.ports import Lease
    from aiflow.usecases.engine import Engine

_HISTORY = (ItemKind.BRANCH, ItemKind.REF)


@dataclass(frozen=True, slots=True)
class CleanWish:
    """What a person asked for: some requests or runs (or all), other days than the settings', unmerged work too."""

    names: frozenset[str] = frozenset()
    after_days: int | None = None
    takes_unmerged: bool = False


@dataclass(frozen=True, slots=True)
class CleanFailure:
    """Something that could not be taken away, and why."""

    item: Item
    error: AiflowError

    @property
    def problem(self) -> str:
        """What was wrong, and with which file."""
        path, problem = (as_text(self.error.context.get(name) or "") for name in ("path", "problem"))
        if not path or path == self.item.name:
            return problem
        return words("clean.problem_at", path=path, problem=problem) if problem else path


@dataclass(slots=True)
class Cleaned:
    """What went, what stayed, and what could not be taken away."""

    removed: list[Item] = field(default_factory=list)
    kept: list[Item] = field(default_factory=list)
    failed: list[CleanFailure] = field(default_factory=list)


class Prepared(NamedTuple):
    """What a clean would do, and by which rules; nothing is changed yet."""

    rules: CleanRules
    plans: tuple[Plan, ...]

    @property
    def foreseen(self) -> Cleaned:
        """What would go and what would stay."""
        going = [item for plan in self.plans for item in plan.going]
        return Cleaned(removed=going, kept=[item for plan in self.plans for item in plan.kept])


def prepare_clean_up(engine: Engine, wish: CleanWish) -> Prepared:
    """Say what would go and what stays, for a wish and the settings; this changes nothing."""
    rules = rules_for(engine, wish)
    return Prepared(rules, tuple(plan_clean_up(engine, wish, rules)))


def rules_for(engine: Engine, wish: CleanWish) -> CleanRules:
    """Put the rules together from the wish and the settings."""
    days = engine.settings.integer("clean.after_days") if wish.after_days is None else wish.after_days
    return CleanRules(engine.time.now(), days, engine.settings.integer("clean.runs_after_days"), wish.takes_unmerged)


def plan_clean_up(engine: Engine, wish: CleanWish, rules: CleanRules) -> list[Plan]:
    """Say what would go and what stays; this changes nothing."""
    plans = plan_cleaning(find_runs(engine, wish.names, rules), rules)
    return [replace(plan, going=tuple(_sized(engine, item) for item in plan.going)) for plan in plans]


def _sized(engine: Engine, item: Item) -> Item:
    return replace(item, size_bytes=engine.housekeeping.size_of(item))


def clean_up(engine: Engine, plans: Iterable[Plan], rules: CleanRules, actor: Actor = Actor.PERSON) -> Cleaned:
    """Carry plans out, run by run; what cannot be taken away keeps nothing else."""
    cleaned = Cleaned()
    for plan in plans:
        if plan.going and not engine.voice.interrupted():
            _clean_run(engine, plan, rules, cleaned, actor)
        else:
            cleaned.kept += plan.kept
    return cleaned


def retention(engine: Engine) -> Cleaned:
    """Clean up automatically as the settings say: quietly, and a problem with it does not affect the caller."""
    wish = CleanWish()
    rules = rules_for(engine, wish)
    try:
        plans = plan_cleaning(find_runs(engine, wish.names, rules), rules)
        return clean_up(engine, plans, rules, Actor.AUTO_RUN)
    except AiflowError:
        return Cleaned()


def clean_after_accept(engine: Engine, run: Run, lease: Lease | None = None) -> bool:
    """Remove an accepted run's worktree, if git has all of it; never raises, returns whether it was removed.

    A caller that holds the request's lock passes it; without it, a locked request is left alone.
    """
    item = Item(ItemKind.WORKTREE, run.place.path, RunStanding.ACCEPTED, run.run_id, run.request_id)
    found = Found(run.run_id, run.request_id, RunStanding.ACCEPTED)
    is_its_place = run.place.path == engine.workshop.worktree_path(run.run_id)
    with contextlib.suppress(AiflowError, OSError):
        with lease.writing() if lease is not None else engine.locks.standstill() as locks:
            is_free = lease is not None or not is_locked(found, locks or {})
            if not (run.accepted_as and is_its_place and is_free):
                return False
            if engine.housekeeping.state_of(run.place, None) is not TreeState.SAVED:
                return False
            _record(engine, Actor.ENGINE, (item,))
            engine.housekeeping.take_away(item)
        engine.housekeeping.clear_away(run.run_id)
        return True
    return False


def _clean_run(engine: Engine, plan: Plan, rules: CleanRules, cleaned: Cleaned, actor: Actor) -> None:
    """Remove a run's things, as far as that is still right once no process can start anything."""
    sure, taken = plan, Cleaned()
    try:
        with engine.locks.standstill() as locks:
            fresh = look_again(engine, plan.found, locks)
            sure = without(plan, plan_run(fresh, rules) if fresh else Plan(plan.found))
            _record(engine, actor, sure.going)
            _take_away(engine, sure, taken)
    except AiflowError as error:
        taken.failed += [CleanFailure(item, error) for item in sure.going if item not in taken.removed]
    taken.kept += sure.kept
    _clear_away(engine, plan.found.run_id, taken)
    for failure in taken.failed:
        _record(engine, actor, (failure.item,), failure.error.reason_code)
    cleaned.removed += taken.removed
    cleaned.kept += taken.kept
    cleaned.failed += taken.failed


def _take_away(engine: Engine, plan: Plan, taken: Cleaned) -> None:
    """Remove things in their order: if one stays, so does what needs it."""
    for group in _groups(plan):
        is_leftover = all(item.kind is ItemKind.LEFTOVER for item in group)
        if not is_leftover and any(failure.item.kind is not ItemKind.LEFTOVER for failure in taken.failed):
            taken.kept += [replace(item, why=CleanReason.WORKTREE_KEPT) for item in group]
            continue
        try:
            if group[0].kind in _HISTORY:
                engine.housekeeping.drop_refs(group)
            else:
                engine.housekeeping.take_away(group[0])
            taken.removed += group
        except AiflowError as error:
            taken.failed += [CleanFailure(item, error) for item in group]


def _groups(plan: Plan) -> Iterator[tuple[Item, ...]]:
    """Go through what goes: the branch and the refs at once, or a kill would leave one without the other."""
    history = tuple(item for item in plan.going if item.kind in _HISTORY)
    for item in plan.going:
        if item.kind not in _HISTORY:
            yield (item,)
        elif item is history[0]:
            yield history


def _clear_away(engine: Engine, run_id: str, taken: Cleaned) -> None:
    """Free the room of folders that were taken away; one that resists is tried again by the next clean."""
    folders = [item for item in taken.removed if item.kind in (ItemKind.WORKTREE, ItemKind.RUN, ItemKind.LEFTOVER)]
    if not folders:
        return
    try:
        engine.housekeeping.clear_away(run_id)
    except AiflowError as error:
        taken.failed.append(CleanFailure(folders[0], error))
        taken.removed.remove(folders[0])


def _record(engine: Engine, actor: Actor, items: Iterable[Item], reason_code: str | None = None) -> None:
    """Write into the journal what goes, before it does: so the commits that bring it back are known at any time."""
    lines = [
        {"kind": item.kind.value, "name": item.name, "why": str(item.why), "commit": item.commit} for item in items
    ]
    if lines:
        first = next(iter(items))
        data = {"failed" if reason_code else "removed": lines}
        at, kind = engine.time.now(), ActivityKind.CLEANED
        engine.journal.append(Activity(at, kind, actor, first.request_id, first.run_id, reason_code, data))
