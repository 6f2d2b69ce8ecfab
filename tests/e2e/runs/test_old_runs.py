"""Runs of other versions (RUN-16): those that 0.1.0 left are shown and resumed, and so is one with D34's fields alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from e2e.bench import Bench

FOLDER = Path(__file__).parents[2] / "fixtures/runs-0.1.0"
D34 = (
    "version",
    "request_id",
    "run_id",
    "state",
    "current_step_index",
    "current_step_id",
    "attempts",
    "error",
    "history",
)
STATUSES = {"killed": "running", "sent-back": "ready", "accepted": "done"}
NEW = {"a": [1, 2.5, None, {"b": "日本"}]}
GOES_ON = {
    "question": ("resume", "RQ-1", "--answer", "Red."),
    "tests-failed": ("resume", "RQ-1"),
    "cancelled": ("resume", "RQ-1"),
    "quota": ("resume", "RQ-1"),
    "killed": ("run", "RQ-1"),
    "one-of-three": ("resume", "RQ-1", "--answer", "Yes."),
}


def lay(bench: Bench, name: str, **changes: Any) -> dict[str, Any]:
    """Put a run of 0.1.0 into the repository as it was left there: branch, refs, request and files, but no worktree."""
    stage: dict[str, Any] = json.loads((FOLDER / name / "stage.json").read_text("utf-8"))
    refs = ("heads/aiflow/*:refs/heads/aiflow/*", "aiflow/*:refs/aiflow/*", "heads/main:refs/laid/main")
    bench.git("fetch", "-q", str(FOLDER / name / "repository.bundle"), *(f"+refs/{ref}" for ref in refs))
    bench.git("reset", "-q", "--hard", "refs/laid/main")
    (bench.root / ".git/info/exclude").write_text("/aiflow.toml\n")
    bench.configure()
    bench.add_request("RQ-1", status=STATUSES.get(name, "blocked"))
    folder = bench.root / "runs/RQ-1" / stage["run_id"]
    (folder / "logs").mkdir(parents=True)
    for file in ("planning.json", "request.json"):
        shutil.copy(FOLDER / name / file, folder / file)
    put(bench, stage | changes)
    bench.agent.plans(*(step["id"] for step in stage["steps"]))
    return stage


def put(bench: Bench, stage: dict[str, Any]) -> None:
    (bench.folder() / "stage.json").write_text(json.dumps(stage))


def only_d34(stage: dict[str, Any]) -> dict[str, Any]:
    """What D34 §3 names, and no more."""
    error = stage["error"] and {name: stage["error"][name] for name in ("category", "reason_code", "summary")}
    lines = [
        {n: v for n, v in line.items() if n in ("at", "event", "step_id", "reason_code")} for line in stage["history"]
    ]
    return {name: stage[name] for name in D34} | {"error": error, "history": lines}


def told_of(bench: Bench) -> set[tuple[str, str | None]]:
    """What each command that shows runs says of RQ-1's: its state, and why."""
    run_id = bench.run_ids()[-1]
    shown = [bench.aiflow.json("list", "--all")["requests"][0]["latest_run"]]
    shown += [bench.aiflow.json("runs")["runs"][0], bench.aiflow.json("runs", "RQ-1")["runs"][0]]
    shown += [bench.aiflow.json("show", "RQ-1")["runs"][0], bench.aiflow.json("show", run_id)]
    return {(run["state"], run["reason_code"]) for run in shown}


@pytest.mark.spec("RUN-16")
@pytest.mark.parametrize("name", GOES_ON)
def test_a_run_that_0_1_0_left_is_resumed_to_its_end(bench: Bench, name: str) -> None:
    before = lay(bench, name)
    done = bench.aiflow.json(*GOES_ON[name])
    assert (done["state"], done["run_id"]) == ("DONE", before["run_id"])
    # What was planned and done before is not done again.
    assert "planner" not in bench.agent.roles
    assert ("implementer S01" in bench.agent.roles) is (name != "one-of-three")
    assert bench.stage()["history"][: len(before["history"])] == before["history"]
    files = bench.files_at(before["branch"])
    assert {f"{step['id']}.txt" for step in before["steps"]} <= set(files)
    bench.aiflow("accept", "RQ-1")
    assert bench.status() == "done"


