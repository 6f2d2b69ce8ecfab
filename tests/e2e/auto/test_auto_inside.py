"""Auto-run from inside (AUT-1 to AUT-4): what it runs, when it stops, what it counts, what it leaves."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.locks.control_files import ControlFiles
from aiflow.adapters.locks.taking import LockTaking
from aiflow.adapters.run_folders.auto_files import AutoFile
from aiflow.adapters.system_time import SystemTime
from aiflow.cli.views.auto_lines import why_still
from aiflow.domain.activity import Activity
from aiflow.domain.agents.call import AgentCall, AgentReply
from aiflow.domain.auto.session import AutoSession, AutoStatus, Started
from aiflow.domain.auto.stopping import StopRequest
from aiflow.domain.auto.summary import Summary
from aiflow.domain.backlog.selection import describe_holder, select_next
from aiflow.domain.claims import Dropped, Settled
from aiflow.domain.lifecycle import AutoRunState, RunOutcome, RunState
from aiflow.domain.lock import Lock
from aiflow.domain.notes import Note, NoteKind
from aiflow.domain.request import Request, RequestId, RequestStatus
from aiflow.domain.runs.run import RunError
from aiflow.errors import AiflowError, EnvironmentProblemError
from aiflow.messages import Texts
from aiflow.ports import Lease
from aiflow.usecases.auto import run as auto_run_module
from aiflow.usecases.auto.standing import look_around
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.runs.accept import send_back
from aiflow.usecases.runs.start import start_run
from builders import typed
from e2e.bench import Bench
from e2e.night import Answer, Night, ask, broken, done, until_stopped

NOTHING = "AUTO_NOTHING_RUNNABLE"


@pytest.fixture
def night(bench: Bench) -> Night:
    """Give a backlog of RQ-1 to RQ-4, all ready, in this order."""
    for number in (2, 3, 4):
        bench.add_request(f"RQ-{number}")
    return Night(bench)


def assert_tidy(night: Night, state: str, reason: str) -> None:
    """Whatever happened: no lock is left, nothing is asked any more, and the record says how it ended."""
    assert night.bench.locks() == []
    assert list((night.bench.root / ".aiflow/control").glob("*")) == []
    record = night.record
    assert (record.state, record.reason_code, record.current) == (state, reason, None)


def first(then: Callable[[], object], answer: Answer = done) -> Answer:
    """Do something before the implementer answers."""

    def act(call: AgentCall, should_stop: Callable[[], bool]) -> AgentReply:
        then()
        return answer(call, should_stop)

    return act


def results(summary: Summary) -> list[tuple[str, str, str | None]]:
    return [(each.request_id, each.outcome.value, each.reason_code) for each in summary.session.results]


# --- the loop --------------------------------------------------------------------------------------------------------


@pytest.mark.spec("AUT-1", "AUT-2", "SEL-7", "LCK-6")
def test_it_runs_what_selection_says_one_after_the_other_until_nothing_is_runnable(night: Night) -> None:
    night.bench.add_request("RQ-0", priority="P0", depends_on="[RQ-1]")
    night.bench.add_request("URGENT", priority="P0")
    night.bench.add_request("LATER", status="draft")
    expected = [request.id for request in select_next(read_backlog(night.engine().backlog)).runnable]
    assert expected == ["URGENT", "RQ-1", "RQ-2", "RQ-3", "RQ-4"]
    summary = night.auto()
    assert night.ran == expected
    assert results(summary) == [(request_id, "awaiting_acceptance", None) for request_id in expected]
    assert (summary.session.runs, summary.session.done) == (5, 5)
    assert night.decisions() == [*((request_id, None) for request_id in expected), (None, NOTHING)]
    assert night.states == ["selecting", *["running", "selecting"] * 5, "completed"]
    assert night.seen[1].upcoming[0].request_id == "RQ-1"
    assert [status.runnable for status in night.seen if status.running][:2] == [4, 3]
    assert_tidy(night, "completed", NOTHING)
    # What it did waits for a person, and so is not done; what it could not reach has a reason in words.
    assert summary.done == ()
    assert {(each.request_id, *typed(each.action)) for each in summary.waiting} == {
        (request_id, f"aiflow accept {request_id}") for request_id in expected
    }
    assert [(each.request_id, each.reason_code, each.text) for each in summary.unreached] == [
        ("RQ-0", "DEPENDS_NOT_DONE", "depends_on: RQ-1 is not done")
    ]


@pytest.mark.spec("AUT-2")
def test_new_and_edited_requests_count_at_the_next_selection(night: Night) -> None:
    def edit() -> None:
        night.bench.add_request("NEW", priority="P0")
        night.bench.add_request("RQ-2", status="draft")

    night.answers["RQ-1"] = first(edit)
    night.auto()
    assert night.ran == ["RQ-1", "NEW", "RQ-3", "RQ-4"]


@pytest.mark.spec("AUT-2", "RUN-7")
def test_the_doctor_is_asked_once_per_request_and_all_runs_are_read_once_per_night(night: Night) -> None:
    engine = night.engine()
    asked: list[str | None] = []
    read: list[object] = []

    class Runs:
        def __getattr__(self, name: str) -> Any:
            return getattr(engine.runs, name)

        def latest(self, request_ids: Any = None) -> Any:
            read.append(None if request_ids is None else len(list(request_ids)))
            return engine.runs.latest(request_ids)

    def workspaces(run_id: str | None) -> Any:
        asked.append(run_id)
        return engine.workspaces(run_id)

    counting: Any = Runs()
    backlog = engine.backlog._replace(runs=counting)
    at_work: list[int] = []
    night.watch = lambda _status: at_work.append(len(read))
    night.auto(replace(engine, backlog=backlog, runs=counting, workspaces=workspaces))
    assert asked.count(None) == 1 + 4, "which branch is the base, then the doctor"
    assert read[: at_work[-1]].count(None) == 1, "at the start; what comes behind the end is cleaning up"
    assert read.index(None) == 0


# --- when it stops (AUT-3) -------------------------------------------------------------------------------------------


def renamed(bench: Bench) -> Callable[[], object]:
    return lambda: bench.git("branch", "-m", "main", "gone")


ALL = ["RQ-1", "RQ-2", "RQ-3", "RQ-4"]
STOPS: list[tuple[dict[str, Answer], dict[str, Any], list[str], str]] = [
    ({"RQ-1": ask, "RQ-2": ask}, {}, ALL[:2], "AUTO_NEEDS_INPUT_LIMIT"),
    ({"RQ-1": ask, "RQ-3": ask, "RQ-4": ask}, {}, ALL, "AUTO_NEEDS_INPUT_LIMIT"),
    ({"RQ-1": ask, "RQ-3": ask}, {}, ALL, NOTHING),
    ({"RQ-1": ask}, {"stop_after_needs_input": 1}, ALL[:1], "AUTO_NEEDS_INPUT_LIMIT"),
    ({"RQ-2": broken}, {}, ALL[:2], "AUTO_FAILED_LIMIT"),
    ({"RQ-1": broken, "RQ-2": broken}, {"stop_after_failed": 0}, ALL, NOTHING),
    ({}, {"session_runs": 3}, ALL[:3], "AUTO_RUNS_LIMIT"),
]


@pytest.mark.spec("AUT-3", "LCK-6", "AUT-1")
@pytest.mark.parametrize(("answers", "limits", "ran", "reason"), STOPS)
def test_it_stops_exactly_when_it_should(
    night: Night, answers: dict[str, Answer], limits: dict[str, Any], ran: list[str], reason: str
) -> None:
    night.answers |= answers
    summary = night.auto(**limits)
    assert night.ran == ran
    assert_tidy(night, "completed" if reason == NOTHING else "stopped", reason)
    waiting = {each.request_id: each for each in summary.waiting}
    assert {each for each in ran if waiting[each].is_question} == {each for each in ran if answers.get(each) is ask}
    assert {each for each in ran if waiting[each].reason_code == "INTERNAL_ERROR"} == {
        each for each in ran if answers.get(each) is broken
    }
    assert [(each.request_id, each.reason_code) for each in summary.unreached] == [
        (request_id, reason) for request_id in ALL[len(ran) :]
    ]


@pytest.mark.spec("AUT-3", "AUT-1", "RUN-7")
def test_a_doctor_that_fails_stops_it_at_the_start_and_in_the_middle(night: Night) -> None:
    night.answers["RQ-2"] = first(renamed(night.bench))
    summary = night.auto()
    assert night.ran == ["RQ-1", "RQ-2"]
    assert_tidy(night, "stopped", "DOCTOR_FAILED")
    assert [finding.reason_code for finding in summary.findings] == ["BASE_BRANCH_MISSING"]
    assert (summary.session.failed_in_a_row, summary.session.not_again) == (0, frozenset())
    assert [each.reason_code for each in summary.unreached] == ["DOCTOR_FAILED"] * 2
    (night.bench.root / "app.txt").write_text("changed by hand\n")
    again = night.auto()
    assert [(finding.reason_code, finding.evidence) for finding in again.findings] == [("WORKTREE_DIRTY", ("app.txt",))]
    assert (again.session.runs, again.session.reason_code, len(again.findings)) == (0, "DOCTOR_FAILED", 1)
    assert night.ran == ["RQ-1", "RQ-2"]
    (night.bench.root / "app.txt").write_text("app\n")
    assert night.auto().session.reason_code == NOTHING
    assert night.ran == ["RQ-1", "RQ-2", "RQ-3", "RQ-4"]


@pytest.mark.spec("AUT-3")
def test_it_stops_when_its_minutes_are_over(night: Night) -> None:
    now = [datetime.now(UTC)]

    def work() -> None:
        now[0] += timedelta(minutes=15)

    night.answers |= {"RQ-1": first(work), "RQ-2": first(work)}
    summary = night.auto(night.engine(time=SystemTime(lambda: now[0])), session_minutes=30)
    assert night.ran == ["RQ-1", "RQ-2"]
    assert summary.session.reason_code == "AUTO_MINUTES_LIMIT"
    assert_tidy(night, "stopped", "AUTO_MINUTES_LIMIT")


@pytest.mark.spec("AUT-3")
@pytest.mark.parametrize("wish", [StopRequest.AFTER_RUN, StopRequest.NOW])
def test_a_person_who_is_not_there_is_told_that_it_ended(night: Night, wish: StopRequest) -> None:
    notes: list[Note] = []

    class Notes:
        def send(self, note: Note, _interrupted: Callable[[], bool]) -> None:
            assert "queue.lock.json" not in night.bench.locks() or note.kind is NoteKind.WAITING
            notes.extend([note] if note.kind is NoteKind.AUTO_ENDED else [])

    night.watch = lambda status: ControlFiles(night.bench.root).ask_stop(wish) if status.running else None
    night.auto(night.engine(notifier=Notes()))
    ended = "Auto-run has ended: 0 done, 1 waiting for you, 3 not reached"
    assert [(note.reason_code, note.title) for note in notes] == [("AUTO_STOPPED_BY_PERSON", ended)]


# --- a person's stop -------------------------------------------------------------------------------------------------


@pytest.mark.spec("AUT-3", "LCK-8")
def test_a_stop_after_the_run_lets_it_end(night: Night) -> None:
    control = ControlFiles(night.bench.root)

    def ask_stop(call: AgentCall, should_stop: Callable[[], bool]) -> AgentReply:
        control.ask_stop(StopRequest.AFTER_RUN)
        assert not should_stop()
        return done(call, should_stop)

    night.answers["RQ-1"] = ask_stop
    summary = night.auto()
    assert night.ran == ["RQ-1"]
    assert results(summary) == [("RQ-1", "awaiting_acceptance", None)]
    assert night.states == ["selecting", "running", "stopping", "stopped"]
    assert_tidy(night, "stopped", "AUTO_STOPPED_BY_PERSON")
    assert [each.text for each in summary.unreached] == ["not reached before auto-run ended"] * 3


@pytest.mark.spec("AUT-3", "RUN-12", "LCK-8")
def test_a_stop_now_cancels_the_run_which_is_no_failure(night: Night) -> None:
    control = ControlFiles(night.bench.root)
    night.answers["RQ-2"] = first(lambda: control.ask_stop(StopRequest.NOW), until_stopped)
    summary = night.auto()
    assert results(summary)[1] == ("RQ-2", "cancelled", "CANCELLED")
    assert (summary.session.failed_in_a_row, summary.session.needs_input_in_a_row) == (0, 0)
    assert_tidy(night, "stopped", "AUTO_STOPPED_BY_PERSON")
    waiting = {each.request_id: typed(each.action)[0] for each in summary.waiting}
    assert waiting == {"RQ-1": "aiflow accept RQ-1", "RQ-2": "aiflow resume RQ-2"}
    assert night.bench.stage("RQ-2")["state"] == "NEEDS_INPUT"


@pytest.mark.spec("RUN-12", "AUT-2")
def test_cancelling_one_run_does_not_stop_the_night(night: Night) -> None:
    control = ControlFiles(night.bench.root)

    def cancelled(call: AgentCall, should_stop: Callable[[], bool]) -> AgentReply:
        control.ask_cancel(call.run_id)
        return until_stopped(call, should_stop)

    night.answers |= {"RQ-1": cancelled, "RQ-2": cancelled}
    assert night.auto().session.reason_code == NOTHING
    assert night.ran == ["RQ-1", "RQ-2", "RQ-3", "RQ-4"]


@pytest.mark.spec("AUT-3")
def test_a_stop_that_was_asked_of_an_earlier_one_is_forgotten(night: Night) -> None:
    ControlFiles(night.bench.root).ask_stop(StopRequest.NOW)
    assert night.auto(session_runs=1).session.reason_code == "AUTO_RUNS_LIMIT"
    assert night.ran == ["RQ-1"]


# --- starts that do not come about -----------------------------------------------------------------------------------


@pytest.mark.spec("AUT-2")
def test_a_start_that_fails_counts_as_failed_and_is_not_tried_again(night: Night) -> None:
    (night.bench.root / "runs").mkdir()
    (night.bench.root / "runs/RQ-1").write_text("in the way")
    summary = night.auto()
    assert results(summary) == [("RQ-1", "failed", "IO_ERROR")]
    assert summary.session.results[0].run_id is None
    assert (night.ran, summary.session.runs, summary.session.not_again) == ([], 0, frozenset({"RQ-1"}))
    assert_tidy(night, "stopped", "AUTO_FAILED_LIMIT")
    told = summary.unreached[0]
    assert (told.request_id, told.reason_code, "could not be started" in told.text) == ("RQ-1", "IO_ERROR", True)
    summary = night.auto(stop_after_failed=0)
    assert night.ran == ["RQ-2", "RQ-3", "RQ-4"]
    assert [each[0] for each in results(summary)] == ["RQ-1", "RQ-2", "RQ-3", "RQ-4"]
    assert_tidy(night, "completed", NOTHING)


@pytest.mark.spec("AUT-2")
def test_a_race_that_was_lost_is_skipped(night: Night) -> None:
    def withdraw(status: AutoStatus) -> None:
        if status.running is not None and status.running.request_id == "RQ-1" and not night.ran:
            night.bench.add_request("RQ-1", status="draft")

    night.watch = withdraw
    summary = night.auto()
    assert night.ran == ["RQ-2", "RQ-3", "RQ-4"]
    assert (summary.session.failed_in_a_row, len(results(summary))) == (0, 3)
    assert night.decisions()[0] == ("RQ-1", None)


@pytest.mark.spec("AUT-2", "RUN-14")
def test_a_request_that_is_never_to_be_had_counts_as_a_start_that_failed(night: Night) -> None:
    engine = night.engine()

    class Lying:
        def __getattr__(self, name: str) -> Any:
            return getattr(engine.source, name)

        def load(self, request_id: RequestId) -> Request:
            request = engine.source.load(request_id)
            return request._replace(status=RequestStatus.DRAFT) if request_id == "RQ-1" else request

    lying: Any = Lying()
    summary = night.auto(replace(engine, source=lying), stop_after_failed=2)
    assert results(summary)[0] == ("RQ-1", "failed", "NOT_READY")
    assert [request_id for request_id, _ in night.decisions()] == ["RQ-1"] * 3 + ["RQ-2", "RQ-3", "RQ-4", None]


RAN_ALREADY = "already ran in this auto-run, but is ready again: the next auto-run runs it once more"


@pytest.mark.spec("AUT-2", "RUN-14")
def test_a_request_that_becomes_ready_by_itself_is_not_run_again(night: Night) -> None:
    night.answers["RQ-1"] = first(lambda: night.bench.add_request("RQ-1"))
    summary = night.auto(session_runs=9)
    assert night.ran == ["RQ-1", "RQ-2", "RQ-3", "RQ-4"]
    assert summary.session.reason_code == NOTHING
    assert [(each.request_id, each.text) for each in summary.unreached] == [("RQ-1", RAN_ALREADY)]


@pytest.mark.spec("AUT-2", "REQ-6", "RUN-14")
def test_what_a_person_sends_back_is_run_again_within_bounds(night: Night) -> None:
    engine, one = night.engine(), RequestId("RQ-1")

    def send_it_back(status: AutoStatus) -> None:
        latest = engine.runs.latest([one]).get(one)
        if status.session.results[-1:] and latest is not None and latest.state is RunState.DONE:
            run = engine.runs.load(one, latest.run_id)
            assert run is not None
            send_back(engine, run, "Not like this.")

    night.watch = send_it_back
    summary = night.auto(session_runs=9)
    assert night.ran == ["RQ-1", "RQ-1", "RQ-1", "RQ-2", "RQ-3", "RQ-4"]
    assert [(each.request_id, each.text) for each in summary.unreached] == [("RQ-1", RAN_ALREADY)]


# --- beside others ---------------------------------------------------------------------------------------------------


def hold(root: Path) -> Lease:
    lease = LockTaking(str(root), 60).acquire_request(RequestId("OTHER"), "RUN-20260101-000000-000001")
    assert not isinstance(lease, Lock)
    return lease


@pytest.mark.spec("AUT-2", "LCK-7", "SEL-7")
def test_it_says_when_it_waits_for_whoever_is_only_about_to_start_something(night: Night) -> None:
    turn = LockTaking(str(night.bench.root), 60).acquire_turn()
    assert not isinstance(turn, Lock)
    said: list[str | None] = []

    def watch(status: AutoStatus) -> None:
        if status.session.state is AutoRunState.WAITING:
            said.append(why_still(status, Texts("en")))
            turn.release()

    night.watch = watch
    night.auto(session_runs=1)
    assert said == [f"Waiting for a runner that is about to start a run: {describe_holder(turn.lock)}"]
    assert night.ran == ["RQ-1"]


@pytest.mark.spec("AUT-2", "LCK-7")
@pytest.mark.parametrize("is_race", [False, True])
def test_it_waits_while_another_run_is_in_progress(night: Night, is_race: bool) -> None:
    held: list[Lease] = [] if is_race else [hold(night.bench.root)]
    waited: list[str | None] = []

    def watch(status: AutoStatus) -> None:
        if is_race and not held and status.running is not None:
            held.append(hold(night.bench.root))
        if status.session.state is AutoRunState.WAITING:
            waited.append(status.waits_for)
            held[0].release()

    night.watch = watch
    summary = night.auto(session_runs=1)
    assert results(summary) == [("RQ-1", "awaiting_acceptance", None)]
    assert len(waited) == 1
    assert "RUN-20260101-000000-000001" in str(waited[0])
    assert night.states[:3] == ["selecting", *(["running"] if is_race else []), "waiting", "selecting"][:3]
    assert night.decisions() == [("RQ-1", None)] * (2 if is_race else 1)


@pytest.mark.spec("AUT-3", "LCK-7")
def test_a_stop_ends_the_wait_for_another_run_at_once(night: Night) -> None:
    lease = hold(night.bench.root)

    def watch(status: AutoStatus) -> None:
        if status.session.state is AutoRunState.WAITING:
            ControlFiles(night.bench.root).ask_stop(StopRequest.AFTER_RUN)

    night.watch = watch
    assert night.auto().session.reason_code == "AUTO_STOPPED_BY_PERSON"
    assert night.ran == []
    lease.release()
    assert_tidy(night, "stopped", "AUTO_STOPPED_BY_PERSON")


@pytest.mark.spec("AUT-1", "LCK-3")
def test_a_run_that_loses_its_lock_counts_as_failed_and_is_not_tried_again(night: Night) -> None:
    locks = LockTaking(str(night.bench.root), 60)

    def broken_into(call: AgentCall, should_stop: Callable[[], bool]) -> AgentReply:
        locks.break_lock(RequestId("RQ-1"))
        return until_stopped(call, should_stop)

    night.answers["RQ-1"] = broken_into
    summary = night.auto(stop_after_failed=2)
    assert results(summary)[0] == ("RQ-1", "failed", "LOCK_LOST")
    assert summary.session.usage.calls == 2 + 3 * 3, "what its agents used counts for the session's ceilings"
    assert summary.session.not_again == {"RQ-1"}
    assert night.ran == ["RQ-1", "RQ-2", "RQ-3", "RQ-4"]
    assert "RQ-1" in {each.request_id for each in summary.waiting}


@pytest.mark.spec("AUT-1", "LCK-3", "LCK-4")
@pytest.mark.parametrize("is_taken", [False, True])
def test_it_ends_its_run_and_then_stops_when_the_queue_is_lost(night: Night, is_taken: bool) -> None:
    locks = LockTaking(str(night.bench.root), 60)
    records = AutoFile(night.bench.root)
    other: list[Any] = []

    def lose(call: AgentCall, should_stop: Callable[[], bool]) -> AgentReply:
        locks.break_lock(None)
        if is_taken:
            other.append(locks.acquire_queue())
            records.save(AutoSession(started_at=datetime.now(UTC), runs=77))
        time.sleep(0.6)
        assert not should_stop(), "the run itself is not to end"
        return done(call, should_stop)

    night.answers["RQ-1"] = lose
    summary = night.auto()
    assert results(summary) == [("RQ-1", "awaiting_acceptance", None)]
    assert (summary.session.state, summary.session.reason_code) == ("stopped", "LOCK_LOST")
    if is_taken:
        assert night.bench.locks() == ["queue.lock.json"], "the other's lock stays"
        assert night.record.runs == 77, "and so does its record"
        other[0].release()
    else:
        assert_tidy(night, "stopped", "LOCK_LOST")


@pytest.mark.spec("AUT-1", "LCK-3")
def test_the_queue_lock_is_kept_alive_through_a_long_run(night: Night) -> None:
    night.bench.configure("[locks]\nttl_seconds = 1")
    path = night.bench.root / ".aiflow/locks/queue.lock.json"
    fresh: list[bool] = []

    def work_long(call: AgentCall, should_stop: Callable[[], bool]) -> AgentReply:
        until = time.monotonic() + 1.7
        while time.monotonic() < until and not should_stop():
            time.sleep(0.1)
        expires_at = json.loads(path.read_text())["expires_at"]
        fresh.append(datetime.fromisoformat(expires_at) > datetime.now(UTC))
        return done(call, should_stop)

    night.answers["RQ-1"] = work_long
    night.auto(session_runs=1)
    assert fresh == [True]


# --- what goes wrong -------------------------------------------------------------------------------------------------


class Defect:
    """A journal that breaks at the third entry of a kind."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def append(self, activity: Activity) -> None:
        if activity.actor == "auto_run" and activity.kind == "decision":
            raise self.error


