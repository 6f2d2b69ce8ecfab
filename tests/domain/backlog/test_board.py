"""The backlog as a list to look through (WEB-1): order, filters, counts, pages, turns, and why not now."""

from __future__ import annotations

from typing import Any

import pytest

from aiflow.domain.backlog.board import ROWS, Board, BoardWish, Shelf
from aiflow.domain.backlog.looks import Mark, Why, WhyKind
from aiflow.domain.backlog.selection import Backlog
from aiflow.domain.request import InvalidRequest, Priority, Problem, ProblemKind, RequestId
from builders import backlog, request, request_lock, run

pytestmark = pytest.mark.spec("WEB-1")
BROKEN = InvalidRequest(RequestId("BAD"), "requests/BAD.md", (Problem(ProblemKind.BAD_PRIORITY, 2),))


def board(*requests: Any, waiting: dict[str, str] | None = None, **parts: Any) -> Board:
    known = {RequestId(name): code for name, code in (waiting or {}).items()}
    return Board(backlog(*requests, **parts), known)


def ids(shown: Board, wish: BoardWish | None = None, number: int = 1) -> list[str]:
    page = shown.page(wish or BoardWish(), number)
    return [row.request.id for row in page.rows] + [file.where for file in page.broken]


def why(shown: Board, request_id: str) -> Why:
    return shown.row(shown.backlog.by_id[RequestId(request_id)]).why


def test_the_list_is_in_selection_order_with_files_that_have_a_mistake_last() -> None:
    shown = board(
        request("LOW", priority="P3"), request("TOP", priority="P0"), request("OLD", "done"), invalid=(BROKEN,)
    )
    assert ids(shown) == ["TOP", "LOW", "requests/BAD.md"]
    assert ids(shown, BoardWish(Shelf.ALL)) == ["TOP", "OLD", "LOW", "requests/BAD.md"]
    assert shown.page(BoardWish()).groups == {Priority.P0: 1, Priority.P3: 1}


def test_each_shelf_has_what_its_name_says_and_is_counted() -> None:
    shown = board(
        request("R"),
        request("D", "draft"),
        request("W", "blocked"),
        request("F", "done"),
        request("A", "archived"),
        waiting={"W": "UNIT_TEST_FAILED"},
        invalid=(BROKEN,),
    )
    counts = shown.page(BoardWish()).counts
    for shelf, wanted in {
        Shelf.OPEN: ["D", "R", "W", "requests/BAD.md"],
        Shelf.READY: ["R"],
        Shelf.WAITING: ["W"],
        Shelf.DRAFT: ["D"],
        Shelf.DONE: ["F"],
        Shelf.ALL: ["A", "D", "F", "R", "W", "requests/BAD.md"],
    }.items():
        assert ids(shown, BoardWish(shelf)) == wanted
        assert counts[shelf] == len(wanted)


def test_words_priority_and_label_narrow_the_list_and_its_counts() -> None:
    shown = board(
        request("TODO-1", title="Export as CSV", labels=("list",)),
        request("TODO-2", "draft", "P0", title="Import from CSV"),
        request("TODO-3", title="期日の近い順に並べる"),
        invalid=(BROKEN,),
    )
    assert ids(shown, BoardWish(words="csv")) == ["TODO-2", "TODO-1"]
    assert ids(shown, BoardWish(words="CSV export")) == ["TODO-1"]
    assert ids(shown, BoardWish(words="期日")) == ["TODO-3"]
    assert ids(shown, BoardWish(words="bad")) == ["requests/BAD.md"]
    assert ids(shown, BoardWish(priority=Priority.P0)) == ["TODO-2"]
    assert ids(shown, BoardWish(label="list")) == ["TODO-1"]
    counts = shown.page(BoardWish(words="csv")).counts
    assert (counts[Shelf.OPEN], counts[Shelf.READY], counts[Shelf.DRAFT]) == (2, 1, 1)


def test_a_long_list_has_pages_and_broken_files_follow_on_the_last() -> None:
    requests = [request(f"RQ-{number:03}") for number in range(ROWS + 3)]
    shown = board(*requests, invalid=(BROKEN,))
    first, second = shown.page(BoardWish(), 1), shown.page(BoardWish(), 2)
    assert (first.first, first.last, first.total, first.pages, len(first.broken)) == (1, ROWS, ROWS + 4, 2, 0)
    assert (second.first, second.last, second.number) == (ROWS + 1, ROWS + 4, 2)
    assert ids(shown, number=2) == [each.id for each in requests[ROWS:]] + ["requests/BAD.md"]
    assert shown.page(BoardWish(), 99).number == 2
    assert shown.page(BoardWish(), -1).number == 1
    empty = shown.page(BoardWish(words="nothing like it"))
    assert (empty.first, empty.total, empty.pages) == (0, 0, 1)