@pytest.mark.spec("RUN-16")
@pytest.mark.parametrize("name", ["done", "updated"])
def test_a_run_that_0_1_0_finished_is_accepted(bench: Bench, name: str) -> None:
    lay(bench, name)
    assert told_of(bench) == {("DONE", None)}
    assert bench.aiflow.json("accept", "RQ-1")["accepted_as"] == bench.git("rev-parse", "main")
    assert bench.status() == "done"


@pytest.mark.spec("RUN-16", "REQ-6")
def test_what_0_1_0_was_told_when_a_run_was_sent_back_reaches_the_next_run(bench: Bench) -> None:
    lay(bench, "sent-back")
    assert told_of(bench) == {("FAILED", "SENT_BACK")}
    assert bench.run()["state"] == "DONE"
    assert bench.agent.last("planner")["feedback"][0]["summary"] == "Smaller, please."


@pytest.mark.spec("RUN-16")
def test_a_run_that_0_1_0_accepted_is_over(bench: Bench) -> None:
    lay(bench, "accepted")
    assert told_of(bench) == {("DONE", None)}
    assert bench.aiflow.json("resume", "RQ-1", code=4)["error"]["reason_code"] == "RUN_NOT_RESUMABLE"
    assert bench.aiflow.json("accept", "RQ-1")["accepted_as"] == bench.stage()["accepted_as"]
    assert bench.aiflow.json("clean", "--dry-run")


# --- D34 §3's fields alone -------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-16")
@pytest.mark.parametrize("name", sorted(path.parent.name for path in FOLDER.glob("*/stage.json")))
def test_every_command_says_the_same_of_a_run_with_d34s_fields_alone(bench: Bench, name: str) -> None:
    stage = lay(bench, name)
    put(bench, only_d34(stage))
    code = stage["error"]["reason_code"] if stage["error"] else None
    assert told_of(bench) == {(stage["state"], code)}
    for command in (["why", "RQ-1"], ["doctor"], ["clean", "--dry-run"], ["next"], ["list"]):
        done = bench.aiflow(*command, "--json")
        assert "RUN_LOST" not in done.stdout, command
    bench.aiflow("logs", "RQ-1")
    bench.aiflow("report", "RQ-1")
    if name != "killed":
        assert bench.aiflow.json("cancel", "RQ-1", code=4)["error"]["reason_code"] == "RUN_NOT_ACTIVE"
    if stage["state"] == "NEEDS_INPUT":
        assert bench.aiflow.json("accept", "RQ-1", code=4)["error"]["reason_code"] == "RUN_NOT_ACCEPTABLE"
    bench.aiflow("doctor", "--full")
    assert {path.name for path in bench.folder().glob("stage*")} == {"stage.json"}


@pytest.mark.spec("RUN-16", "RUN-6")
@pytest.mark.parametrize("name", GOES_ON)
@pytest.mark.parametrize("has_plan", [True, False])
def test_a_run_with_d34s_fields_alone_is_resumed_to_its_end(bench: Bench, name: str, has_plan: bool) -> None:
    stage = lay(bench, name)
    put(bench, only_d34(stage))
    if not has_plan:
        (bench.folder() / "planning.json").unlink()
    command = GOES_ON[name]
    if name == "killed" and not has_plan:
        stopped = bench.aiflow.json(*command, code=3)
        assert (stopped["state"], stopped["reason_code"]) == ("NEEDS_INPUT", "PROCESS_CRASHED")
        command = ("resume", "RQ-1")
    done = bench.aiflow.json(*command)
    assert (done["state"], done["run_id"]) == ("DONE", stage["run_id"])
    assert ("planner" in bench.agent.roles) is not has_plan
    files = bench.files_at(stage["branch"])
    assert {f"{step['id']}.txt" for step in stage["steps"]} <= set(files)
    bench.aiflow("accept", "RQ-1")
    assert "S01.txt" in bench.files_at("main")


