"""Notes to a person who is not there: which runs are told of, in which words, and what a failed note does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.adapters.system_time import SystemTime
from aiflow.domain.activity import ActivityKind
from aiflow.domain.agents.answers import Role
from aiflow.domain.auto.session import AutoSession, Upcoming
from aiflow.domain.auto.summary import Summary, Unreached, Waiting
from aiflow.domain.claims import Dropped, Settled
from aiflow.domain.lifecycle import RunState
from aiflow.domain.next_action import OPEN, ActionKind, NextAction
from aiflow.domain.notes import Note, NoteKind
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.runs.events import asked, replaced, stopped
from aiflow.domain.runs.run import Run, RunError
from aiflow.errors import EnvironmentProblemError
from aiflow.messages import Texts
from aiflow.settings import settle
from aiflow.usecases.engine import Voice
from aiflow.usecases.runs.notify import tell_auto_ended, tell_waiting
from builders import NOW, typed
from engines import engine_of
from run_builders import EVERY_STATE, RUN_ID, at, done, in_step, in_tests, why


class Person:
    """Somebody who is told things, or cannot be."""

    def __init__(self, problem: str | None = None) -> None:
        self.problem = problem
        self.notes: list[Note] = []

    def send(self, note: Note, interrupted: Callable[[], bool] = lambda: False) -> str | None:
        self.notes.append(note)
        return self.problem


class Backlog:
    """Where the request is."""

    now: RequestStatus | None = RequestStatus.BLOCKED

    def status(self, _request_id: RequestId) -> RequestStatus | None:
        return self.now


class Scene:
    """An engine that can tell a person."""

    def __init__(self, language: str = "en", problem: str | None = None) -> None:
        self.person, self.journal, self.backlog = Person(problem), MemoryJournal(), Backlog()
        self.warnings: list[str] = []
        used: dict[str, Any] = {
            "notifier": self.person,
            "source": self.backlog,
            "journal": self.journal,
            "time": SystemTime(lambda: at(60)),
            "settings": settle({}),
        }
        self.engine = engine_of(Voice(Texts(language), warn=self.warnings.append), **used)

    def told(self, run: Run) -> Note:
        tell_waiting(self.engine, run)
        [note] = self.person.notes
        return note


def stop(code: str, summary: str = "", run: Run | None = None, **more: Any) -> Run:
    return stopped(run or in_tests(), RunError(code, summary, **more), at(30))


def test_a_question_is_told_with_the_command_that_answers_it() -> None:
    error = RunError("NEEDS_CLARIFICATION", "Red or\ngreen?", question="Red or\ngreen?")
    note = Scene().told(asked(in_step(), Role.IMPLEMENTER, error, at(30)))
    assert note == Note(
        NoteKind.WAITING,
        "NEEDS_CLARIFICATION",
        "RQ-1 asks a question",
        "Red or\ngreen?",
        NextAction(ActionKind.ANSWER, "RQ-1", options=(("answer", OPEN),)),
        "RQ-1",
        RUN_ID,
    )


@pytest.mark.spec("RUN-10")
def test_a_question_is_told_with_its_choices() -> None:
    error = RunError("NEEDS_CLARIFICATION", "May it?", question="May it?", choices=("Allow once", "Reject"))
    assert Scene().told(asked(in_step(), Role.IMPLEMENTER, error, at(30))).text == "May it?\n1. Allow once\n2. Reject"


@pytest.mark.spec("REQ-6")
def test_a_done_run_is_told_with_the_command_that_accepts_it() -> None:
    note = Scene().told(done())
    assert (note.reason_code, *typed(note.action)) == ("AWAITING_ACCEPTANCE", "aiflow accept RQ-1")
    assert note.title == "RQ-1 is done and waits for your acceptance"
    assert "branch is ready" in note.text
    assert "<" not in note.text


@pytest.mark.spec("REQ-6")
def test_a_done_run_that_could_not_be_accepted_is_told_with_why() -> None:
    note = Scene().told(replace(done(), error=RunError("MERGE_CONFLICT", "app.txt")))
    assert (note.reason_code, *typed(note.action)) == ("MERGE_CONFLICT", "aiflow resume RQ-1 --update")
    assert note.title.startswith("RQ-1 is done but was not accepted: ")
    assert note.text.endswith("app.txt")


@pytest.mark.spec("RUN-8")
def test_a_stop_is_told_with_its_cause_and_the_way_on_that_is_recommended() -> None:
    note = Scene().told(stop("RETRY_LIMIT_EXCEEDED", "2 tests failed", cause="UNIT_TEST_FAILED"))
    assert (note.reason_code, *typed(note.action)) == ("RETRY_LIMIT_EXCEEDED", "aiflow retry-step RQ-1")
    assert note.title.startswith("RQ-1 waits for you: ")
    assert "\n2 tests failed\nCause: UNIT_TEST_FAILED. " in note.text
    twice = replace(stop("UNIT_TEST_FAILED"), state=RunState.TESTING)
    assert typed(Scene().told(stop("UNIT_TEST_FAILED", run=twice)).action) == ("aiflow replan RQ-1",)


def test_a_failure_is_told_as_one_and_what_no_command_mends_leads_to_the_run() -> None:
    failed = Scene().told(stop("INTERNAL_ERROR", "KeyError: 'x'"))
    assert failed.title.startswith("RQ-1 failed: ")
    assert failed.text.count("KeyError: 'x'") == 1
    assert typed(Scene().told(stop("BASE_BRANCH_MISSING", "main")).action) == ("aiflow show RQ-1",)


def test_notes_are_in_the_persons_language() -> None:
    error = RunError("NEEDS_CLARIFICATION", "?", question="?")
    assert Scene("ja").told(asked(in_step(), Role.QA, error, at(30))).title == "RQ-1 から質問があります"


@pytest.mark.parametrize(
    "run",
    [
        *EVERY_STATE.values(),
        stop("CANCELLED"),
        stop("RUNNER_STOPPED"),
        stop("STORE_UNREACHABLE"),
        replace(done(), accepted_as="abc"),
        replaced(stop("UNIT_TEST_FAILED"), "RUN-2", at(31)),
        replace(stop("INTERNAL_ERROR"), error=why("SENT_BACK")),
    ],
    ids=lambda run: f"{run.state} {run.error.reason_code if run.error else ''}",
)
def test_what_waits_for_nobody_is_not_told(run: Run) -> None:
    scene = Scene(problem="unheard")
    tell_waiting(scene.engine, run)
    assert (scene.person.notes, scene.journal.entries, scene.warnings) == ([], [], [])


@pytest.mark.spec("REQ-3")
@pytest.mark.parametrize("status", RequestStatus)
def test_what_a_person_put_away_meanwhile_waits_for_nobody(status: RequestStatus) -> None:
    is_told = status in (RequestStatus.BLOCKED, RequestStatus.RUNNING)
    scene = Scene()
    scene.backlog.now = status
    tell_waiting(scene.engine, done())
    assert len(scene.person.notes) == is_told
    for shown in (Settled(RequestStatus.RUNNING, status), Dropped(status)):  # then nobody looks again
        scene = Scene()
        scene.backlog.now = None
        tell_waiting(scene.engine, done(), shown)
        assert len(scene.person.notes) == is_told


def test_a_request_that_cannot_be_read_keeps_no_note_back() -> None:
    scene = Scene()
    scene.backlog.now = None
    assert scene.told(done()).reason_code == "AWAITING_ACCEPTANCE"


@pytest.mark.spec("ERR-4")
def test_a_note_that_was_not_sent_is_in_the_journal_and_a_warning() -> None:
    scene = Scene(problem="exit code 1")
    tell_waiting(scene.engine, done())
    [entry] = scene.journal.entries
    assert (entry.kind, entry.request_id, entry.run_id) == (ActivityKind.NOTE_FAILED, "RQ-1", RUN_ID)
    assert entry.reason_code == "AWAITING_ACCEPTANCE"
    assert entry.data == {"note": "waiting", "problem": "exit code 1"}
    assert scene.warnings == ["The notification was not sent (exit code 1)"]


def test_a_note_that_was_sent_leaves_no_trace() -> None:
    scene = Scene()
    tell_waiting(scene.engine, done())
    assert (scene.journal.entries, scene.warnings) == ([], [])


def test_a_journal_that_cannot_be_written_is_no_trouble() -> None:
    class Full:
        def append(self, activity: object) -> None:
            raise EnvironmentProblemError(reason_code="DISK_FULL", path="journal")

    scene = Scene(problem="no room")
    tell_waiting(replace(scene.engine, journal=Full()), done())
    assert len(scene.warnings) == 1


@pytest.mark.spec("AUT-3")
def test_the_end_of_auto_run_is_told_with_its_reason_and_what_a_person_finds() -> None:
    scene = Scene()
    summary = Summary(
        AutoSession(NOW, reason_code="AUTO_NEEDS_INPUT_LIMIT"),
        done=(Upcoming("RQ-1", "One"), Upcoming("RQ-2", "Two")),
        waiting=(Waiting("RQ-3", "Three", "NEEDS_CLARIFICATION", "Red or green?", is_question=True),),
        unreached=(Unreached("RQ-4", "Four", "DEPENDS_NOT_DONE", "waits for RQ-3"),),
    )
    tell_auto_ended(scene.engine, summary)
    [note] = scene.person.notes
    assert (note.kind, note.reason_code, *typed(note.action)) == (
        NoteKind.AUTO_ENDED,
        "AUTO_NEEDS_INPUT_LIMIT",
        "aiflow list",
    )
    assert note.title == "Auto-run has ended: 2 done, 1 waiting for you, 1 not reached"
    assert note.text == "Auto-run stopped: several runs need a person\nRQ-3: Red or green?"
    assert (note.request_id, note.run_id) == (None, None)


@pytest.mark.spec("AUT-3")
def test_an_auto_run_that_found_nothing_is_told_too() -> None:
    scene = Scene(problem="exit code 1")
    tell_auto_ended(scene.engine, Summary(AutoSession(NOW)))
    assert scene.person.notes[0].reason_code == "AUTO_NOTHING_RUNNABLE"
    assert [entry.data["note"] for entry in scene.journal.entries] == ["auto_ended"]
