"""A backlog of files and of tickets that are no files: one order, one engine, every command (HOUSE: seams for issues).

The tickets are in memory, so the program runs inside the test's own process; git, the files and the agents are real.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from aiflow.adapters.markdown_requests.source import FileSource
from aiflow.adapters.markdown_requests.store import MarkdownRequests
from aiflow.adapters.memory.tickets import MemoryTickets
from aiflow.cli.main import run as run_program
from aiflow.cli.session import current_texts, use_texts
from aiflow.domain.agents.call import AgentCall, AgentReply, Brief
from aiflow.domain.backlog.metadata import Change
from aiflow.domain.claims import Claimed, Lost
from aiflow.domain.lifecycle import RunState
from aiflow.domain.request import Priority, Request, RequestId, RequestStatus
from aiflow.domain.runs.run import Run
from aiflow.errors import AiflowError, ConflictError
from aiflow.messages import Texts
from aiflow.usecases.doctor.check_fully import _mark
from aiflow.usecases.engine import Engine
from aiflow.usecases.runs.accept import accept_run, send_back
from aiflow.usecases.runs.resume import ResumeWish, resume_run
from aiflow.usecases.runs.start import start_run
from e2e.bench import Bench
from e2e.night import Night, ask, done

MEM_1, MEM_2, RQ_1 = RequestId("MEM-1"), RequestId("MEM-2"), RequestId("RQ-1")
URL = "https://tickets.example"
READY, RUNNING, BLOCKED = RequestStatus.READY, RequestStatus.RUNNING, RequestStatus.BLOCKED


@pytest.fixture
def tickets(bench: Bench) -> MemoryTickets:
    """Give two tickets beside RQ-1 and RQ-2: MEM-1 before all, RQ-2 behind MEM-2, MEM-2 behind RQ-1."""
    made = MemoryTickets()
    made.add(1, "The first ticket", "Do the first.", priority=Priority.P0)
    made.add(2, "The second ticket", "Do the second.", priority=Priority.P0, depends_on=(RQ_1,))
    bench.add_request("RQ-2", priority="P0", depends_on="[MEM-2]")
    bench.commit()
    return made


@pytest.fixture
def night(bench: Bench, tickets: MemoryTickets) -> Night:
    """Give the engine of both sources, with agents that answer at once."""
    return Night(bench, more_sources=(tickets,))


class Terminal:
    """The program, called in this process with one more source."""

    def __init__(self, bench: Bench, tickets: MemoryTickets, capfd: pytest.CaptureFixture[str]) -> None:
        self.root, self.tickets, self.capfd = str(bench.root), tickets, capfd

    def __call__(self, *argv: str, code: int = 0) -> str:
        """Call a command and return what it prints."""
        self.capfd.readouterr()
        assert run_program(["-C", self.root, *argv], [self.tickets]) == code, self.capfd.readouterr()
        out, err = self.capfd.readouterr()
        return out or err

    def json(self, *argv: str, code: int = 0) -> Any:
        """Call a command with `--json`."""
        return json.loads(self(*argv, "--json", code=code))


@pytest.fixture
def aiflow(
    bench: Bench, tickets: MemoryTickets, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Terminal]:
    """Give the program, in English and in the environment of the bench."""
    before = current_texts()
    monkeypatch.setattr(os, "environ", dict(bench.aiflow.environ))
    use_texts(Texts("en"))
    made = Terminal(bench, tickets, capfd)
    yield made
    use_texts(before)


# --- what is shown ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("SEL-2", "SEL-3", "SEL-5", "SEL-6")
def test_files_and_tickets_are_one_backlog_in_one_order(aiflow: Terminal) -> None:
    listed = aiflow.json("list")["requests"]
    assert [each["request_id"] for each in listed] == ["RQ-2", "MEM-1", "MEM-2", "RQ-1"]
    assert [each["path"] for each in listed] == ["requests/RQ-2.md", f"{URL}/1", f"{URL}/2", "requests/RQ-1.md"]
    chosen = aiflow.json("next")
    assert (chosen["next"]["request_id"], chosen["next"]["path"]) == ("MEM-1", f"{URL}/1")
    assert {each["request_id"]: each["reason_code"] for each in chosen["excluded"]} == {
        "RQ-2": "DEPENDS_NOT_DONE",
        "MEM-2": "DEPENDS_NOT_DONE",
    }
    stations = aiflow.json("why", "RQ-2")["stations"]
    assert [each["request_id"] for each in stations] == ["RQ-2", "MEM-2", "RQ-1"]
    assert [each["request_id"] for each in aiflow.json("forecast")["order"]] == ["MEM-1", "RQ-1", "MEM-2", "RQ-2"]
    shown = aiflow.json("show", "MEM-1")
    assert (shown["path"], shown["body"], shown["runs"]) == (f"{URL}/1", "Do the first.", [])
    for argv in (("show", "MEM-1"), ("next",)):
        assert f"{URL}/1" in aiflow(*argv)
    assert "MEM-1" in aiflow("list")
    assert "MEM-1" in aiflow("why", "MEM-1")
    assert aiflow.json("runs", "MEM-1") == {"runs": []}


@pytest.mark.spec("SEL-5", "SEL-7")
def test_what_is_worked_on_elsewhere_is_shown_with_its_holder_and_is_not_interrupted(
    aiflow: Terminal, tickets: MemoryTickets
) -> None:
    tickets.hold_elsewhere(MEM_1, "RUN-ELSEWHERE")
    assert "RUN-ELSEWHERE" in aiflow("list")
    assert "RUN-ELSEWHERE" in aiflow("why", "MEM-1")
    [station] = aiflow.json("why", "MEM-1")["stations"]
    assert [each["reason_code"] for each in station["barriers"]] == ["NOT_READY", "REQUEST_LOCKED"]
    aiflow("doctor", "--full")
    assert (tickets.status(MEM_1), tickets.tickets[MEM_1].holder) == (RUNNING, "RUN-ELSEWHERE")


@pytest.mark.parametrize("language", ["en", "ja"])
def test_what_is_no_file_is_edited_where_it_is_kept(aiflow: Terminal, tickets: MemoryTickets, language: str) -> None:
    use_texts(Texts(language))
    error = aiflow.json("set", "MEM-1", "priority=P3", code=2)["error"]
    assert (error["reason_code"], error["context"]["path"]) == ("EDITED_ELSEWHERE", f"{URL}/1")
    assert f"{URL}/1" in error["actions"][0]
    assert f"{URL}/1" in aiflow("set", "MEM-1", "priority=P3", code=2)
    assert tickets.load(MEM_1).priority == "P0"
    assert aiflow.json("set", "RQ-1", "priority=P3")["changed"] is True
    assert aiflow.json("set", "MEM-9", "priority=P3", code=2)["error"]["reason_code"] == "REQUEST_NOT_FOUND"
    assert aiflow.json("new", "Mine", "--id", "MEM-9", "-b", "x", code=2)["error"]["reason_code"] == "INPUT_INVALID"


# --- runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("REQ-5", "REQ-6", "SEL-1")
def test_a_ticket_is_run_sent_back_run_again_and_accepted(
    bench: Bench, aiflow: Terminal, tickets: MemoryTickets
) -> None:
    first = aiflow.json("run", "MEM-1")
    ticket = tickets.tickets[MEM_1]
    assert (first["state"], ticket.request.status, ticket.holder) == ("DONE", BLOCKED, first["run_id"])
    assert [*dict.fromkeys(ticket.states)] == ["PLANNING", "IMPLEMENTING", "TESTING", "REPORTING", "DONE"]
    assert bench.stage("MEM-1")["title"] == "The first ticket"
    assert aiflow.json("send-back", "MEM-1", "-m", "Shorter, please.")["request_id"] == "MEM-1"
    assert [comment.text for comment in ticket.comments] == ["Shorter, please."]
    assert ticket.comments[0].title.startswith("Sent back on ")
    assert ticket.request.status is READY
    second = aiflow.json("run", "MEM-1")
    assert (second["state"], ticket.holder) == ("DONE", second["run_id"])
    assert "Shorter, please." in json.dumps(bench.stage("MEM-1")["feedback"])
    assert [each["run_id"] for each in aiflow.json("runs", "MEM-1")["runs"]] == [second["run_id"], first["run_id"]]
    accepted = aiflow.json("accept", "MEM-1")
    assert (accepted["run_id"], ticket.request.status) == (second["run_id"], RequestStatus.DONE)
    told = [entry["data"] for entry in bench.journal() if entry["kind"] == "status_changed"]
    assert [(each["from"], each["to"]) for each in told] == [
        *(("ready", "running"), ("running", "blocked"), ("blocked", "ready")),
        *(("ready", "running"), ("running", "blocked"), ("blocked", "done")),
    ]
    assert bench.locks() == []


@pytest.mark.spec("RUN-6")
def test_a_source_refuses_to_go_on_with_a_reason_of_its_own(night: Night, tickets: MemoryTickets) -> None:
    night.answers = {"MEM-1": ask, "RQ-1": ask}
    engine = night.engine()
    stopped = start_run(engine, MEM_1)
    assert (stopped.state, tickets.status(MEM_1)) == (RunState.NEEDS_INPUT, BLOCKED)
    with pytest.raises(ConflictError) as refused:
        resume_run(engine, stopped, ResumeWish(answer="Blue."))
    assert refused.value.reason_code == "ISSUE_RETRY_ONLY"
    assert (engine.runs.load("MEM-1", stopped.run_id), tickets.status(MEM_1)) == (stopped, BLOCKED)
    of_file = start_run(engine, RQ_1)
    night.answers = {}
    assert resume_run(engine, of_file, ResumeWish(answer="Blue.")).state is RunState.DONE


@pytest.mark.spec("AUT-2", "SEL-1", "SEL-2")
def test_auto_run_works_through_both_in_one_order(night: Night, tickets: MemoryTickets) -> None:
    summary = night.auto(night.engine("accept=auto"))
    assert night.ran == ["MEM-1", "RQ-1", "MEM-2", "RQ-2"]
    assert [each.request_id for each in summary.done] == night.ran
    assert {tickets.status(each) for each in (MEM_1, MEM_2)} == {RequestStatus.DONE}
    assert {night.bench.status(each) for each in ("RQ-1", "RQ-2")} == {"done"}
    assert {"MEM-1.txt", "MEM-2.txt", "RQ-1.txt", "RQ-2.txt"} <= set(night.bench.files_at("main"))


def test_what_people_said_since_reaches_the_next_run(night: Night, tickets: MemoryTickets) -> None:
    engine = night.engine()
    first = start_run(engine, MEM_1)
    at = first.changed_at
    said = [(at - timedelta(seconds=1), "Before."), (at + timedelta(seconds=1), "Green, please.")]
    tickets.tickets[MEM_1].said += said
    send_back(engine, first, "Again.")
    heard: list[AgentCall] = []

    def listening(call: AgentCall, should_stop: Callable[[], bool]) -> AgentReply:
        heard.append(call)
        return done(call, should_stop)

    night.answers = {"MEM-1": listening}
    again = start_run(engine, MEM_1)
    assert [each.summary for each in again.feedback] == ["Again.", "Green, please."]
    assert "Green, please." in json.dumps([each.summary for each in heard[0].feedback])
    assert accept_run(engine, again).accepted_as


# --- a claim that is lost --------------------------------------------------------------------------------------------


class Contested(MemoryTickets):
    """Tickets of which another runner takes MEM-1 at the last moment."""

    def claim(self, request_id: RequestId, run_id: str) -> Claimed | Lost:
        if request_id == MEM_1 and self.tickets[MEM_1].holder is None:
            self.hold_elsewhere(request_id, "RUN-ELSEWHERE")
        return super().claim(request_id, run_id)


def nothing_is_left(bench: Bench, request_id: str) -> bool:
    folder = bench.root / "runs" / request_id
    return bench.locks() == [] and (not folder.exists() or os.listdir(folder) == [])


@pytest.mark.spec("RUN-15", "LCK-7", "AUT-2")
def test_a_start_that_loses_its_claim_leaves_no_run_and_names_the_holder(bench: Bench) -> None:
    contested = Contested()
    contested.add(1, "Wanted by two", priority=Priority.P0)
    night = Night(bench, more_sources=(contested,))
    with pytest.raises(ConflictError) as refused:
        start_run(night.engine(), MEM_1)
    assert (refused.value.reason_code, refused.value.context["holder"]) == ("REQUEST_LOCKED", "RUN-ELSEWHERE")
    assert "RUN-ELSEWHERE" in str(refused.value.context["detail"])
    assert nothing_is_left(bench, "MEM-1")
    assert night.ran == []
    # Who works on it elsewhere is let be, and auto-run goes on with what is next.
    with pytest.raises(ConflictError) as again:
        start_run(night.engine(), MEM_1)
    assert again.value.reason_code == "NOT_READY"
    assert "RUN-ELSEWHERE" in str(again.value.context["detail"])
    assert contested.tickets[MEM_1].holder == "RUN-ELSEWHERE"
    contested.tickets[MEM_1].holder = None
    contested.set_status(MEM_1, READY)
    summary = night.auto()
    assert night.ran == ["RQ-1"]
    assert (summary.session.reason_code, contested.tickets[MEM_1].holder) == ("AUTO_NOTHING_RUNNABLE", "RUN-ELSEWHERE")
    assert nothing_is_left(bench, "MEM-1")


class Archiving(FileSource):
    """Files of which a person archives one between our look and our claim."""

    def claim(self, request_id: RequestId, run_id: str) -> Claimed | Lost:
        self._files.edit(request_id, {"status": Change("archived")})
        return super().claim(request_id, run_id)


@pytest.mark.spec("REQ-3", "RUN-15")
def test_a_status_that_a_person_sets_at_the_last_moment_keeps_the_run_from_being_made(bench: Bench) -> None:
    night = Night(bench)
    with pytest.raises(ConflictError) as refused:
        start_run(night.engine(source=Archiving(MarkdownRequests(bench.root))), RQ_1)
    assert (refused.value.reason_code, refused.value.context["status"]) == ("NOT_READY", "archived")
    assert nothing_is_left(bench, "RQ-1")
    assert bench.status() == "archived"


# --- killed between the claim and the run ----------------------------------------------------------------------------


class Killed(BaseException):
    """Where a process died."""


def dying_at_create(engine: Engine) -> Engine:
    """The same engine, which dies when the claim is made and the run is not."""

    class Dying:
        def __getattr__(self, name: str) -> Any:
            return getattr(engine.runs, name)

        def create(self, _run: Run, _brief: Brief) -> None:
            raise Killed

    runs: Any = Dying()
    return replace(engine, runs=runs)


@pytest.mark.spec("RUN-11", "REQ-5")
@pytest.mark.parametrize("request_id", [MEM_1, RQ_1])
def test_a_claim_without_its_run_is_what_the_next_start_goes_on_with(
    night: Night, tickets: MemoryTickets, request_id: RequestId
) -> None:
    engine = night.engine()
    with pytest.raises(Killed):
        start_run(dying_at_create(engine), request_id)
    assert engine.source.status(request_id) is RUNNING
    assert engine.runs.all_of(request_id) == ()
    drafted = engine.runs.drafted(request_id)
    assert drafted is not None
    run = start_run(engine, request_id)
    assert (run.run_id, run.state) == (drafted[0].run_id, RunState.DONE)
    assert engine.source.status(request_id) is BLOCKED
    assert [each.run_id for each in engine.runs.all_of(request_id)] == [run.run_id]
    assert engine.runs.drafted(request_id) is None
    if request_id == MEM_1:
        assert tickets.tickets[MEM_1].holder == run.run_id


@pytest.mark.spec("RUN-11", "AUT-4")
def test_auto_run_goes_on_with_a_claim_without_its_run(night: Night) -> None:
    engine = night.engine("accept=auto")
    for request_id in (MEM_1, RQ_1):
        with pytest.raises(Killed):
            start_run(dying_at_create(engine), request_id)
    summary = night.auto(engine)
    assert sorted(each.request_id for each in summary.done) == ["MEM-1", "MEM-2", "RQ-1", "RQ-2"]
    assert Counter(night.ran) == Counter(["MEM-1", "MEM-2", "RQ-1", "RQ-2"])


@pytest.mark.spec("RUN-11", "REQ-5")
@pytest.mark.parametrize("request_id", [MEM_1, RQ_1])
@pytest.mark.parametrize("had_a_run", [True, False])
def test_a_claim_of_which_nothing_is_left_is_a_lost_run_and_never_stuck(
    night: Night, request_id: RequestId, had_a_run: bool
) -> None:
    engine = night.engine()
    if had_a_run:
        send_back(engine, start_run(engine, request_id), "Again.")
    with pytest.raises(Killed):
        start_run(dying_at_create(engine), request_id)
    engine.runs.discard(request_id)
    with pytest.raises(AiflowError, match="RUN_LOST"):
        start_run(engine, request_id)
    assert engine.source.status(request_id) is BLOCKED


@pytest.mark.spec("RUN-11")
def test_a_claim_that_another_run_took_meanwhile_is_let_go(night: Night, tickets: MemoryTickets) -> None:
    engine = night.engine()
    with pytest.raises(Killed):
        start_run(dying_at_create(engine), MEM_1)
    tickets.hold_elsewhere(MEM_1, "RUN-ELSEWHERE")
    with pytest.raises(ConflictError) as refused:
        start_run(engine, MEM_1)
    assert refused.value.reason_code == "NOT_READY"
    assert (tickets.status(MEM_1), tickets.tickets[MEM_1].holder) == (RUNNING, "RUN-ELSEWHERE")
    assert nothing_is_left(night.bench, "MEM-1")
    assert night.ran == []


@pytest.mark.spec("RUN-11", "DOC-2")
def test_the_doctor_marks_a_run_that_was_only_drafted(night: Night, tickets: MemoryTickets) -> None:
    engine = night.engine()
    with pytest.raises(Killed):
        start_run(dying_at_create(engine), MEM_1)
    [finding] = _mark(engine)
    [run] = engine.runs.all_of(MEM_1)
    assert (finding.reason_code, finding.evidence) == ("PROCESS_CRASHED", (f"MEM-1 {run.run_id}",))
    assert (run.state, run.reason_code, tickets.status(MEM_1)) == ("NEEDS_INPUT", "PROCESS_CRASHED", BLOCKED)


# --- how often a source is asked -------------------------------------------------------------------------------------


class Counting:
    """A source that counts what it is asked."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.asked[name] += 1
        return getattr(self._source, name)


# What an issue answers by a call, and a file at once.
ONCE = {"confirm": 1, "feedback": 1}


@pytest.mark.parametrize(
    ("setting", "asked"),
    [
        ("accept=manual", {"load_all": 1, "load": 1, "body": 1, "status": 1, "claim": 1, "settle": 1, **ONCE}),
        ("accept=auto", {"load_all": 1, "load": 1, "body": 1, "status": 2, "claim": 1, "settle": 1, **ONCE}),
    ],
)
def test_a_run_from_start_to_done_reads_its_request_once(night: Night, setting: str, asked: dict[str, int]) -> None:
    engine = night.engine(setting)
    counting: Any = Counting(engine.source)
    engine = replace(engine, source=counting, backlog=engine.backlog._replace(requests=counting))
    assert start_run(engine, MEM_1).state is RunState.DONE
    del counting.asked["progress"]  # as often as the run is saved
    assert counting.asked == asked


def test_with_files_alone_there_is_nothing_between_the_engine_and_the_files(bench: Bench) -> None:
    engine = Night(bench).engine()
    assert type(engine.source) is FileSource
    assert engine.source is engine.backlog.requests
    assert type(engine.editor) is MarkdownRequests
    assert isinstance(engine.source.load(RQ_1), Request)
