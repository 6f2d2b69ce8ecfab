"""Watching a checkout (API-3): one look for all, and what somebody missed who comes back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.server.facts import Sight
from aiflow.usecases.server.watch import MOST_REPLAYED, CheckoutWatch
from builders import NOW

pytestmark = pytest.mark.spec("API-3")


@dataclass
class Eyes:
    """What is to be seen, and which runs were asked for."""

    seen: Sight = field(default_factory=Sight)
    named: list[tuple[str, str]] = field(default_factory=list)

    def look(self, named: Iterable[tuple[str, str]] = ()) -> Sight:
        self.named = sorted(named)
        return self.seen


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
def eyes() -> Eyes:
    return Eyes()


@pytest.fixture
def watch(journal: MemoryJournal, eyes: Eyes) -> CheckoutWatch:
    return CheckoutWatch(eyes, journal, PlayedTime())


def note(journal: MemoryJournal, number: int) -> None:
    journal.append(Activity(NOW, ActivityKind.TRANSITION, Actor.ENGINE, "RQ-1", f"RUN-{number}"))


def test_only_what_is_new_is_told_and_only_once(watch: CheckoutWatch, journal: MemoryJournal, eyes: Eyes) -> None:
    note(journal, 1)
    watch.begin()
    assert watch.look() == ()
    note(journal, 2)
    eyes.seen = Sight(auto=((1,), "RUNNING"))
    told = watch.look()
    assert [fact.kind for fact in told] == ["activity", "auto"]
    assert (told[0].ids["run_id"], told[0].cursor, watch.cursor) == ("RUN-2", journal.end(), journal.end())
    assert eyes.named == [("RQ-1", "RUN-2")]  # however short it was: it is looked at
    assert watch.look() == ()


def test_who_comes_back_is_told_what_is_behind_their_cursor(watch: CheckoutWatch, journal: MemoryJournal) -> None:
    cursors = []
    for number in range(5):
        note(journal, number)
        cursors.append(journal.end())
    replay = watch.replay(cursors[2])
    assert [fact.cursor for fact in replay.facts] == cursors[3:]
    assert not replay.has_gap
    assert watch.replay(cursors[4]) == ((), False)


def test_who_was_away_for_too_long_is_told_that_there_is_a_gap(watch: CheckoutWatch, journal: MemoryJournal) -> None:
    first = journal.end()
    for number in range(MOST_REPLAYED):
        note(journal, number)
    assert len(watch.replay(first).facts) == MOST_REPLAYED
    note(journal, 0)
    assert watch.replay(first) == ((), True)
    assert watch.replay("nonsense") == ((), True)
