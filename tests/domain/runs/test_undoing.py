"""Undoing an acceptance (REQ-6): what a run knows of it, what is recommended then, and what was built on it."""

from __future__ import annotations

import pytest

from aiflow.domain.backlog.built_on import BuiltOn, built_on
from aiflow.domain.lifecycle import RunOutcome, RunState
from aiflow.domain.next_action import ActionKind
from aiflow.domain.reasons import WayOn
from aiflow.domain.request import Request, RequestId, RequestStatus
from aiflow.domain.runs.events import accepted, sent_back
from aiflow.domain.runs.merge import Landing
from aiflow.domain.runs.run import NOTHING_CHANGED, Run
from aiflow.domain.runs.stopped import recommended, way_out
from aiflow.domain.runs.undoing import KEPT, is_undone, not_undone, undoing, undone, undone_of
from aiflow.domain.runs.ways import RunSurroundings, ways_on
from builders import typed
from run_builders import at, done, why

pytestmark = pytest.mark.spec("REQ-6")
OUT = Landing("base", "merge", "tip", "revert")


def taken_out() -> Run:
    return undone(accepted(done(), "merge", at(1)), OUT, at(2))


def test_what_was_undone_is_done_and_waits_and_is_sent_back_first() -> None:
    run = taken_out()
    assert (run.state, run.accepted_as, run.merging_as) == (RunState.DONE, None, None)
    assert (run.outcome, is_undone(run), undone_of(run)) == (RunOutcome.AWAITING_ACCEPTANCE, True, OUT)
    assert recommended(run) is WayOn.SEND_BACK
    assert way_out(run).reason_code == "ACCEPTANCE_UNDONE"
    offered = [(way.kind, way.is_recommended) for way in ways_on(run, RunSurroundings())]
    assert offered == [(ActionKind.SEND_BACK, True), (ActionKind.ACCEPT, False)]
    assert typed(ways_on(run, RunSurroundings())[0].action) == ('aiflow send-back RQ-1 -m "…"',)
    assert (run.history[-1].event, run.history[-1].note) == ("UNDONE", "revert")


def test_accepted_again_nothing_of_the_undo_is_left() -> None:
    again = accepted(taken_out(), "second", at(3))
    assert (again.accepted_as, again.landing, again.error, undone_of(again)) == ("second", None, None, None)


def test_the_next_run_finds_how_the_work_had_come_in() -> None:
    back = sent_back(taken_out(), "Not like this.", at(3))
    assert (back.state, undone_of(back), is_undone(back)) == (RunState.FAILED, OUT, False)


def test_what_could_not_be_undone_stays_accepted() -> None:
    run = undoing(accepted(done(), "merge", at(1)), at(2))
    kept = not_undone(run, why("UNDO_TESTS_FAILED"), at(3))
    assert (kept.accepted_as, kept.error, kept.outcome) == ("merge", None, RunOutcome.ACCEPTED)
    assert (kept.history[-1].event, kept.history[-1].reason_code) == (KEPT, "UNDO_TESTS_FAILED")
    assert undone_of(kept) is None


def test_a_run_was_empty_as_it_was_accepted_last() -> None:
    empty = accepted(done(), "base", at(1), is_empty=True)
    assert empty.was_empty
    out = undone(empty, None, at(2))
    assert (undone_of(out), is_undone(out)) == (None, True)
    assert not accepted(out, "merge", at(3)).was_empty
    assert [line.reason_code for line in empty.history if line.event == "ACCEPTED"] == [NOTHING_CHANGED]


def test_what_was_built_on_a_request_is_told_by_what_it_is() -> None:
    def request(name: str, status: RequestStatus, *wanted: str) -> Request:
        depends_on = tuple(map(RequestId, wanted))
        return Request(RequestId(name), f"requests/{name}.md", name, status=status, depends_on=depends_on)

    s = RequestStatus
    backlog = [
        request("A", s.DONE),
        request("B", s.DONE, "A"),
        request("C", s.RUNNING, "B"),
        request("D", s.READY, "C", "A"),
        request("E", s.DRAFT, "A"),
        request("F", s.DONE),
        request("G", s.READY, "A", "H"),
        request("H", s.READY, "G"),
    ]
    assert built_on(backlog, "A") == BuiltOn(("B",), ("C",), ("D", "G", "H"))  # type: ignore[arg-type]
    assert [name for name, _ in built_on(backlog, "D").named()] == []