@pytest.mark.spec("AUT-1", "ERR-3", "LCK-6")
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("a defect"), "INTERNAL_ERROR"),
        (OSError(28, "full"), "DISK_FULL"),
        (EnvironmentProblemError(path="x"), "IO_ERROR"),
        (KeyboardInterrupt(), "INTERNAL_ERROR"),
    ],
)
def test_whatever_goes_wrong_the_lock_is_given_back_and_the_record_says_so(
    night: Night, error: Exception, reason: str
) -> None:
    # Trouble with the machine is an end like others; a defect is shown as one.
    is_trouble = isinstance(error, (OSError, AiflowError))
    with contextlib.nullcontext() if is_trouble else pytest.raises(type(error)):
        night.auto(night.engine(journal=Defect(error)))
    assert_tidy(night, "stopped", reason)


@pytest.mark.spec("REQ-7", "AUT-1")
def test_a_backlog_that_goes_away_ends_it_with_a_reason(night: Night) -> None:
    night.answers["RQ-1"] = first(lambda: shutil.rmtree(night.bench.root / "requests"))
    assert night.auto().session.reason_code == "REQUESTS_DIR_MISSING"
    assert_tidy(night, "stopped", "REQUESTS_DIR_MISSING")


@pytest.mark.spec("REQ-7")
def test_a_state_folder_that_is_cleaned_away_is_a_lost_lock(night: Night) -> None:
    night.answers["RQ-1"] = first(lambda: shutil.rmtree(night.bench.root / ".aiflow"))
    summary = night.auto()
    assert (night.ran, summary.session.reason_code) == (["RQ-1"], "LOCK_LOST")
    assert results(summary) == [("RQ-1", "failed", "LOCK_LOST")]


