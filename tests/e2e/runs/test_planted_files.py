"""Run branches bring nothing where aiflow keeps its own files (REQ-8): undone in the step, refused at acceptance."""

from __future__ import annotations

import os

import pytest

from e2e.bench import Bench

PLANT = (
    "write('.gitignore', '*.ignored\\n'); write('new.txt', 'new\\n')\n"
    'write(\'.aiflow/locks/queue.lock.json\', \'{"pid": 1, "host": "elsewhere"}\')\n'
    "write('runs/RQ-9/RUN-20260101-000000-abcdef/stage.json', '{}')\n"
    "done()"
)


@pytest.mark.spec("REQ-8", "REQ-6")
def test_a_planted_lock_is_undone_and_the_rest_is_accepted(bench: Bench) -> None:
    bench.agent.does("implementer", PLANT)
    done = bench.aiflow.json("run", "RQ-1", "-c", "accept=auto")
    assert done["accepted_as"] == bench.git("rev-parse", "main")
    assert not [path for path in bench.files_at("main") if path.startswith((".aiflow", "runs"))]
    assert "new.txt" in bench.files_at("main")
    assert ".aiflow/locks/queue.lock.json" in bench.log(1)
    assert bench.locks() == []


@pytest.mark.spec("REQ-8", "GIT-3")
@pytest.mark.parametrize("path", [".aiflow/locks/queue.lock.json", "runs/RQ-9/x", "runs"])
def test_a_branch_that_has_such_files_all_the_same_is_not_merged(bench: Bench, path: str) -> None:
    bench.agent.does("implementer", "write('new.txt', 'new\\n'); done()")
    done = bench.run()
    tree, base = bench.worktree(), bench.git("rev-parse", "main")
    planted = tree / path
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.symlink_to("/") if path == "runs" else planted.write_text("{}")
    bench.git("-C", str(tree), "add", "-f", path)
    bench.git("-C", str(tree), "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "planted")
    refused = bench.aiflow.json("accept", "RQ-1", code=4)
    assert (refused["state"], refused["reason_code"]) == ("DONE", "RUN_NOT_ACCEPTABLE")
    assert path in bench.aiflow("accept", "RQ-1", code=4).stdout
    assert (bench.git("rev-parse", "main"), bench.status()) == (base, "blocked")
    bench.git("-C", str(tree), "rm", "-rqf", path)
    bench.git("-C", str(tree), "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "removed")
    assert bench.aiflow.json("accept", done["run_id"])["accepted_as"] == bench.git("rev-parse", "main")


@pytest.mark.spec("RUN-1", "SEC")
def test_no_run_is_made_and_no_log_is_written_behind_a_link(bench: Bench) -> None:
    outside = bench.state.parent / "outside"
    outside.mkdir()
    (bench.root / "runs").mkdir()
    (bench.root / "runs/RQ-1").symlink_to(outside)
    assert bench.aiflow.json("run", "RQ-1", code=3)["error"]["reason_code"] == "LINK_REFUSED"
    assert (os.listdir(outside), bench.locks(), bench.agent.roles) == ([], [], [])
