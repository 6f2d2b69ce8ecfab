"""Clean up after runs (GIT-5): say what would go, then take it away, each run by itself and looked at once more.

What goes of a run goes while nobody can take a lock: a run that starts, goes on or is accepted at the same moment
finds everything of it, or nothing. A dry run is the plan alone.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.cleaning import Item, Kind, Plan, Rules, Why, plan_cleaning, plan_run, without
from aiflow.domain.remains import Found, Standing, TreeState
from aiflow.errors import AiflowError
from aiflow.usecases.find_remains import find_runs, is_locked, look_again

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aiflow.domain.run import Run
    from aiflow.ports import Lease
    from aiflow.usecases.engine import Engine

_HISTORY = (Kind.BRANCH, Kind.REF)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asked for: some requests or runs (or all), other days than the settings', unmerged work too."""

    names: frozenset[str] = frozenset()
    after_days: int | None = None
    takes_unmerged: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that could not be taken away, and why."""

    item: Item
    error: AiflowError

    @property
    def problem(self) -> str:
        """What was wrong, and with which file."""
        known = (self.error.context.get(name) for name in ("path", "problem"))
        return ": ".join(str(fact) for fact in known if fact and fact != self.item.name)


@dataclass(slots=True)
class Cleaned:
    """What went, what stayed, and what could not be taken away."""

    removed: list[Item] = field(default_factory=list)
    kept: list[Item] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)


def rules_for(engine: Engine, wish: Wish) -> Rules:
    """Put the rules together from the wish and the settings."""
    days = engine.settings.integer("clean.after_days") if wish.after_days is None else wish.after_days
    return Rules(engine.clock(), days, engine.settings.integer("clean.runs_after_days"), wish.takes_unmerged)


def plan_clean_up(engine: Engine, wish: Wish, rules: Rules) -> list[Plan]:
    """Say what would go and what stays; this changes nothing."""
    plans = plan_cleaning(find_runs(engine, wish.names, rules), rules)
    return [replace(plan, going=tuple(_sized(engine, item) for item in plan.going)) for plan in plans]


def _sized(engine: Engine, item: Item) -> Item:
    return replace(item, size_bytes=engine.housekeeping.size_of(item))


def clean_up(engine: Engine, plans: Iterable[Plan], rules: Rules, actor: Actor = Actor.PERSON) -> Cleaned:
    """Carry plans out, run by run; what cannot be taken away keeps nothing else."""
    cleaned = Cleaned()
    for plan in plans:
        if plan.going and not engine.interrupted():
            _clean_run(engine, plan, rules, cleaned, actor)
        else:
            cleaned.kept += plan.kept
    return cleaned


def retention(engine: Engine) -> Cleaned:
    """Clean up as the settings say, by itself: quietly, and trouble with it is no trouble for who calls."""
    wish = Wish()
    rules = rules_for(engine, wish)
    try:
        plans = plan_cleaning(find_runs(engine, wish.names, rules), rules)
        return clean_up(engine, plans, rules, Actor.AUTO_RUN)
    except AiflowError:
        return Cleaned()


def clean_after_accept(engine: Engine, run: Run, lease: Lease | None = None) -> bool:
    """Take away an accepted run's worktree, if git has all of it; never raises, tells whether it went.

    Who holds the request's lock hands it over; without it, a request that is locked is left alone.
    """
    item = Item(Kind.WORKTREE, run.place.path, Standing.ACCEPTED, run.run_id, run.request_id)
    found = Found(run.run_id, run.request_id, Standing.ACCEPTED)
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


def _clean_run(engine: Engine, plan: Plan, rules: Rules, cleaned: Cleaned, actor: Actor) -> None:
    """Take away what goes of one run, as far as that still holds once nobody can begin anything."""
    sure, taken = plan, Cleaned()
    try:
        with engine.locks.standstill() as locks:
            fresh = look_again(engine, plan.found, locks)
            sure = without(plan, plan_run(fresh, rules) if fresh else Plan(plan.found))
            _record(engine, actor, sure.going)
            _take_away(engine, sure, taken)
    except AiflowError as error:
        taken.failed += [Failure(item, error) for item in sure.going if item not in taken.removed]
    taken.kept += sure.kept
    _clear_away(engine, plan.found.run_id, taken)
    for failure in taken.failed:
        _record(engine, actor, (failure.item,), failure.error.reason_code)
    cleaned.removed += taken.removed
    cleaned.kept += taken.kept
    cleaned.failed += taken.failed


def _take_away(engine: Engine, plan: Plan, taken: Cleaned) -> None:
    """Take things away in their order: where one stays behind, so does what needs it."""
    for group in _groups(plan):
        is_leftover = all(item.kind is Kind.LEFTOVER for item in group)
        if not is_leftover and any(failure.item.kind is not Kind.LEFTOVER for failure in taken.failed):
            taken.kept += [replace(item, why=Why.WORKTREE_KEPT) for item in group]
            continue
        try:
            if group[0].kind in _HISTORY:
                engine.housekeeping.drop_refs(group)
            else:
                engine.housekeeping.take_away(group[0])
            taken.removed += group
        except AiflowError as error:
            taken.failed += [Failure(item, error) for item in group]


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
    folders = [item for item in taken.removed if item.kind in (Kind.WORKTREE, Kind.RUN, Kind.LEFTOVER)]
    if not folders:
        return
    try:
        engine.housekeeping.clear_away(run_id)
    except AiflowError as error:
        taken.failed.append(Failure(folders[0], error))
        taken.removed.remove(folders[0])


def _record(engine: Engine, actor: Actor, items: Iterable[Item], reason_code: str | None = None) -> None:
    """Write into the journal what goes, before it does: so the commits that bring it back are known at any time."""
    lines = [
        {"kind": item.kind.value, "name": item.name, "why": str(item.why), "commit": item.commit} for item in items
    ]
    if lines:
        first = next(iter(items))
        data = {"failed" if reason_code else "removed": lines}
        at, kind = engine.clock(), ActivityKind.CLEANED
        engine.journal.append(Activity(at, kind, actor, first.request_id, first.run_id, reason_code, data))