# --- waiting for work ------------------------------------------------------------------------------------------------


@pytest.mark.spec("AUT-2", "AUT-3")
def test_watching_it_waits_for_new_requests_until_it_is_stopped(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_run_module, "WATCH_SECONDS", 0.05)
    waits: list[int] = []

    def watch(status: AutoStatus) -> None:
        if status.session.state is AutoRunState.WAITING:
            waits.append(status.session.runs)
            if len(waits) == 1:
                night.bench.add_request("NEW")
            else:
                ControlFiles(night.bench.root).ask_stop(StopRequest.AFTER_RUN)

    night.watch = watch
    summary = night.auto(is_watching=True)
    assert night.ran == ["RQ-1", "RQ-2", "RQ-3", "RQ-4", "NEW"]
    assert waits == [4, 5]
    assert night.states[-4:] == ["selecting", "waiting", "stopping", "stopped"]
    assert summary.session.reason_code == "AUTO_STOPPED_BY_PERSON"
    assert [reason for _, reason in night.decisions()].count(NOTHING) == 2, "each wait is one decision"
    assert_tidy(night, "stopped", "AUTO_STOPPED_BY_PERSON")


@pytest.mark.spec("AUT-3")
def test_a_ceiling_ends_the_wait_too(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_run_module, "WATCH_SECONDS", 0.05)
    for number in (1, 2, 3, 4):
        night.bench.add_request(f"RQ-{number}", status="draft")
    now = [datetime.now(UTC)]

    def clock() -> datetime:
        now[0] += timedelta(seconds=7)
        return now[0]

    summary = night.auto(night.engine(time=SystemTime(clock)), is_watching=True, session_minutes=2)
    assert summary.session.reason_code == "AUTO_MINUTES_LIMIT"
    assert "waiting" in night.states