def test_many_broken_files_go_on_over_the_pages() -> None:
    files = [BROKEN._replace(where=f"requests/BAD-{number:03}.md") for number in range(ROWS + 10)]
    shown = board(request("A"), request("B"), invalid=tuple(files))
    pages = [ids(shown, number=number) for number in (1, 2)]
    assert pages[0] + pages[1] == ["A", "B", *(file.where for file in files)]
    assert len(pages[0]) == ROWS


def test_the_turn_is_tonights_position_and_the_next_one_is_marked() -> None:
    shown = board(
        request("FIRST", priority="P0"),
        request("THEN", depends_on=["FIRST"]),
        request("NEVER", depends_on=["NOBODY"]),
        request("NOW", "running"),
        locks=request_lock("NOW"),
    )
    rows = {row.request.id: (row.turn, row.is_next) for row in shown.page(BoardWish()).rows}
    assert rows == {"FIRST": (1, True), "THEN": (2, False), "NEVER": (None, False), "NOW": (0, False)}


def test_what_is_worked_on_is_locked_and_leads_to_its_run() -> None:
    shown = board(request("NOW", "running"), locks=request_lock("NOW", "RUN-20260101-000000-bbbbbb"))
    row = shown.row(shown.backlog.requests[0])
    assert (row.mark, row.is_locked, row.run_id) == (Mark.RUN, True, "RUN-20260101-000000-bbbbbb")
    assert row.why.kind is WhyKind.AT_WORK
    dead = Board(shown.backlog._replace(dead_locks=frozenset({RequestId("NOW")})), {})
    assert not dead.row(dead.backlog.requests[0]).is_locked


@pytest.mark.parametrize(
    ("state", "code", "mark"),
    [
        ("NEEDS_INPUT", "NEEDS_CLARIFICATION", Mark.QUESTION),
        ("NEEDS_INPUT", "UNIT_TEST_FAILED", Mark.STOPPED),
        ("DONE", None, Mark.ACCEPT),
    ],
)
def test_what_waits_for_a_person_says_for_what(state: str, code: str | None, mark: Mark) -> None:
    shown = board(
        request("W", "blocked"),
        request("BEHIND", depends_on=["W"]),
        runs={RequestId("W"): run(state, code)},
        waiting={"W": code or "AWAITING_ACCEPTANCE"},
    )
    own, behind = why(shown, "W"), why(shown, "BEHIND")
    assert (own.kind, own.mark, own.run_id) == (WhyKind.WAITS, mark, "RUN-20260101-000000-aaaaaa")
    assert (behind.kind, behind.request_id, behind.mark, behind.run_id) == (WhyKind.DEPENDS, "W", mark, own.run_id)


def test_of_several_dependencies_the_one_that_needs_a_person_is_named() -> None:
    shown = board(
        request("READY"),
        request("W", "blocked"),
        request("DONE", "done"),
        request("IT", depends_on=["DONE", "READY", "W"]),
        request("LOST", depends_on=["READY", "GONE"]),
        request("OVER", "done", depends_on=["READY"]),
        runs={RequestId("W"): run("NEEDS_INPUT", "NEEDS_CLARIFICATION")},
        waiting={"W": "NEEDS_CLARIFICATION"},
    )
    assert (why(shown, "IT").request_id, why(shown, "IT").more) == ("W", 1)
    assert (why(shown, "LOST").request_id, why(shown, "LOST").mark) == ("GONE", Mark.MISSING)
    assert why(shown, "OVER").kind is WhyKind.NOTHING
    assert why(shown, "READY").kind is WhyKind.NOTHING


def test_a_draft_and_a_circle_say_their_rule() -> None:
    shown = board(request("D", "draft"), request("A", depends_on=["B"]), request("B", depends_on=["A"]))
    assert [str(barrier.reason_code) for name in "DA" if (barrier := why(shown, name).barrier)] == [
        "NOT_READY",
        "DEPENDS_CYCLE",
    ]


def test_an_empty_backlog_has_an_empty_page() -> None:
    page = Board(Backlog(), {}).page(BoardWish())
    assert (page.rows, page.broken, page.total, page.last) == ((), (), 0, -1)
