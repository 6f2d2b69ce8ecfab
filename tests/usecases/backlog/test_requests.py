"""Use cases with everything in memory and a clock of the test's own."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

import pytest

from aiflow.adapters.markdown_requests.source import FileSource
from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.adapters.memory.locks import MemoryLocks
from aiflow.adapters.memory.requests import MemoryRequests
from aiflow.adapters.memory.runs import MemoryRuns
from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.agents.call import AgentReply
from aiflow.domain.backlog.metadata import Change
from aiflow.domain.backlog.selection import select_next
from aiflow.domain.lock import Lock, LockType
from aiflow.domain.queue.task import old_prompt_request_id
from aiflow.domain.request import Priority, ProblemKind, RequestId, RequestStatus
from aiflow.errors import BadInputError, ConflictError
from aiflow.usecases.backlog.create import NewRequest, create_request, file_prompt, next_id
from aiflow.usecases.backlog.edit import edit_request
from aiflow.usecases.read_backlog import BacklogSources, read_backlog
from builders import NOW, request_lock, run
from memory_engine import MemoryCheckout, MemoryProcess
from task_builders import a_prompt

A, B = RequestId("A"), RequestId("B")
READY = "---\nstatus: ready\n---\n"


def clock() -> datetime:
    return NOW


@pytest.mark.spec("SEL-1", "SEL-7")
def test_a_backlog_is_everything_selection_looks_at() -> None:
    sources = BacklogSources(
        FileSource(MemoryRequests({A: READY, B: READY, RequestId("C"): "---\nstatus: draft\n---\n"})),
        MemoryRuns({A: (run("NEEDS_INPUT"),), RequestId("C"): (run("FAILED"),)}),
        MemoryLocks(request_lock("B"), Lock(LockType.QUEUE)),
    )
    backlog = read_backlog(sources)
    assert set(backlog.runs) == {"A", "C"}
    assert [e.barrier.reason_code for e in select_next(backlog).excluded] == [
        "LATEST_RUN_NEEDS_INPUT",
        "REQUEST_LOCKED",
    ]
    few = read_backlog(sources, with_all_runs=False)
    assert set(few.runs) == {"A"}
    assert select_next(few) == select_next(backlog)


def test_a_new_request_has_an_id_of_the_day_and_is_in_the_journal() -> None:
    files, journal = MemoryRequests(), MemoryJournal()
    new = NewRequest("A title", "Text.", Priority.P0, RequestStatus.READY, ("B",), ("x",))
    assert create_request(new, files, journal, clock) == ("RQ-20260102-001", "requests/RQ-20260102-001.md")
    (request,), _ = files.load()
    assert (request.title, request.priority, request.status) == ("A title", "P0", "ready")
    assert (request.depends_on, request.labels) == (("B",), ("x",))
    assert request.created_at == request.updated_at == NOW
    assert request.missing == ()
    (entry,) = journal.entries
    assert (entry.kind, entry.actor, entry.request_id, entry.at) == (
        "request_created",
        "person",
        "RQ-20260102-001",
        NOW,
    )


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        ((), "001"),
        (("rq-20260102-001", "rq-20260102-007"), "008"),
        (("rq-20260101-009",), "001"),
        (("rq-20260102-999",), "1000"),
    ],
)
def test_the_next_id_is_one_more_than_the_largest_of_the_day(taken: tuple[str, ...], expected: str) -> None:
    assert next_id(NOW, frozenset(taken)) == f"RQ-20260102-{expected}"


@pytest.mark.spec("REQ-5")
def test_nobody_makes_a_running_request() -> None:
    files, journal = MemoryRequests({A: READY}), MemoryJournal()
    with pytest.raises(BadInputError) as caught:
        create_request(NewRequest("T", "", status=RequestStatus.RUNNING), files, journal, clock)
    assert caught.value.reason_code == "STATUS_NOT_ALLOWED"
    with pytest.raises(BadInputError) as caught:
        edit_request(A, "status", Change("running"), files, (journal, clock))
    assert caught.value.reason_code == "STATUS_NOT_ALLOWED"
    assert (files.texts, journal.entries) == ({A: READY}, [])


@pytest.mark.spec("REQ-5", "ERR-4")
@pytest.mark.parametrize("status", ["draft", "blocked", "done", "archived"])
def test_a_person_may_set_every_other_status_and_it_is_recorded(status: str) -> None:
    files, journal = MemoryRequests({A: READY}), MemoryJournal()
    assert edit_request(A, "status", Change(status), files, (journal, clock)) == ("ready", status)
    assert edit_request(A, "status", Change(status), files, (journal, clock)) is None
    (entry,) = journal.entries
    assert (entry.kind, dict(entry.data)) == ("status_changed", {"key": "status", "from": "ready", "to": status})


@pytest.mark.spec("REQ-2", "REQ-3")
@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("owner", "me", ProblemKind.BAD_KEY),
        ("id", "B", ProblemKind.BAD_KEY),
        ("priority", "P9", ProblemKind.BAD_PRIORITY),
        ("priority", None, ProblemKind.NOT_A_VALUE),
        ("status", ("ready",), ProblemKind.NOT_A_VALUE),
        ("updated_at", "soon", ProblemKind.BAD_DATE),
        ("baseline", "never", ProblemKind.BAD_SWITCH),
        ("depends_on", "B", ProblemKind.NOT_A_LIST),
        ("depends_on", ("a b",), ProblemKind.BAD_ID),
        ("title", " ", ProblemKind.BAD_TITLE),
        ("title", "x" * 301, ProblemKind.BAD_TITLE),
    ],
)
def test_a_value_is_judged_by_the_rule_that_reads_it(
    key: str, value: str | tuple[str, ...] | None, kind: ProblemKind
) -> None:
    files = MemoryRequests({A: READY})
    with pytest.raises(BadInputError) as caught:
        edit_request(A, key, Change(value), files, (MemoryJournal(), clock))
    assert caught.value.context["problem"].kind is kind  # type: ignore[attr-defined]
    assert files.texts == {A: READY}


def test_a_conflict_is_not_recorded_as_a_change() -> None:
    journal = MemoryJournal()
    with pytest.raises(ConflictError):
        edit_request(A, "status", Change("done", expected="draft"), MemoryRequests({A: READY}), (journal, clock))
    assert journal.entries == []


@pytest.mark.spec("REQ-9")
def test_a_prompts_request_is_never_another_prompts_and_an_old_ones_keeps_its_id() -> None:
    checkout = MemoryCheckout()
    engine = MemoryProcess(checkout, 1, PlayedTime(), lambda *_: AgentReply()).engine()
    first = a_prompt(task_id="TASK-20260102-030405-678901-abcdef", prompt="Say hello")
    made = file_prompt(engine, first, "Say hello")
    assert re.fullmatch(r"RQ-20260102-[a-z]{4}", made)
    text = checkout.requests.texts[made]
    assert "task: TASK-20260102-030405-678901-abcdef\n" in text
    again = replace(first, task_id=f"{first.task_id}.2")
    assert (file_prompt(engine, again, "Say hello"), checkout.requests.texts) == (made, {made: text})
    # Another prompt whose four letters are the same by chance.
    checkout.requests.texts[made] = text.replace("abcdef", "abcdee")
    with pytest.raises(ConflictError) as refused:
        file_prompt(engine, first, "Say hello")
    assert refused.value.reason_code == "REQUEST_EXISTS"
    # A file of a person, or of a version before the task was named, is taken as it is.
    checkout.requests.texts[made] = text.replace("task: TASK-20260102-030405-678901-abcdef\n", "")
    assert file_prompt(engine, first, "Say hello") == made
    queued_before = replace(first, request_id=old_prompt_request_id(first.task_id))
    assert file_prompt(engine, queued_before, "Say hello") == old_prompt_request_id(first.task_id)