# --- what an earlier process left (AUT-4) ----------------------------------------------------------------------------


def leave(night: Night, **fields: Any) -> AutoSession:
    """Leave a session as a process leaves it that is killed."""
    began = datetime.now(UTC) - timedelta(hours=9)
    left = AutoSession(
        started_at=began,
        began_at=began,
        changed_at=began + timedelta(minutes=5),
        runs=3,
        done=2,
        state=AutoRunState.RUNNING,
    )
    left = replace(left, **fields)
    AutoFile(night.bench.root).save(left)
    return left


@pytest.mark.spec("AUT-4", "AUT-3")
@pytest.mark.parametrize("is_orphan", [False, True])
def test_what_it_had_begun_and_ended_meanwhile_counts_once(night: Night, is_orphan: bool) -> None:
    run = start_run(night.engine(), RequestId("RQ-1"))
    if is_orphan:  # killed between the run's end and its request
        night.bench.add_request("RQ-1", status="running")
    left = leave(night, current=Started("RQ-1"))
    night.ran.clear()
    summary = night.auto(session_runs=5)
    assert night.ran == ["RQ-2"], "one of five was left"
    assert (summary.session.results[0].request_id, summary.session.results[0].run_id) == ("RQ-1", run.run_id)
    assert (summary.session.runs, summary.session.done) == (5, 4)
    assert summary.session.began_at == left.began_at
    assert summary.session.spent == timedelta(minutes=5)
    assert [each.request_id for each in summary.interrupted] == ["RQ-1"]
    assert [status.interrupted for status in night.seen if status.interrupted] == [summary.interrupted]
    recovery = [e for e in night.bench.journal() if (e["kind"], e["actor"]) == ("recovery", "auto_run")]
    assert [(e["reason_code"], e["request_id"], e["data"]["runs"]) for e in recovery] == [
        ("PROCESS_CRASHED", "RQ-1", 3)
    ]
    assert night.bench.status("RQ-1") == "blocked"


