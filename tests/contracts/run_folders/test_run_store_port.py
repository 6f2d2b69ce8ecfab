"""The `RunStore` and `AutoRecords` ports, the same for files and for memory: what the engine depends on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from aiflow.adapters.memory.control import MemoryAutoRecords
from aiflow.adapters.memory.run_store import MemoryRunFiles, MemoryRunStore
from aiflow.adapters.run_folders.auto_files import AutoFile
from aiflow.adapters.run_folders.run_store import RunFolders
from aiflow.adapters.secrets import Masker
from aiflow.domain.agents.call import Brief
from aiflow.domain.agents.usage import Usage
from aiflow.domain.auto.session import AutoSession, Started
from aiflow.domain.request import RequestId
from aiflow.domain.run_summary import RoleSpent, RunRecord, TaskRef, worked_seconds
from aiflow.domain.runs.run import Run
from aiflow.ports import AutoRecords, RunStore
from builders import NOW
from run_builders import EVERY_STATE, RUN_ID, done, fail, in_step, new_run, planning

BRIEF = Brief("RQ-1", "A title", "The body.", "P1", ("ui",))
LATER = "RUN-20260102-030406-aaaaaa"


def worktree_path(run_id: str) -> str:
    return f"/w/{run_id}"


@pytest.fixture(params=["files", "memory"])
def runs(request: pytest.FixtureRequest, tmp_path: Path) -> RunStore:
    if request.param == "memory":
        return MemoryRunStore(MemoryRunFiles(), worktree_path)
    return RunFolders(str(tmp_path), Masker({}), lambda: NOW, worktree_path)


@pytest.mark.spec("RUN-1")
def test_a_run_is_read_back_as_it_was_saved_in_every_state(runs: RunStore) -> None:
    runs.create(new_run(), BRIEF)
    assert runs.brief(new_run()) == BRIEF
    every: list[Run] = [*EVERY_STATE.values(), done(), fail(in_step(), "AGENT_FAILED")]
    for run in (replace(each, task=TaskRef("app", "T-1")) for each in every):
        runs.save(run)
        assert runs.load("RQ-1", RUN_ID) == run
        [summary] = runs.all_of(RequestId("RQ-1"))
        assert (summary.state, summary.is_active, summary.task) == (run.state, run.is_active, run.task)
        assert summary.reason_code == (run.error.reason_code if run.error else None)
        assert summary.changed_at == run.changed_at
        assert runs.latest([RequestId("RQ-1")]) == {"RQ-1": summary} == runs.latest()
    assert runs.load("RQ-1", LATER) is None
    assert runs.load("RQ-2", RUN_ID) is None
    assert runs.latest([RequestId("RQ-2")]) == {}


@pytest.mark.spec("REQ-5")
def test_a_draft_is_no_run_until_it_is_made(runs: RunStore) -> None:
    request_id, run = RequestId("RQ-1"), new_run()
    assert runs.drafted(request_id) is None
    runs.draft(replace(run, run_id=LATER), BRIEF)
    runs.draft(run, BRIEF)
    assert runs.drafted(request_id) == (run, BRIEF)
    assert runs.has_draft(request_id)
    assert not runs.has_draft(RequestId("RQ-2"))
    assert (runs.all_of(request_id), runs.load("RQ-1", RUN_ID), runs.find(RUN_ID)) == ((), None, None)
    runs.create(run, BRIEF)
    assert runs.drafted(request_id) is None
    assert (runs.load("RQ-1", RUN_ID), runs.brief(run)) == (run, BRIEF)
    runs.draft(replace(run, run_id=LATER), BRIEF)
    runs.discard(request_id)
    runs.discard(request_id)
    assert runs.drafted(request_id) is None
    assert [each.run_id for each in runs.all_of(request_id)] == [RUN_ID]


def test_where_a_run_works_is_told_by_its_names_alone(runs: RunStore) -> None:
    run = new_run()
    runs.create(replace(run, place=replace(run.place, path="/elsewhere", branch="main")), BRIEF)
    loaded = runs.load("RQ-1", RUN_ID)
    assert loaded is not None
    assert (loaded.place.path, loaded.place.branch) == (f"/w/{RUN_ID}", f"aiflow/RQ-1/{RUN_ID}")


@pytest.mark.spec("SEL-4")
def test_the_newest_run_comes_first_and_the_open_one_speaks(runs: RunStore) -> None:
    runs.create(planning(), BRIEF)
    runs.create(replace(done(), run_id=LATER), BRIEF)
    assert [run.run_id for run in runs.all_of(RequestId("RQ-1"))] == [LATER, RUN_ID]
    assert runs.latest()[RequestId("RQ-1")].run_id == RUN_ID
    assert [run.run_id for _, run in runs.page(limit=1)[0]] == [LATER]
    assert [run.run_id for _, run in runs.page(RequestId("RQ-1"), after=LATER)[0]] == [RUN_ID]
    assert [run.run_id for _, run in runs.page(since=LATER)[0]] == [LATER]
    assert (runs.page()[1], runs.page(RequestId("RQ-2"))) == (2, ((), 0))
    roles = {"planner": Usage(1, 30, 5, 1, 0.15, 7.0), "qa": Usage(2, 10, 0, 1, 0.1, 2.5)}
    finished = replace(done(), usage=Usage(3, 40, 5, 2, 0.25, 9.5), roles=roles)
    runs.save(replace(finished, run_id=LATER))
    lines = [(line.at, line.event) for line in finished.history]
    record = RunRecord(finished.created_at, worked_seconds(finished.created_at, lines), 0.25, 42, 3, 9.5)
    assert runs.page(limit=1)[0][0][1].record == record._replace(
        roles=(RoleSpent("planner", 1, 31, 0.15, 7.0), RoleSpent("qa", 2, 11, 0.1, 2.5))
    )
    assert (runs.find(RUN_ID), runs.find(LATER), runs.find("RUN-20260102-030407-aaaaaa")) == ("RQ-1", "RQ-1", None)
    assert (runs.find(RUN_ID, "RQ-1"), runs.find(RUN_ID, "RQ-2"), runs.find(RUN_ID, "..")) == ("RQ-1", None, None)


@pytest.mark.spec("RUN-9")
def test_report_patch_errors_and_logs_are_kept_beside_it(runs: RunStore) -> None:
    run = in_step()
    runs.create(run, BRIEF)
    assert runs.report(run) is None
    runs.append_report(run, "# One\n")
    runs.append_report(run, "two\n")
    assert runs.report(run) == "# One\ntwo\n"
    assert runs.write_patch(run, "S01", b"diff") == f"runs/RQ-1/{RUN_ID}/S01.patch"
    assert runs.write_patch(run, "S01", None) is None
    assert runs.write_patch(run, "S01", b"") is None
    runs.write_errors(run, {"reason_code": "X"})
    runs.write_errors(run, None)
    runs.write_errors(run, None)
    runs.write_planning(run)
    log = runs.open_log(run, 1, "implementer")
    log.write(b"half a ")
    log.write(b"line")
    log.say("[aiflow] said")
    assert log.tail == "half a line"  # what aiflow itself says is no evidence
    log.close()
    assert log.excerpt == "half a line"
    again = runs.open_log(run, 1, "again")
    assert "half a line" not in again.tail
    again.close()
    assert runs.log_numbers(run) == (1,)
    whole, size = runs.read_log(run, 1) or (b"", 0)
    assert len(whole) == size
    assert b"half a line\n[aiflow] said\n" in whole
    assert runs.read_log(run, 1, 4, 3) == (whole[4:7], size)
    assert runs.read_log(run, 2) is None
    assert runs.log_path(run, 1) == f"runs/RQ-1/{RUN_ID}/logs/step-1.log"


@pytest.fixture(params=["file", "memory"])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> AutoRecords:
    make: dict[str, Callable[[], AutoRecords]] = {"file": lambda: AutoFile(tmp_path), "memory": MemoryAutoRecords}
    return make[request.param]()


@pytest.mark.spec("AUT-4")
def test_a_session_is_read_back_as_it_was_saved(records: AutoRecords) -> None:
    assert records.load() is None
    session = AutoSession(started_at=NOW, began_at=NOW, runs=2, current=Started("RQ-1", RUN_ID))
    records.save(session)
    assert records.load() == session
    records.save(replace(session, runs=3, current=None))
    assert records.load() == replace(session, runs=3, current=None)
