"""The files of runs (RUN-1, RUN-9): their names, what grows and what is overwritten, and that no name leads elsewhere."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.run_folders.run_store import RunFolders
from aiflow.adapters.secrets import Masker
from aiflow.domain.agents.call import Brief
from aiflow.domain.request import RequestId
from aiflow.domain.runs.events import stopped
from aiflow.domain.runs.run import Run
from aiflow.errors import EnvironmentProblemError
from aiflow.ports import RunStore
from builders import NOW
from conftest import somebody_else
from run_builders import EVERY_STATE, RUN_ID, at, done, in_step, in_tests, new_run, why

SECRET = "s3cret/Value+with=signs"
BRIEF = Brief("RQ-1", "A title", "Body\r\nwith 日本 and \ud800.\n", "P1", ("ui", "x y"))


@pytest.fixture
def runs(tmp_path: Path) -> RunFolders:
    return RunFolders(str(tmp_path), Masker({"API_TOKEN": SECRET}), lambda: NOW)


def folder_of(root: Path, run: Run) -> Path:
    return root / "runs" / run.request_id / run.run_id


def read(root: Path, run: Run, name: str) -> Any:
    return json.loads((folder_of(root, run) / name).read_bytes())


# --- RUN-1: the files ------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-1")
def test_a_run_has_the_files_of_the_specification(tmp_path: Path, runs: RunFolders) -> None:
    store: RunStore = runs
    run = stopped(in_tests(2), why(), at(40))
    store.create(run, BRIEF)
    store.write_planning(run)
    store.write_errors(run, {"reason_code": "UNIT_TEST_FAILED"})
    store.append_report(run, "# Report\n")
    store.write_patch(run, "S02", b"diff")
    for number in (0, 2):
        store.open_log(run, number, "x").close()
    folder = folder_of(tmp_path, run)
    assert folder == tmp_path / "runs/RQ-1" / RUN_ID
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert files == [
        "S02.patch",
        "errors.json",
        "logs/step-0.log",
        "logs/step-0.marks",
        "logs/step-2.log",
        "logs/step-2.marks",
        "planning.json",
        "report.md",
        "request.json",
        "stage.json",
    ]


@pytest.mark.spec("RUN-1")
@pytest.mark.parametrize("run", [*EVERY_STATE.values(), done(), stopped(in_tests(2), why(), at(40))])
def test_a_saved_run_is_read_back_as_it_was(runs: RunFolders, run: Run) -> None:
    runs.create(new_run(), BRIEF)
    runs.save(run)
    assert runs.load("RQ-1", RUN_ID) == run
    assert runs.latest()[RequestId("RQ-1")].state is run.state
    assert runs.find(RUN_ID) == "RQ-1"


@pytest.mark.spec("RUN-1", "RUN-11")
def test_a_draft_counts_as_no_run_until_it_is_made(tmp_path: Path, runs: RunFolders) -> None:
    rq_1, run = RequestId("RQ-1"), new_run()
    assert runs.drafted(rq_1) is None
    runs.draft(run, BRIEF)
    assert runs.drafted(rq_1) == (run, BRIEF)
    assert (runs.latest(), runs.all_of(rq_1), runs.find(RUN_ID), runs.load("RQ-1", RUN_ID)) == ({}, (), None, None)
    newer = replace(run, run_id="RUN-20260102-030406-bbbbbb")
    newer = replace(newer, place=replace(run.place, run_id=newer.run_id, branch=f"aiflow/RQ-1/{newer.run_id}"))
    runs.draft(newer, BRIEF)
    assert runs.drafted(rq_1) == (newer, BRIEF)
    runs.create(newer, BRIEF)
    assert (runs.drafted(rq_1), runs.load("RQ-1", newer.run_id), runs.brief(newer)) == (None, newer, BRIEF)
    assert os.listdir(tmp_path / "runs/RQ-1") == [newer.run_id]
    runs.draft(run, BRIEF)
    runs.discard(rq_1)
    assert runs.drafted(rq_1) is None
    assert os.listdir(tmp_path / "runs/RQ-1") == [newer.run_id]


@pytest.mark.spec("RUN-1", "SEC")
def test_half_a_draft_and_anothers_are_none(tmp_path: Path, runs: RunFolders) -> None:
    rq_1 = RequestId("RQ-1")
    runs.draft(new_run(), BRIEF)
    stage = tmp_path / f"runs/RQ-1/.{RUN_ID}.new/stage.json"
    whole = json.loads(stage.read_text())
    for text in ("{", "", json.dumps(whole | {"request_id": "RQ-2"}), json.dumps(whole | {"run_id": "RUN-9"})):
        stage.write_text(text)
        assert runs.drafted(rq_1) is None
        assert not runs.has_draft(rq_1)
    stage.unlink()
    assert runs.drafted(rq_1) is None
    (tmp_path / "elsewhere").mkdir()
    assert runs.drafted(RequestId("../elsewhere")) is None
    runs.create(new_run(), BRIEF)
    assert runs.load("RQ-1", RUN_ID) == new_run()


@pytest.mark.spec("RUN-1", "REQ-8")
def test_the_request_is_kept_as_it_was_when_the_run_began(tmp_path: Path, runs: RunFolders) -> None:
    run = new_run()
    runs.create(run, BRIEF)
    assert runs.brief(run) == BRIEF
    shape = read(tmp_path, run, "request.json")
    assert list(shape) == ["id", "title", "body", "priority", "labels"]
    for broken in ("", "[]", "{", '{"id": "RQ-1"}', '{"id": 5, "title": "x", "body": "y", "priority": "P1"}'):
        (folder_of(tmp_path, run) / "request.json").write_text(broken)
        assert runs.brief(run) == Brief("RQ-1", "A title", "", "")
    (folder_of(tmp_path, run) / "request.json").unlink()
    assert runs.brief(run) == Brief("RQ-1", "A title", "", "")


@pytest.mark.spec("RUN-1")
@pytest.mark.parametrize("labels", [None, 5])
def test_labels_that_are_no_list_are_none(tmp_path: Path, runs: RunFolders, labels: object) -> None:
    run = new_run()
    runs.create(run, BRIEF)
    shape = read(tmp_path, run, "request.json")
    (folder_of(tmp_path, run) / "request.json").write_text(json.dumps(shape | {"labels": labels}))
    assert runs.brief(run).labels == ()


@pytest.mark.spec("RUN-1")
def test_a_folder_without_stage_json_never_was_a_run(tmp_path: Path, runs: RunFolders) -> None:
    # A kill between the two writes of `create`.
    runs.create(new_run(), BRIEF)
    (folder_of(tmp_path, new_run()) / "stage.json").unlink()
    assert runs.load("RQ-1", RUN_ID) is None
    assert runs.latest()[RequestId("RQ-1")].reason_code == "RUN_LOST"


@pytest.mark.spec("RUN-1")
def test_the_plan_is_written_as_it_was_answered(tmp_path: Path, runs: RunFolders) -> None:
    run = in_step()
    runs.create(run, BRIEF)
    runs.write_planning(run)
    planning = read(tmp_path, run, "planning.json")
    assert {name: planning[name] for name in ("version", "request_id", "run_id")} == {
        "version": "1.0",
        "request_id": "RQ-1",
        "run_id": RUN_ID,
    }
    assert planning["steps"][0] == {
        "id": "S01",
        "title": "First",
        "instructions": "Do the first.",
        "targets": {"paths": ["src"]},
        "tests": ["unit"],
    }


@pytest.mark.spec("RUN-1")
def test_files_are_for_people_too(tmp_path: Path, runs: RunFolders) -> None:
    run = replace(new_run(), title="日本語")
    runs.create(run, BRIEF)
    text = (folder_of(tmp_path, run) / "stage.json").read_text(encoding="utf-8")
    assert "日本語" in text
    assert text.endswith("}\n")
    assert text.count("\n") > 20


@pytest.mark.spec("RUN-1")
def test_a_reader_never_sees_half_a_file(tmp_path: Path, runs: RunFolders) -> None:
    runs.create(new_run(), BRIEF)
    is_over = threading.Event()

    def write() -> None:
        for run in [*EVERY_STATE.values()] * 20:
            runs.save(run)
        is_over.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = 0
    while not is_over.is_set():
        assert runs.load("RQ-1", RUN_ID) is not None
        seen += 1
    writer.join()
    assert seen > 1
    assert sorted(os.listdir(folder_of(tmp_path, new_run()))) == ["logs", "request.json", "stage.json"]


# --- RUN-9: what grows and what is overwritten -----------------------------------------------------------------------


@pytest.mark.spec("RUN-9")
def test_errors_are_overwritten_and_gone_at_the_end(tmp_path: Path, runs: RunFolders) -> None:
    run = new_run()
    runs.create(run, BRIEF)
    assert runs.errors(run) is None
    runs.write_errors(run, {"reason_code": "A", "more": 1})
    runs.write_errors(run, {"reason_code": "B"})
    assert runs.errors(run) == {"reason_code": "B"} == read(tmp_path, run, "errors.json")
    runs.write_errors(run, None)
    runs.write_errors(run, None)
    assert runs.errors(run) is None


@pytest.mark.spec("RUN-9", "AGT-4")
def test_the_report_grows_and_shows_no_secret(tmp_path: Path, runs: RunFolders) -> None:
    run = new_run()
    runs.create(run, BRIEF)
    assert runs.report(run) is None
    runs.append_report(run, "# One\n")
    runs.append_report(run, f"two {SECRET} \ud800 日本\n")
    assert runs.report(run) == "# One\ntwo *** ? 日本\n"
    (folder_of(tmp_path, run) / "report.md").write_bytes(b"a person's own \xff\n")
    runs.append_report(run, "three\n")
    assert (folder_of(tmp_path, run) / "report.md").read_bytes() == b"a person's own \xff\nthree\n"


@pytest.mark.spec("RUN-9", "AGT-4")
def test_a_steps_log_grows_behind_dated_titles_and_shows_no_secret(tmp_path: Path, runs: RunFolders) -> None:
    run = in_step(3)
    runs.create(run, BRIEF)
    seen: list[bytes] = []
    for attempt in (1, 2):
        log = runs.open_log(run, 3, f"implementer S03 attempt {attempt}", seen.append)
        log.write(f"uses {SECRET}\n".encode())
        log.close()
    assert runs.log_path(run, 3) == f"runs/RQ-1/{RUN_ID}/logs/step-3.log"
    text = (tmp_path / runs.log_path(run, 3)).read_text()
    assert text == "".join(f"=== {NOW.isoformat()} implementer S03 attempt {n}\nuses ***\n" for n in (1, 2))
    assert b"".join(seen).decode() == text


@pytest.mark.spec("RUN-1")
def test_a_log_comes_back_after_the_folder_was_cleaned(tmp_path: Path, runs: RunFolders) -> None:
    run = in_step()
    runs.open_log(run, 1, "x").close()
    assert (tmp_path / runs.log_path(run, 1)).is_file()


@pytest.mark.spec("RUN-1", "RUN-7")
def test_there_is_one_patch_per_unfinished_step(tmp_path: Path, runs: RunFolders) -> None:
    run = in_step(2)
    runs.create(run, BRIEF)
    patch = b"diff --git \xff\x00"
    path = runs.write_patch(run, "S02", patch)
    assert path == f"runs/RQ-1/{RUN_ID}/S02.patch"
    assert (tmp_path / path).read_bytes() == patch
    runs.write_patch(run, "S02", b"newer")
    assert (tmp_path / path).read_bytes() == b"newer"
    for nothing in (b"", None, None):
        assert runs.write_patch(run, "S02", nothing) is None
        assert not (tmp_path / path).exists()


# --- no name leads elsewhere -----------------------------------------------------------------------------------------

TRICKS = ["../x", "..", ".", "", "/etc", "RQ-1/..", "a/../../x", "RQ-1/", "x\0y", "RQ-1\n", "*"]


@pytest.mark.spec("SEC")
@pytest.mark.parametrize("trick", [*TRICKS, "RUN-../x", "RUN-1/../../x", "RUN-\0", f"{RUN_ID}/", f"../RQ-1/{RUN_ID}"])
def test_a_name_that_is_no_runs_finds_nothing(tmp_path: Path, runs: RunFolders, trick: str) -> None:
    runs.create(new_run(), BRIEF)
    runs.create(replace(new_run(), request_id="../x"), BRIEF)  # planted, and it even says that it is the one
    assert (tmp_path / "x" / RUN_ID / "stage.json").exists()
    assert runs.find(trick) is None
    assert runs.load("RQ-1", trick) is None
    assert runs.load(trick, RUN_ID) is None
    assert runs.all_of(RequestId(trick)) == ()
    assert runs.latest([RequestId(trick)]) == {}


@pytest.mark.spec("RUN-1")
def test_a_run_is_found_among_others_and_among_strays(tmp_path: Path, runs: RunFolders) -> None:
    for request_id, run_id in (("RQ-1", RUN_ID), ("RQ-2", "RUN-2"), ("RQ-2", "RUN-3")):
        place = replace(new_run().place, run_id=run_id)
        runs.create(replace(new_run(), request_id=request_id, run_id=run_id, place=place), BRIEF)
    (tmp_path / "runs/stray").write_text("")
    (tmp_path / "runs/RQ-1/notes.md").write_text("")
    assert [runs.find(run_id) for run_id in (RUN_ID, "RUN-2", "RUN-3", "RUN-4", "notes.md")] == [
        "RQ-1",
        "RQ-2",
        "RQ-2",
        None,
        None,
    ]
    assert sorted(runs.owners()) == ["RQ-1", "RQ-2", "stray"]
    assert runs.load("stray", RUN_ID) is None


@pytest.mark.spec("REQ-7")
def test_without_any_run_nothing_is_found(runs: RunFolders) -> None:
    assert (runs.find(RUN_ID), runs.load("RQ-1", RUN_ID), runs.latest()) == (None, None, {})
    assert (runs.report(new_run()), runs.errors(new_run())) == (None, None)


@pytest.mark.spec("RUN-1")
def test_a_file_that_was_carried_elsewhere_is_not_this_run(tmp_path: Path, runs: RunFolders) -> None:
    runs.create(new_run(), BRIEF)
    stage = (folder_of(tmp_path, new_run()) / "stage.json").read_bytes()
    for request_id, run_id in (("RQ-1", "RUN-9"), ("RQ-9", RUN_ID)):
        folder = tmp_path / "runs" / request_id / run_id
        folder.mkdir(parents=True)
        (folder / "stage.json").write_bytes(stage)
        assert runs.load(request_id, run_id) is None


@pytest.mark.spec("RUN-1")
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"state": 5}', b"1e999"])
def test_a_file_that_cannot_be_read_is_no_run(tmp_path: Path, runs: RunFolders, data: bytes) -> None:
    runs.create(new_run(), BRIEF)
    for name in ("stage.json", "errors.json"):
        (folder_of(tmp_path, new_run()) / name).write_bytes(data)
    assert runs.load("RQ-1", RUN_ID) is None
    errors = runs.errors(new_run())
    assert errors is None or errors == {"state": 5}


# --- trouble ---------------------------------------------------------------------------------------------------------


@pytest.mark.spec("ERR-3")
def test_a_folder_that_cannot_be_written_is_a_problem_with_a_name(tmp_path: Path, runs: RunFolders) -> None:
    run = new_run()
    runs.create(run, BRIEF)
    runs.append_report(run, "x\n")
    writes: list[Any] = [
        lambda: runs.save(run),
        lambda: runs.write_planning(run),
        lambda: runs.write_errors(run, {}),
        lambda: runs.append_report(run, "y"),
        lambda: runs.write_patch(run, "S01", b"x"),
        lambda: runs.open_log(run, 1, "x"),
        lambda: runs.create(replace(run, request_id="RQ-2"), BRIEF),
    ]
    with somebody_else(tmp_path):
        for write in writes:
            with pytest.raises(EnvironmentProblemError, match="IO_ERROR"):
                write()
    assert runs.load("RQ-1", RUN_ID) == run
    assert runs.report(run) == "x\n"