@pytest.mark.spec("AUT-4", "REQ-6")
def test_what_is_accepted_only_now_counts_as_accepted(night: Night) -> None:
    run = start_run(night.engine(), RequestId("RQ-1"))
    night.bench.add_request("RQ-1", status="running")  # killed between the run's end and its acceptance
    night.bench.add_request("RQ-4", depends_on="[RQ-3]")
    leave(night, current=Started("RQ-1"))
    summary = night.auto(night.engine("accept=auto"))
    assert results(summary) == [(request_id, "accepted", None) for request_id in ALL]
    assert summary.session.results[0].run_id == run.run_id
    assert (summary.session.runs, summary.session.done) == (7, 6)
    assert (summary.waiting, [night.bench.status(request_id) for request_id in ALL]) == ((), ["done"] * 4)


@pytest.mark.spec("AUT-4")
def test_what_it_had_begun_and_never_came_about_does_not_count(night: Night) -> None:
    run = start_run(night.engine(), RequestId("RQ-1"))
    night.bench.add_request("RQ-1", status="draft")
    leave(night, current=Started("RQ-1", run.run_id))
    summary = night.auto(session_runs=4)
    assert (summary.session.runs, summary.session.done) == (4, 3)
    assert [each.request_id for each in summary.session.results] == ["RQ-2"]


