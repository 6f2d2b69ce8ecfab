"""Reading what happened (ERR-4): page by page, by what it is about, forwards and backwards."""

from __future__ import annotations

from itertools import islice

import pytest

from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.usecases import activity as module
from aiflow.usecases.activity import ActivityFilter, ActivityPage, follow_activity, latest_activity, read_activity
from aiflow.usecases.shapes.activity import activity_shape
from builders import NOW

pytestmark = pytest.mark.spec("ERR-4")


def journal_of(count: int) -> MemoryJournal:
    """A journal in which every third entry is a runner's refusal."""
    journal = MemoryJournal()
    for number in range(count):
        is_third = number % 3 == 0
        kind, actor = (ActivityKind.REFUSAL, Actor.RUNNER) if is_third else (ActivityKind.TRANSITION, Actor.ENGINE)
        code = "LOCK_MISMATCH" if is_third else None
        journal.append(Activity(NOW, kind, actor, f"RQ-{number % 2}", f"RUN-{number}", code))
    return journal


def runs(page: ActivityPage) -> list[int]:
    return [int(entry.fields["run_id"].removeprefix("RUN-")) for entry in page.entries]


def test_it_is_read_page_by_page() -> None:
    journal = journal_of(10)
    first = read_activity(journal, limit=4)
    rest = read_activity(journal, first.cursor)
    assert (runs(first), first.is_end) == ([0, 1, 2, 3], False)
    assert (runs(rest), rest.is_end) == ([4, 5, 6, 7, 8, 9], True)
    newest = read_activity(journal, limit=4, newest_first=True)
    older = read_activity(journal, newest.cursor, limit=4, newest_first=True)
    assert (runs(newest), runs(older)) == ([9, 8, 7, 6], [5, 4, 3, 2])


@pytest.mark.parametrize(
    ("only", "wanted"),
    [
        (ActivityFilter(kinds=("refusal",)), [0, 3, 6, 9]),
        (ActivityFilter(actors=("engine", "runner"), request_id="RQ-1"), [1, 3, 5, 7, 9]),
        (ActivityFilter(reason_codes=("LOCK_MISMATCH",), request_id="RQ-0"), [0, 6]),
        (ActivityFilter(run_id="RUN-4"), [4]),
        (ActivityFilter(run_id="RUN-40"), []),
    ],
)
def test_only_what_it_is_about(only: ActivityFilter, wanted: list[int]) -> None:
    journal = journal_of(10)
    assert runs(read_activity(journal, only=only)) == wanted
    assert runs(read_activity(journal, only=only, newest_first=True)) == wanted[::-1]
    seen: list[int] = []
    page = read_activity(journal, limit=2, only=only)
    while not page.is_end or page.entries:
        assert len(page.entries) <= 2
        seen += runs(page)
        page = read_activity(journal, page.cursor, 2, only)
    assert seen == wanted


def test_a_rare_entry_is_looked_for_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LOOKED_THROUGH", 4)
    journal = journal_of(10)
    only = ActivityFilter(run_id="RUN-9")
    page = read_activity(journal, limit=4, only=only)
    assert (runs(page), page.is_end, page.cursor) == ([], False, "4")
    assert runs(read_activity(journal, read_activity(journal, page.cursor, 4, only).cursor, 4, only)) == [9]


def test_a_page_that_ends_between_two_entries_is_gone_on_from_there_in_both_directions() -> None:
    journal, only = journal_of(3000), ActivityFilter(kinds=("refusal",))
    for newest_first in (False, True):
        seen: list[int] = []
        page = read_activity(journal, limit=7, only=only, newest_first=newest_first)
        while page.entries:
            assert len(page.entries) <= 7
            seen += runs(page)
            page = read_activity(journal, page.cursor, 7, only, newest_first=newest_first)
        assert seen == (list(range(2997, -1, -3)) if newest_first else list(range(0, 3000, 3)))


def test_the_newest_are_found_however_far_back_and_followed_from_the_end() -> None:
    journal = journal_of(50_000)
    page, end = latest_activity(journal, 5, ActivityFilter(run_id="RUN-3"))
    assert (runs(page), page.is_end, end) == ([3], True, "50000")
    newest, _ = latest_activity(journal, 2)
    assert runs(newest) == [49_999, 49_998]
    assert runs(latest_activity(journal, 2, before=newest.cursor)[0]) == [49_997, 49_996]


def test_what_comes_is_followed() -> None:
    journal = journal_of(5)
    found = follow_activity(journal, "0", lambda: False, ActivityFilter(kinds=("refusal",)))
    assert [entry.fields["run_id"] for entry in islice(found, 2)] == ["RUN-0", "RUN-3"]
    assert list(follow_activity(journal, None, lambda: True)) == []


def test_its_shape_has_always_the_same_keys() -> None:
    journal = MemoryJournal()
    journal.append(Activity(NOW, ActivityKind.CLEANED, Actor.PERSON))
    shape = activity_shape(read_activity(journal))
    assert list(shape) == ["activity", "next_cursor", "is_end", "has_gap", "damaged"]
    (entry,) = shape["activity"]
    assert {**entry, "pid": 1} == {
        "cursor": "1",
        "at": NOW.isoformat(),
        "kind": "cleaned",
        "actor": "person",
        "request_id": None,
        "run_id": None,
        "reason_code": None,
        "pid": 1,
        "by": None,
        "data": None,
    }
