"""Claiming (QUE-5): one query of the ready-index and one conditional write, however large the table is (PRF-2).

An index may show a task late, too long or again: only the task's own item decides. What an index shows and a claim
does not get is remembered and passed over, so that it never blocks what comes after it.
"""

from __future__ import annotations

import random
import secrets
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.dynamo.client import ConditionFailedError
from aiflow.adapters.dynamo.queue.calls import ItemChange
from aiflow.adapters.dynamo.queue.items import ready_partition, task_of
from aiflow.adapters.dynamo.queue.tables import READY_INDEX
from aiflow.domain.lifecycle import TASK_TRANSITIONS, TaskEvent
from aiflow.domain.queue.task import Task, TaskAction, stamp
from aiflow.errors import AiflowError
from aiflow.ports.tasks import ANY_TERMS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from aiflow.adapters.dynamo.queue.calls import Item, ItemTable
    from aiflow.domain.queue.task import Checkout
    from aiflow.ports.tasks import Claimant, ClaimTerms

# So many are asked for at once (about 4 KB of keys: at most 1 RCU), and so many at most are chosen among.
PAGE = 16
# So many wins in a row bring the choice one closer to the first: with one, eight runners lost every second race.
WINS_PER_STEP = 2
# More stale entries than this at once would only be tried again.
REMEMBERED = 4096
TOKEN_BYTES = 8

[_FROM] = [state for state, event in TASK_TRANSITIONS if event is TaskEvent.CLAIMED]
_TO = TASK_TRANSITIONS[_FROM, TaskEvent.CLAIMED]
# What a newer version put there, and we could not carry out, is left to its like.
_KNOWN = {f"action_{action}": action for action in TaskAction}
_CONDITION = f"#status = :from AND (attribute_not_exists(#action) OR #action IN ({', '.join(f':{n}' for n in _KNOWN)}))"


class Candidate(NamedTuple):
    """An entry of the ready-index, in the order of the queue."""

    place: str
    task_id: str

    @property
    def priority(self) -> str:
        """What its place begins with."""
        return self.place.partition("#")[0]


class Attempt(NamedTuple):
    """A claim whose outcome is not known yet."""

    task_id: str
    token: str


class LostRace(StrEnum):
    """Why a claim did not get its task."""

    RACE = "race"
    STALE = "stale"


class Entries:
    """What one partition of the ready-index shows; its next page is asked for when this one is used up."""

    def __init__(self, pages: Iterator[list[Candidate]]) -> None:
        self._pages = pages
        self.here: list[Candidate] = []

    def fill(self) -> list[Candidate]:
        """Return what there is to choose from; a page may be empty and not the last."""
        while not self.here:
            page = next(self._pages, None)
            if page is None:
                break
            self.here = page
        return self.here

    def drop(self, candidate: Candidate) -> bool:
        """Take an entry out; False if it is none of these."""
        is_here = candidate in self.here
        self.here = [each for each in self.here if each != candidate]
        return is_here