@pytest.mark.spec("AUT-4")
@pytest.mark.parametrize("state", ["stopped", "completed", "idle"])
def test_a_session_that_had_ended_is_over(night: Night, state: str) -> None:
    leave(night, state=AutoRunState(state), failed_in_a_row=1, not_again=frozenset({"RQ-1"}))
    summary = night.auto(session_runs=1)
    assert night.ran == ["RQ-1"]
    assert (summary.session.runs, summary.session.spent) == (1, timedelta())
    assert summary.interrupted == ()


@pytest.mark.spec("AUT-4", "AUT-3")
def test_a_limit_that_was_reached_before_the_crash_still_holds(night: Night) -> None:
    leave(night, state=AutoRunState.SELECTING, failed_in_a_row=1)
    assert night.auto().session.reason_code == "AUTO_FAILED_LIMIT"
    assert night.ran == []
    assert night.auto(session_runs=1).session.runs == 1


@pytest.mark.spec("RUN-11", "AUT-2", "AUT-3", "REQ-5")
def test_a_request_whose_run_was_lost_is_blocked_and_named_and_neither_ends_nor_shortens_the_night(
    night: Night,
) -> None:
    night.bench.add_request("RQ-3", status="running")
    summary = night.auto(stop_after_failed=1, stop_after_needs_input=1, session_runs=3)
    assert results(summary)[0] == ("RQ-3", "failed", "RUN_LOST")
    assert [request_id for request_id, *_ in results(summary)] == ["RQ-3", "RQ-1", "RQ-2", "RQ-4"]
    assert (summary.session.runs, summary.session.failed_in_a_row) == (3, 0)
    assert [each.request_id for each in summary.interrupted] == ["RQ-3"]
    assert night.bench.status("RQ-3") == "blocked"
    told = {each.request_id: (each.reason_code, *typed(each.action)) for each in summary.waiting}
    assert told["RQ-3"] == ("RUN_LOST", "aiflow set RQ-3 status=ready")


