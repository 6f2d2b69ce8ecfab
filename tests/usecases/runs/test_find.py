"""Which run is meant, and listing runs: newest first, page by page, only the page read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.files.atomic_files import read_own
from aiflow.adapters.markdown_requests.source import FileSource
from aiflow.adapters.memory.locks import MemoryLocks
from aiflow.adapters.memory.requests import MemoryRequests
from aiflow.adapters.memory.runs import MemoryRuns
from aiflow.adapters.run_folders import run_files
from aiflow.adapters.run_folders.run_files import RunFiles
from aiflow.domain.request import RequestId
from aiflow.errors import AiflowError, NotFoundError
from aiflow.ports import RunHistory
from aiflow.usecases.engine import Engine
from aiflow.usecases.read_backlog import BacklogSources
from aiflow.usecases.runs.find import find_newest_run, find_run, newest_run_id
from aiflow.usecases.runs.list import list_runs
from aiflow.usecases.shapes.pages import with_page
from aiflow.usecases.shapes.runs import run_list
from builders import run, write_request
from real_engine import engine_at, keep
from run_builders import done, in_step, new_run

OLD, NEW = "RUN-20260102-030405-aaaaaa", "RUN-20260102-030406-aaaaaa"


@pytest.fixture
def engine(repository: Path) -> Engine:
    engine = engine_at(repository)
    keep(engine, in_step())
    finished = replace(done(), run_id=NEW, place=replace(done().place, run_id=NEW))
    keep(engine, finished)
    write_request(repository, "RQ-2", None, status="ready")
    return engine


@pytest.mark.spec("SEL-4")
def test_which_run_is_meant(engine: Engine) -> None:
    assert find_run(engine, RequestId(OLD)).run_id == OLD
    assert find_run(engine, RequestId("RQ-1")).run_id == OLD  # the one that speaks for it: it is active
    assert find_newest_run(engine, RequestId("RQ-1")).run_id == NEW
    assert find_newest_run(engine, RequestId(OLD)).run_id == OLD
    assert newest_run_id(engine, RequestId("RQ-1")) == NEW
    assert newest_run_id(engine, RequestId("RQ-2")) is None


@pytest.mark.parametrize(
    ("name", "code"),
    [("RQ-2", "RUN_NOT_FOUND"), ("RQ-9", "REQUEST_NOT_FOUND"), ("RUN-20260102-030405-bbbbbb", "RUN_NOT_FOUND")],
)
def test_what_there_is_not_is_said_to_be_missing(engine: Engine, name: str, code: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        find_run(engine, RequestId(name))
    assert caught.value.reason_code == code


def test_a_run_whose_file_cannot_be_read_is_lost(engine: Engine, repository: Path) -> None:
    (repository / f"runs/RQ-1/{OLD}/stage.json").write_text("{")
    with pytest.raises(AiflowError) as caught:
        find_run(engine, RequestId(OLD))
    assert caught.value.reason_code == "RUN_LOST"


def memory(_root: Path) -> RunHistory:
    runs = {RequestId("B"): ("RUN-5", "RUN-1"), RequestId("A"): ("RUN-2", "RUN-4", "RUN-3")}
    return MemoryRuns({owner: tuple(run("DONE", run_id=name) for name in names) for owner, names in runs.items()})


def files(root: Path) -> RunHistory:
    for name in ("B/RUN-5", "B/RUN-1", "A/RUN-2", "A/RUN-4", "A/RUN-3"):
        (root / "runs" / name).mkdir(parents=True)
        (root / "runs" / name / "stage.json").write_text('{"state": "DONE"}')
    (root / "runs/A/notes.txt").write_text("stray")
    (root / "runs/.gitignore").write_text("*")
    return RunFiles(root)


HISTORIES = pytest.mark.parametrize("make", [memory, files])


def sources(history: RunHistory) -> BacklogSources:
    requests = MemoryRequests({RequestId(name): f"---\nstatus: ready\n---\n# {name}\n" for name in "ABC"})
    return BacklogSources(FileSource(requests), history, MemoryLocks())


def ids(found: Any) -> list[str]:
    return [f"{owner}/{each.run_id}" for owner, each in found.runs]


@HISTORIES
def test_runs_are_listed_newest_first_page_by_page(tmp_path: Path, make: Any) -> None:
    where = sources(make(tmp_path))
    everything = ["B/RUN-5", "A/RUN-4", "A/RUN-3", "A/RUN-2", "B/RUN-1"]
    whole = list_runs(where)
    assert (ids(whole), whole.total, whole.next_after) == (everything, 5, None)
    first = list_runs(where, limit=2)
    assert (ids(first), first.total, first.next_after) == (everything[:2], 5, "RUN-4")
    rest = list_runs(where, limit=3, after=first.next_after)
    assert (ids(rest), rest.total, rest.next_after) == (everything[2:], 5, None)
    assert with_page(run_list(first), first)["next_after"] == "RUN-4"
    assert list(run_list(whole)) == ["runs"]


@HISTORIES
def test_the_runs_of_one_request(tmp_path: Path, make: Any) -> None:
    where = sources(make(tmp_path))
    assert ids(list_runs(where, RequestId("A"))) == ["A/RUN-4", "A/RUN-3", "A/RUN-2"]
    assert list_runs(where, RequestId("C")) == ((), 0, None)
    with pytest.raises(NotFoundError):
        list_runs(where, RequestId("D"))


def test_only_the_runs_of_the_page_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = sources(files(tmp_path))
    read: list[str] = []

    def remember(path: str, limit: int) -> bytes:
        read.append(Path(path).parent.name)
        return read_own(path, limit)

    monkeypatch.setattr(run_files, "read_own", remember)
    list_runs(where, limit=1, after="RUN-4")
    assert read == ["RUN-3", "RUN-2"]


def test_a_run_that_has_only_begun_is_listed(engine: Engine) -> None:
    keep(engine, replace(new_run(), request_id="RQ-2", run_id="RUN-20260102-030407-aaaaaa"))
    assert ids(list_runs(engine.backlog))[0] == "RQ-2/RUN-20260102-030407-aaaaaa"
