"""One suite per port, run against memory and every real adapter."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from aiflow.adapters.locks.lock_files import LockFiles
from aiflow.adapters.markdown_requests.store import MarkdownRequests
from aiflow.adapters.memory.locks import MemoryLocks
from aiflow.adapters.memory.requests import MemoryRequests
from aiflow.adapters.memory.runs import MemoryRuns
from aiflow.adapters.run_folders.run_files import RunFiles
from aiflow.domain.backlog.metadata import Change
from aiflow.domain.lock import Lock, LockType
from aiflow.domain.request import InvalidRequest, Request, RequestId
from aiflow.domain.run_summary import RunSummary
from aiflow.errors import BadInputError, ConflictError, NotFoundError
from aiflow.ports import LockView, RunHistory
from builders import run

RequestFiles = MemoryRequests | MarkdownRequests

TEXTS = {
    RequestId("A"): "---\nstatus: ready\npriority: P1\n---\n\n# First\n\nbody\n",
    RequestId("B"): "status: draft\n\n# Second\n",
    RequestId("C"): "---\nstatus: wip\n---\n",
}


def memory_requests(_root: Path) -> RequestFiles:
    return MemoryRequests(dict(TEXTS))


def markdown_requests(root: Path) -> RequestFiles:
    (root / "requests").mkdir()
    for request_id, text in TEXTS.items():
        (root / f"requests/{request_id}.md").write_text(text)
    return MarkdownRequests(root)


@pytest.fixture(params=[memory_requests, markdown_requests])
def requests(request: pytest.FixtureRequest, tmp_path: Path) -> RequestFiles:
    make: Callable[[Path], RequestFiles] = request.param
    return make(tmp_path)


@pytest.mark.spec("REQ-4")
def test_requests_are_loaded_the_broken_ones_apart(requests: RequestFiles) -> None:
    valid, broken = requests.load()
    assert {(r.id, r.title, r.status) for r in valid} == {("A", "First", "ready"), ("B", "Second", "draft")}
    assert [(file.id, file.where) for file in broken] == [("C", "requests/C.md")]


@pytest.mark.spec("REQ-3")
def test_an_edit_is_seen_by_the_next_load(requests: RequestFiles) -> None:
    assert requests.edit(RequestId("A"), {"status": Change("done"), "priority": Change("P1")}) == {
        "status": ("ready", "done")
    }
    assert {r.id: r.status for r in requests.load()[0]}[RequestId("A")] == "done"
    assert requests.body(RequestId("A")) == "\n# First\n\nbody\n"
    requests.edit(RequestId("A"), {}, body=("\n# First\n\nbody\n", "\n# First\n\nmore\n"))
    assert requests.body(RequestId("A")) == "\n# First\n\nmore\n"
    requests.edit(RequestId("C"), {"status": Change("ready")})
    assert requests.load()[1] == []


@pytest.mark.spec("REQ-3")
def test_an_edit_that_expected_something_else_changes_nothing(requests: RequestFiles) -> None:
    with pytest.raises(ConflictError):
        requests.edit(RequestId("A"), {"priority": Change("P0"), "status": Change("done", expected="running")})
    with pytest.raises(ConflictError):
        requests.edit(RequestId("A"), {"priority": Change("P0")}, body=("other", "new"))
    assert {r.id: (r.priority, r.status) for r in requests.load()[0]}[RequestId("A")] == ("P1", "ready")
    with pytest.raises(NotFoundError):
        requests.edit(RequestId("X"), {"status": Change("done")})
    with pytest.raises(NotFoundError):
        requests.body(RequestId("X"))


def test_a_request_is_created_under_a_free_id_only(requests: RequestFiles) -> None:
    seen: list[frozenset[str]] = []

    def propose(taken: frozenset[str]) -> RequestId:
        seen.append(taken)
        return RequestId("D")

    assert requests.create(propose, "---\nlabels: []\n---\n", {"labels": ("x y",)}) == "requests/D.md"
    assert seen == [frozenset({"a", "b", "c"})]
    assert {r.id: r.labels for r in requests.load()[0]}[RequestId("D")] == ("x y",)
    with pytest.raises(ConflictError):
        requests.create(lambda _taken: RequestId("a"), "x", {})
    with pytest.raises(BadInputError):
        requests.create(lambda _taken: RequestId("E"), "---\n", {"labels": ("x",)})
    assert len(requests.load()[0]) == 3
    requests.require_free(None)
    requests.require_free("F")
    with pytest.raises(ConflictError, match="REQUEST_EXISTS"):
        requests.require_free("d")


def test_a_text_is_looked_at_before_and_behind_its_making(requests: RequestFiles) -> None:
    assert isinstance(requests.check_text("---\nstatus: ready\n---\n# T\n"), Request)
    assert isinstance(requests.check_text("---\nstatus: wip\n---\n"), InvalidRequest)
    requests.create(lambda _taken: RequestId("D"), "---\nstatsu: ready\n---\n", {})
    assert [dict(each.facts)["meant"] for each in requests.misspelt_keys(RequestId("D"))] == ["status"]
    assert requests.misspelt_keys(RequestId("A")) == []


RUNS = {RequestId("A"): (run("DONE", run_id="RUN-2"), run("NEEDS_INPUT", "CANCELLED", run_id="RUN-1"))}


def memory_runs(_root: Path) -> RunHistory:
    return MemoryRuns(dict(RUNS))


def run_files(root: Path) -> RunHistory:
    for request_id, runs in RUNS.items():
        for each in runs:
            folder = root / "runs" / request_id / each.run_id
            folder.mkdir(parents=True)
            (folder / "stage.json").write_text(
                json.dumps({"state": each.state, "error": {"reason_code": each.reason_code}})
            )
    return RunFiles(root)


@pytest.mark.spec("SEL-4", "REQ-7")
@pytest.mark.parametrize("make", [memory_runs, run_files])
def test_the_run_that_speaks_for_a_request(tmp_path: Path, make: Callable[[Path], RunHistory]) -> None:
    history = make(tmp_path)
    assert history.latest() == {"A": RunSummary("RUN-1", RUNS[RequestId("A")][1].state, "CANCELLED")}
    assert history.latest([RequestId("B")]) == {}
    assert [each.run_id for each in history.all_of(RequestId("A"))] == ["RUN-2", "RUN-1"]
    assert history.all_of(RequestId("B")) == ()
    assert not any(map(history.has_draft, (RequestId("A"), RequestId("B"), RequestId("../elsewhere"))))


def memory_locks(_root: Path) -> LockView:
    return MemoryLocks({RequestId("A"): Lock(LockType.REQUEST, "A", "RUN-1")}, Lock(LockType.QUEUE))


def lock_files(root: Path) -> LockView:
    folder = root / ".aiflow/locks"
    folder.mkdir(parents=True)
    (folder / "request.A.lock.json").write_text('{"run_id": "RUN-1"}')
    (folder / "queue.lock.json").write_text("{}")
    return LockFiles(root)


@pytest.mark.spec("LCK-1")
@pytest.mark.parametrize("make", [memory_locks, lock_files])
def test_which_locks_are_held(tmp_path: Path, make: Callable[[Path], LockView]) -> None:
    requests, queue = make(tmp_path).held()
    assert {request_id: lock.run_id for request_id, lock in requests.items()} == {"A": "RUN-1"}
    assert queue is not None
    assert queue.lock_type is LockType.QUEUE