@pytest.mark.spec("AUT-2", "AUT-3", "RUN-14")
def test_one_that_stays_running_though_its_run_was_lost_does_not_keep_it_busy_for_ever(night: Night) -> None:
    night.bench.add_request("RQ-3", status="running")
    engine = night.engine()

    class Stuck:
        def __getattr__(self, name: str) -> Any:
            return getattr(engine.source, name)

        def settle(self, request_id: RequestId, run_id: str, outcome: RunOutcome) -> Settled | Dropped:
            stays = request_id == "RQ-3"
            return Dropped(RequestStatus.RUNNING) if stays else engine.source.settle(request_id, run_id, outcome)

    stuck: Any = Stuck()
    summary = night.auto(replace(engine, source=stuck), stop_after_failed=0)
    assert night.ran == ["RQ-1", "RQ-2", "RQ-4"]
    assert summary.session.not_again == {"RQ-3"}


@pytest.mark.spec("RUN-11", "AUT-3")
def test_a_run_beside_it_that_crashes_in_the_night_is_recovered(night: Night) -> None:
    def crash() -> None:
        night.bench.add_request("RQ-3", status="running")

    night.answers["RQ-1"] = first(crash)
    summary = night.auto(stop_after_failed=0)
    assert [request_id for request_id, *_ in results(summary)] == ["RQ-1", "RQ-3", "RQ-2", "RQ-4"]


@pytest.mark.spec("RUN-14", "AUT-2")
def test_a_request_that_cannot_be_set_right_does_not_keep_it_busy_for_ever(night: Night) -> None:
    engine = night.engine()
    start_run(engine, RequestId("RQ-1"))
    night.bench.add_request("RQ-1", status="running")
    night.ran.clear()

    class Stuck:
        def __getattr__(self, name: str) -> Any:
            return getattr(engine.source, name)

        def settle(self, request_id: RequestId, run_id: str, outcome: RunOutcome) -> Settled | Dropped:
            if request_id == "RQ-1":
                return Dropped(RequestStatus.RUNNING)
            return engine.source.settle(request_id, run_id, outcome)

    stuck: Any = Stuck()
    summary = night.auto(replace(engine, source=stuck), stop_after_failed=0)
    assert night.ran == ["RQ-2", "RQ-3", "RQ-4"]
    assert summary.session.not_again == {"RQ-1"}


@pytest.mark.spec("SEL-7", "AUT-4", "RUN-11")
def test_what_is_said_to_be_next_is_what_the_next_start_goes_on_with(night: Night) -> None:
    def killed(_call: AgentCall, _should_stop: Callable[[], bool]) -> AgentReply:
        raise KeyboardInterrupt

    night.answers.update({"RQ-4": ask, "RQ-3": killed})
    cut = start_run(night.engine(), RequestId("RQ-4"))
    night.engine().runs.save(replace(cut, error=RunError("AUTO_CUT_OFF", "")))
    with pytest.raises(KeyboardInterrupt):
        start_run(night.engine(), RequestId("RQ-3"))
    night.bench.add_request("RQ-2", status="running")  # lost: the next start blocks it and runs nothing
    left = leave(night, not_again=frozenset({"RQ-9"}))
    standing = look_around(night.engine(), AutoFile(night.bench.root), night.engine().voice.texts)
    said = [request.id for request in (*standing.continued, *standing.selection.runnable)]
    told = night.bench.aiflow("next").stdout
    assert [line[:10] for line in told.splitlines() if ": RQ-" in line] == ["Next: RQ-3", "Then: RQ-4", "Then: RQ-1"]
    assert "RQ-1 is runnable and number 3 in the queue." in night.bench.aiflow("why", "RQ-1").stdout
    assert [line.split()[0] for line in night.bench.aiflow("list").stdout.splitlines() if "▶" in line] == []
    night.answers.clear()
    began: list[str] = []
    night.watch = lambda status: began.append(status.running.request_id) if status.running else None
    assert night.auto().session.began_at == left.began_at
    assert said == ["RQ-3", "RQ-4", "RQ-1"]
    assert [each for each in dict.fromkeys(began) if each != "RQ-2"] == said


