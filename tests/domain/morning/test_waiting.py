"""What a card shows of what waits: the lines that tell, what the answer unblocks."""

from __future__ import annotations

import pytest

from aiflow.domain.morning.excerpt import MOST_LINES, Excerpt, take_excerpt
from aiflow.domain.morning.unblocking import dependants_of, unblocked_by
from aiflow.domain.morning.waiting import DiffStat, stat_of
from aiflow.domain.request import RequestId
from aiflow.domain.runs.worktree import FileDiff
from aiflow.domain.wait_kind import kind_of
from builders import backlog, request, request_lock
from builders import run as summary

pytestmark = pytest.mark.spec("WEB-1")

UNITTEST = """
......F.
======================================================================
FAIL: test_what_is_due_first (tests.test_order.Order)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "tests/test_order.py", line 10, in test_what_is_due_first
    self.assertEqual(shown, ["3", "2", "1"])
AssertionError: Lists differ: ['1', '3', '2'] != ['3', '2', '1']

----------------------------------------------------------------------
Ran 8 tests in 0.012s
FAILED (failures=1)
"""


@pytest.mark.parametrize(
    ("output", "failing"),
    [
        (UNITTEST, "AssertionError: Lists differ: ['1', '3', '2'] != ['3', '2', '1']"),
        (
            "a\n    def test():\n>       assert 1 == 2\nE       assert 1 == 2\n\nx.py:3: AssertionError",
            "E       assert 1 == 2",
        ),
        ("ok 1\nnot ok 2 - adds\nok 3", "not ok 2 - adds"),
        ("--- FAIL: TestSum (0.00s)\n    sum_test.go:9: got 3", "--- FAIL: TestSum (0.00s)"),
        ("thread 'main' panicked at src/main.rs:2:\nboom", "thread 'main' panicked at src/main.rs:2:"),
        ("compiling\n\x1b[31merror[E0308]\x1b[0m: mismatched types\n --> a.rs:1", "error[E0308]: mismatched types"),
        ("  ● adds\n    Expected: 3\n    Received: 4", "    Expected: 3"),
    ],
)
def test_the_line_that_tells_what_is_wrong_is_found(output: str, failing: str) -> None:
    excerpt = take_excerpt(output)
    assert excerpt is not None
    assert excerpt.failing is not None
    assert excerpt.lines[excerpt.failing] == failing
    assert len(excerpt.lines) <= MOST_LINES


def test_an_excerpt_has_the_lines_around_and_no_rulers() -> None:
    excerpt = take_excerpt(UNITTEST)
    assert excerpt is not None
    assert excerpt.lines[0].startswith("FAIL: test_what")
    assert excerpt.lines[-1] == "FAILED (failures=1)"
    assert not any(set(line) <= set("=-. ") for line in excerpt.lines)


def test_without_a_telling_line_the_last_ones_are_shown() -> None:
    output = "\n".join(f"line {number}" for number in range(20))
    assert take_excerpt(output) == Excerpt(tuple(f"line {number}" for number in range(12, 20)))
    assert take_excerpt("\n ---- \n") is None
    long = take_excerpt("y" * 10_000)
    assert long is not None
    assert len(long.lines[0]) == 400


def test_what_waits_for_a_request_directly_and_behind_others() -> None:
    requests = (
        request("A", "blocked"),
        request("B", depends_on=["A"], priority="P3"),
        request("C", depends_on=["A"]),
        request("D", depends_on=["C", "A", "X"]),
        request("E", depends_on=["D"]),
        request("F", "archived", depends_on=["A"]),
        request("G", "draft", depends_on=["A"]),
        request("H", depends_on=["E", "A"]),
    )
    known = backlog(*requests, locks=request_lock("C"))
    found = unblocked_by(RequestId("A"), known, dependants_of(requests))
    # C is locked, D waits for others too, G is a draft.
    assert tuple(found) == (("C", "D", "G", "H", "B"), ("E",), ("B",))
    assert found.total == 6
    assert unblocked_by(RequestId("E"), known, dependants_of(requests)).direct == ("H",)


def test_a_circle_ends() -> None:
    requests = (
        request("A", "blocked", depends_on=["C"]),
        request("B", depends_on=["A"]),
        request("C", depends_on=["B"]),
    )
    assert tuple(unblocked_by(RequestId("A"), backlog(*requests), dependants_of(requests))) == (("B",), ("C",), ())


@pytest.mark.parametrize(
    ("state", "reason", "kind"),
    [
        ("NEEDS_INPUT", "NEEDS_CLARIFICATION", "question"),
        ("NEEDS_INPUT", "UNIT_TEST_FAILED", "stopped"),
        ("FAILED", "INTERNAL_ERROR", "stopped"),
        ("DONE", None, "acceptance"),
        ("DONE", "MERGE_CONFLICT", "acceptance"),
        ("TESTING", None, "stopped"),
    ],
)
def test_for_what_it_waits(state: str, reason: str | None, kind: str) -> None:
    assert kind_of(summary(state, reason)) == kind
    assert kind_of(None) == "stopped"


def test_a_long_diff_is_cut_and_counted() -> None:
    files = tuple(FileDiff(f"{number}.txt", 2, 1) for number in range(8))
    assert stat_of(files) == DiffStat(files[:6], 2, 16, 8)
    assert stat_of(None).is_gone