@dataclass(slots=True)
class Claiming:
    """Claims tasks of one namespace for a runner; what it remembers only saves calls, except for `unknown`."""

    tasks: ItemTable
    namespace: str
    poll_seconds: float
    window: int = 1
    unknown: dict[str, Attempt] = field(default_factory=dict)
    _passed: dict[str, None] = field(default_factory=dict)
    _anybodys: Entries = field(default_factory=lambda: Entries(iter(())))
    _looked_seconds: float | None = None
    _are_anybodys_raced_for: bool = False
    _wins: int = 0

    def claim(self, claimant: Claimant, now: datetime, terms: ClaimTerms = ANY_TERMS) -> Task | None:
        """Claim the next task that this runner may take, if it is its turn then."""
        if claimant.runner_id in self.unknown and not terms.is_our_turn():
            return None
        if (held := self._resolve(claimant, now)) is not None:
            return held
        try:
            # After a lost race others are at work: what was seen before it is old already, and is read again.
            while (got := self._claim_first(claimant, now, terms)) is LostRace.RACE:
                continue
        except AiflowError:
            self._looked_seconds = None  # a page that never came is asked for again
            raise
        return got if isinstance(got, Task) else None

    def _claim_first(self, claimant: Claimant, now: datetime, terms: ClaimTerms) -> Task | LostRace:
        """Claim the first task that is to be had, until there is none or a race is lost."""
        own = Entries(self._partition(claimant.checkout, terms.left))
        anybodys = self._look_at_anybodys(is_idle=not own.fill())
        while candidates := sorted((*own.fill(), *anybodys.fill())):
            if not terms.is_our_turn():
                break
            candidate = self._choose(candidates)
            got = self._try(Attempt(candidate.task_id, _token()), claimant, now)
            own.drop(candidate)
            is_anybodys = anybodys.drop(candidate)
            self._pass_over(candidate.task_id)
            if isinstance(got, Task):
                self._win()
                return got
            self.window, self._wins = min(PAGE, self.window * 2), 0
            if got is LostRace.RACE:
                self._are_anybodys_raced_for |= is_anybodys
                return got
        return LostRace.STALE

    def _try(self, attempt: Attempt, claimant: Claimant, now: datetime) -> Task | LostRace:
        """Try one claim; if the store does not answer, what became of it is found out before the next one."""
        try:
            return self._write(attempt, claimant, now)
        except AiflowError:
            self.unknown[claimant.runner_id] = attempt
            return self._resolve(claimant, now) or LostRace.RACE

    def _resolve(self, claimant: Claimant, now: datetime) -> Task | None:
        """Find out what became of a claim whose answer never came, and make it again if nothing did."""
        attempt = self.unknown.get(claimant.runner_id)
        if attempt is None:
            return None
        item = self.tasks.get(self.namespace, attempt.task_id) or {}
        got = _outcome(item, attempt)
        if item.get("status") == _FROM:
            # The first write may still be on its way: ours with the same token is there before it, or finds it there.
            got = self._write(attempt, claimant, now)
        del self.unknown[claimant.runner_id]
        return got if isinstance(got, Task) else None

    def _write(self, attempt: Attempt, claimant: Claimant, now: datetime) -> Task | LostRace:
        """Write a claim under the condition that there is none yet."""
        sets = {
            "status": _TO,
            "claimed_by": claimant.runner_id,
            "claim_token": attempt.token,
            "updated_at": stamp(now),
        }
        change = ItemChange(_CONDITION, {"from": _FROM, **_KNOWN}, sets, ("ready_pk", "ready_sk"))
        try:
            return task_of(self.tasks.change(self.namespace, attempt.task_id, change))
        except ConditionFailedError:
            # The client asks again automatically if an answer is lost: its own first write may have refused it.
            return _outcome(self.tasks.get(self.namespace, attempt.task_id) or {}, attempt)

    def _win(self) -> None:
        """Come back to the order of the queue, step by step, where no race is lost any more."""
        self._wins += 1
        if self._wins % WINS_PER_STEP == 0:
            self.window = max(1, self.window - 1)

    def _choose(self, candidates: list[Candidate]) -> Candidate:
        """Choose the first; after lost races one of the first that are as urgent, so that runners spread."""
        first = candidates[0]
        within = [each for each in candidates[: self.window] if each.priority == first.priority]
        return random.choice(within)  # noqa: S311

    def _look_at_anybodys(self, *, is_idle: bool) -> Entries:
        """Look at what anybody may take: not at every call, unless there is nothing else, or others are after it."""
        now_seconds = time.monotonic()
        is_due = self._looked_seconds is None or now_seconds - self._looked_seconds >= self.poll_seconds
        self._are_anybodys_raced_for &= self.window > 1
        if is_due or self._are_anybodys_raced_for or (is_idle and not self._anybodys.here):
            self._anybodys, self._looked_seconds = Entries(self._partition(None)), now_seconds
        return self._anybodys

    def _partition(self, checkout: Checkout | None, left: frozenset[str] = frozenset()) -> Iterator[list[Candidate]]:
        pages = self.tasks.pages(
            {"partition": ready_partition(self.namespace, checkout)},
            IndexName=READY_INDEX,
            KeyConditionExpression="#ready_pk = :partition",
            Limit=PAGE,
        )
        for page in pages:
            entries = (Candidate(item["ready_sk"], item["task_id"]) for item in page.items)
            yield [entry for entry in entries if entry.task_id not in self._passed and entry.task_id not in left]

    def _pass_over(self, task_id: str) -> None:
        """Remember an entry that is of no use any more: a task is claimed once in its life."""
        self._passed[task_id] = None
        if len(self._passed) > REMEMBERED:
            del self._passed[next(iter(self._passed))]


def _outcome(item: Item, attempt: Attempt) -> Task | LostRace:
    """Return the task of an item if this very attempt has it, else whether somebody else does."""
    if item.get("status") != _TO:
        return LostRace.STALE
    return task_of(item) if item.get("claim_token") == attempt.token else LostRace.RACE


def _token() -> str:
    return secrets.token_hex(TOKEN_BYTES)