# --- the summary -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("AUT-3", "REQ-6")
def test_the_summary_names_everything_that_waits_with_the_way_on(night: Night) -> None:
    engine = night.engine()
    run = start_run(engine, RequestId("RQ-4"))
    told = "both changed app.txt\nand more"
    engine.runs.save(replace(run, error=RunError("MERGE_CONFLICT", told)))
    (night.bench.root / "requests/BROKEN.md").write_text("---\nstatus: wip\n---\n\n# Broken\n")
    night.bench.add_request("BY-HAND", status="blocked")
    night.answers["RQ-1"] = ask
    summary = night.auto(session_runs=1)
    waiting = {each.request_id: each for each in summary.waiting}
    assert set(waiting) == {"RQ-1", "RQ-4"}
    assert (waiting["RQ-1"].text, waiting["RQ-1"].is_question) == ("What about RQ-1?", True)
    assert typed(waiting["RQ-1"].action) == ('aiflow resume RQ-1 --answer "…"',)
    conflict = waiting["RQ-4"]
    assert (conflict.reason_code, *typed(conflict.action)) == ("MERGE_CONFLICT", "aiflow resume RQ-4 --update")
    assert conflict.text.endswith(": both changed app.txt")
    unreached = {each.request_id: each for each in summary.unreached}
    assert set(unreached) == {"RQ-2", "RQ-3", "BROKEN"}
    assert unreached["BROKEN"].reason_code == "REQUEST_INVALID"
    assert "requests/BROKEN.md" in unreached["BROKEN"].text
    assert summary.done == ()


def test_a_run_that_stopped_while_its_request_stayed_ready_is_named_once(night: Night) -> None:
    night.answers["RQ-1"] = first(lambda: night.bench.add_request("RQ-1"), ask)
    summary = night.auto()
    assert [each.request_id for each in summary.waiting].count("RQ-1") == 1
    assert summary.unreached == ()
    assert night.bench.stage("RQ-1")["state"] == RunState.NEEDS_INPUT


@pytest.fixture(autouse=True)
def nothing_stays(bench: Bench) -> Iterator[None]:
    """No lock outlives a test."""
    yield
    assert bench.locks() == []


# --- ends that nobody asked for --------------------------------------------------------------------------------------


@pytest.mark.spec("AUT-3")
def test_an_end_by_trouble_is_summed_up_and_told_like_any_other(night: Night) -> None:
    notes: list[Note] = []
    shown: list[Summary] = []

    class Notes:
        def send(self, note: Note, _interrupted: Callable[[], bool]) -> None:
            if note.kind is NoteKind.AUTO_ENDED:
                assert shown  # a person in front of it does not wait for the one who is not
                notes.append(note)

    def lose(call: AgentCall, should_stop: Callable[[], bool]) -> AgentReply:
        (night.bench.root / "requests").rename(night.bench.root / "away")
        return ask(call, should_stop)

    night.answers |= {"RQ-2": lose}
    night.finish = shown.append
    summary = night.auto(night.engine(notifier=Notes()))
    assert (summary.session.state.value, summary.session.reason_code) == ("stopped", "REQUESTS_DIR_MISSING")
    assert [(each.request_id, *typed(each.action)) for each in summary.waiting] == [
        ("RQ-1", "aiflow accept RQ-1"),
        ("RQ-2", 'aiflow resume RQ-2 --answer "…"'),
    ]
    assert dict(summary.facts)["path"].endswith("requests")
    assert [note.reason_code for note in notes] == ["REQUESTS_DIR_MISSING"]
    assert night.bench.locks() == []


@pytest.mark.spec("AUT-3", "REQ-7")
def test_what_was_lost_with_its_files_waits_with_the_way_on(night: Night) -> None:
    path = night.bench.root / "requests/RQ-1.md"
    path.write_text(path.read_text().replace("status: ready", "status: running"))
    summary = night.auto()
    told = [(each.request_id, each.reason_code, *typed(each.action)) for each in summary.waiting]
    assert told[0] == ("RQ-1", "RUN_LOST", "aiflow set RQ-1 status=ready")


@pytest.mark.spec("LCK-8", "AUT-3")
def test_a_stop_asked_since_the_queue_was_taken_counts_and_an_older_one_does_not(night: Night) -> None:
    control = ControlFiles(night.bench.root)
    control.ask_stop(StopRequest.NOW)
    assert night.auto(session_runs=1).session.reason_code == "AUTO_RUNS_LIMIT"
    engine = night.engine()
    taken = engine.locks.acquire_queue

    def take() -> Any:
        lease = taken()
        control.ask_stop(StopRequest.AFTER_RUN)
        return lease

    engine.locks.acquire_queue = take  # type: ignore[method-assign]
    assert night.auto(engine).session.reason_code == "AUTO_STOPPED_BY_PERSON"