@pytest.mark.spec("RUN-16", "REQ-6")
@pytest.mark.parametrize("has_plan", [True, False])
def test_what_a_run_with_d34s_fields_alone_has_done_is_brought_in(bench: Bench, has_plan: bool) -> None:
    put(bench, only_d34(lay(bench, "done")))
    if not has_plan:
        (bench.folder() / "planning.json").unlink()
    assert bench.aiflow.json("accept", "RQ-1")["accepted_as"]
    assert "S01.txt" in bench.files_at("main")


# --- a newer aiflow's ------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-16")
def test_a_run_that_only_a_newer_aiflow_understands_is_left_alone(bench: Bench) -> None:
    lay(bench, "one-of-three", state="PAUSED", version="2.0")
    path = bench.folder() / "stage.json"
    before = path.read_bytes()
    assert told_of(bench) == {("NEEDS_INPUT", "RUN_FROM_NEWER_VERSION")}
    for command in (["resume"], ["resume", "--force"], ["retry-step"]):
        refused = bench.aiflow.json(*command, "RQ-1", code=4)["error"]
        assert refused["reason_code"] == "RUN_FROM_NEWER_VERSION"
        assert refused["actions"]
    assert bench.aiflow.json("cancel", "RQ-1", code=4)["error"]["reason_code"] == "RUN_NOT_ACTIVE"
    assert bench.aiflow.json("accept", "RQ-1", code=4)["error"]["reason_code"] == "RUN_NOT_ACCEPTABLE"
    assert "更新" in bench.aiflow("--lang", "ja", "resume", "RQ-1", code=4).stderr
    bench.aiflow("doctor", "--full")
    bench.add_request("RQ-1", status="running")  # the newer one was killed
    bench.aiflow("doctor", "--full")
    assert bench.status() == "blocked"
    assert path.read_bytes() == before
    assert bench.aiflow.json("replan", "RQ-1")["state"] == "DONE"


@pytest.mark.spec("RUN-16")
def test_a_newer_reason_is_shown_as_it_is(bench: Bench) -> None:
    stage = lay(bench, "question")
    put(
        bench, stage | {"error": {**stage["error"], "reason_code": "LINT_FAILED", "question": None, "way_on": "ponder"}}
    )
    assert told_of(bench) == {("NEEDS_INPUT", "LINT_FAILED")}
    assert "LINT_FAILED" in bench.aiflow("list").stdout
    assert "LINT_FAILED" in bench.aiflow("show", bench.run_ids()[-1]).stdout
    assert bench.aiflow.json("why", "RQ-1")["stations"][0]["commands"] == ["aiflow resume RQ-1"]
    assert bench.aiflow.json("resume", "RQ-1")["state"] == "DONE"


@pytest.mark.spec("RUN-16")
def test_what_a_newer_aiflow_added_stays_through_resume_and_accept(bench: Bench) -> None:
    stage = lay(bench, "one-of-three")
    for one in (stage, stage["worktree"], stage["visit"], stage["usage"], *stage["steps"], *stage["history"]):
        one["new"] = NEW
    put(bench, stage)
    bench.aiflow("resume", "RQ-1", "-a", "Yes.")
    bench.aiflow("accept", "RQ-1")
    after = bench.stage()
    kept = (after, after["worktree"], after["visit"], after["usage"], *after["steps"], *after["history"][:5])
    assert [one.get("new") for one in kept] == [NEW] * 12
    assert after["accepted_as"]


# --- RUN-15 ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("RUN-15", "LCK-7")
def test_a_run_at_work_is_told_before_anything_that_keeps_a_request(bench: Bench) -> None:
    bench.add_request("RQ-2", status="draft")
    bench.add_request("RQ-3", depends_on="[RQ-9]")
    bench.add_request("RQ-4", status="running")  # nobody works on it
    bench.commit()
    process = bench.start_hanging()
    run_id = bench.run_ids()[-1]
    for name in ("RQ-1", "RQ-2", "RQ-3", "RQ-4"):
        refused = bench.aiflow.json("run", name, code=4)["error"]
        assert (refused["reason_code"], refused["context"]["run_id"]) == ("RUN_IN_PROGRESS", run_id), name
    process.kill()
    process.wait()
