"""Use cases with everything in memory and a clock of the test's own."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from aiflow.adapters.memory import MemoryJournal, MemoryLocks, MemoryRequests, MemoryRuns
from aiflow.domain.change import Change
from aiflow.domain.lock import Lock, LockType
from aiflow.domain.request import Priority, ProblemKind, RequestId, RequestStatus
from aiflow.domain.selection import select_next
from aiflow.errors import BadInputError, ConflictError
from aiflow.messages import Texts
from aiflow.usecases.create_request import NewRequest, create_request, next_id
from aiflow.usecases.edit_request import edit_request
from aiflow.usecases.init_project import init_project
from aiflow.usecases.read_backlog import BacklogSources, read_backlog
from builders import NOW, request_lock, run

A, B = RequestId("A"), RequestId("B")
READY = "---\nstatus: ready\n---\n"


def clock() -> datetime:
    return NOW


@pytest.mark.spec("SEL-1", "SEL-7")
def test_a_backlog_is_everything_selection_looks_at() -> None:
    sources = BacklogSources(
        MemoryRequests({A: READY, B: READY, RequestId("C"): "---\nstatus: draft\n---\n"}),
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


class MemoryFolder:
    """A folder of files in memory."""

    def __init__(self, **files: str) -> None:
        self.files = files

    def create(self, path: str, text: str) -> bool:
        if path in self.files:
            return False
        self.files[path] = text
        return True

    def add_lines(self, path: str, lines: tuple[str, ...]) -> tuple[str, ...]:
        missing = tuple(line for line in lines if line not in self.files.get(path, ""))
        self.files[path] = self.files.get(path, "") + "".join(f"{line}\n" for line in missing)
        return missing


@pytest.mark.spec("CFG")
@pytest.mark.parametrize("language", ["en", "ja"])
def test_init_makes_what_is_missing_and_nothing_twice(language: str) -> None:
    folder, journal = MemoryFolder(), MemoryJournal()
    first = init_project(folder, False, Texts(language), (journal, lambda: datetime(2026, 1, 2, tzinfo=UTC)))
    assert first.made == ("aiflow.toml", "requests/EXAMPLE-1.md", "requests/EXAMPLE-2.md", ".gitignore")
    again = init_project(folder, True, Texts(language), (journal, clock))
    assert (again.made, again.kept) == ((), ("aiflow.toml", "requests/", ".gitignore"))
    assert [entry.kind for entry in journal.entries] == ["project_initialised"]
    texts = {RequestId(path[9:-3]): text for path, text in folder.files.items() if path.startswith("requests/")}
    valid, broken = MemoryRequests(texts).load()
    assert broken == []
    assert {(r.id, r.status, r.depends_on) for r in valid} == {
        ("EXAMPLE-1", "draft", ()),
        ("EXAMPLE-2", "draft", ("EXAMPLE-1",)),
    }
