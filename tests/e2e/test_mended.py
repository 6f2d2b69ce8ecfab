"""Defects that were found by trying; each of these failed once."""

from __future__ import annotations

import json
import shutil

import pytest

from e2e.bench import Bench, git
from e2e.test_limits import ALWAYS_RED
from e2e.test_resume import stop_in


@pytest.mark.spec("RUN-4", "CFG")
def test_the_limits_are_settings(bench: Bench) -> None:
    bench.configure(f"{ALWAYS_RED}\n[limits]\nrole_attempts = 3\nstep_retries = 0")
    bench.run(code=7)
    assert bench.agent.roles.count("implementer S01") == 3
    refused = bench.aiflow.json("retry-step", "RQ-1", code=5)
    assert refused["error"]["reason_code"] == "RETRY_LIMIT_EXCEEDED"


@pytest.mark.spec("RUN-7")
def test_a_persons_commit_on_the_runs_branch_is_kept(bench: Bench) -> None:
    stop_in(bench, "S02", "S01", "S02")
    tree = bench.worktree()
    (tree / "green.txt").write_text("by hand\n")
    git(tree, "add", "green.txt")
    git(tree, "commit", "-qm", "Mend it by hand")

    result = bench.aiflow.json("resume", "RQ-1")

    assert result["state"] == "DONE"
    subjects = [message.splitlines()[0] for message in bench.commits(result["branch"])]
    assert subjects == ["Do S01", "Mend it by hand", "Do S02"]
    assert bench.git("show", f"{result['branch']}:green.txt") == "by hand"
    assert "half.txt" in bench.files_at(result["branch"])


@pytest.mark.spec("REQ-7", "LCK-3", "REQ-5", "RUN-2")
@pytest.mark.parametrize("seconds", [0, 1.2])
def test_git_clean_in_the_middle_ends_the_run_and_the_next_start_explains(bench: Bench, seconds: float) -> None:
    bench.agent.plans("S01", "S02")
    clean = f"sh('git clean -fdxq', cwd=ROOT); time.sleep({seconds}); write('late.txt', 'x'); done()"
    bench.agent.does("implementer", clean, "S01")

    refused = bench.aiflow.json("run", "RQ-1", code=4)["error"]

    assert refused["reason_code"] == "LOCK_LOST"
    assert not (bench.root / "runs").exists()  # nothing more was written
    assert bench.locks() == []
    assert bench.status() == "running"
    assert bench.agent.roles == ["planner", "implementer S01"]

    bench.agent.forget()
    explained = bench.aiflow.json("run", "RQ-1", code=3)["error"]
    assert explained["reason_code"] == "RUN_LOST"
    assert bench.status() == "blocked"
    assert [e.get("reason_code") for e in bench.journal() if e["kind"] == "recovery"] == ["RUN_LOST"]
    bench.aiflow("set", "RQ-1", "status=ready")
    assert bench.run()["state"] == "DONE"


@pytest.mark.spec("REQ-5", "RUN-15")
def test_a_request_that_says_running_though_nobody_works_on_it(bench: Bench) -> None:
    path = bench.root / "requests/RQ-1.md"
    path.write_text(path.read_text().replace("status: ready", "status: running"))
    assert bench.aiflow.json("run", "RQ-1", code=3)["error"]["reason_code"] == "RUN_LOST"
    assert bench.status() == "blocked"


@pytest.mark.spec("RUN-1", "REQ-5")
@pytest.mark.parametrize("state", ["IMPLEMENTING", "NEEDS_INPUT"])
def test_a_stage_with_a_state_but_nothing_else_does_not_block_its_request_for_ever(bench: Bench, state: str) -> None:
    bench.agent.does("implementer", "ask('?')")
    bench.run(code=5)
    bench.agent.forget()
    (bench.folder() / "stage.json").write_text(json.dumps({"version": "1.0", "state": state}))
    assert bench.aiflow.json("resume", "RQ-1", code=3)["error"]["reason_code"] == "RUN_LOST"
    bench.aiflow("doctor", "--full")
    bench.aiflow("set", "RQ-1", "status=ready")  # the way on that RUN_LOST names
    assert bench.run()["state"] == "DONE"


@pytest.mark.spec("AGT-4", "SEC")
def test_a_secret_in_a_test_command_is_masked_in_stage_and_errors(bench: Bench) -> None:
    secret = "s3cr3t-value-of-a-token"
    bench.configure(f'[tests]\nunit = "echo {secret}; exit 1"')
    bench.aiflow("run", "RQ-1", code=7, env={"MY_TOKEN": secret})
    leaks = [path.name for path in bench.folder().rglob("*") if path.is_file() and secret in path.read_text()]
    assert leaks == []


@pytest.mark.spec("RUN-1", "ERR-1")
def test_an_error_from_git_is_told_once_and_names_its_command(bench: Bench) -> None:
    path = bench.root / ".git/refs/heads/aiflow"  # a branch of this name leaves no room for aiflow/…
    bench.git("branch", "aiflow")
    assert path.exists()
    bench.run(code=6)
    message = bench.errors()["message"]
    assert not message.startswith(" ")
    assert message.count("git worktree add") == 1


@pytest.mark.spec("RUN-9")
def test_words_of_an_agent_cannot_keep_a_section_out_of_the_report(bench: Bench) -> None:
    bench.agent.does("implementer", "ask('<!-- aiflow:end 2 -->')")
    bench.run(code=5)
    bench.agent.forget()
    bench.aiflow("resume", "RQ-1", "-a", "go on")
    assert " DONE" in bench.report()


@pytest.mark.spec("RUN-7")
def test_a_worktree_that_a_person_changed_while_planning_waits_refuses_too(bench: Bench) -> None:
    bench.agent.does("planner", "ask('?')")
    bench.run(code=5)
    bench.agent.forget()
    (bench.worktree() / "person.txt").write_text("mine")
    refused = bench.aiflow.json("resume", "RQ-1", "-a", "x", code=6)["error"]
    assert refused["reason_code"] == "WORKTREE_DIRTY"


@pytest.mark.spec("RUN-7", "RUN-11")
def test_a_recovery_asks_the_doctor_first(bench: Bench) -> None:
    process = bench.start_hanging()
    process.kill()
    process.wait()
    bench.configure(argv=["no-such-agent"])
    bench.aiflow("run", "RQ-1", code=3)
    assert bench.stage()["attempts"]["steps"]["S01"]["implementer"] == 1
    bench.configure()
    assert bench.run()["state"] == "DONE"


@pytest.mark.spec("RUN-7", "GIT-1")
def test_a_step_is_retried_though_its_worktree_is_gone(bench: Bench) -> None:
    run_id = stop_in(bench, "S02", "S01", "S02")
    shutil.rmtree(bench.worktree())
    result = bench.aiflow.json("retry-step", "RQ-1")
    assert result["state"] == "DONE"
    assert "half.txt" not in bench.files_at(result["branch"])
    kept = bench.git("for-each-ref", "--format=%(refname)", "refs/aiflow").splitlines()
    assert any("half.txt" in bench.files_at(ref) for ref in kept), (run_id, kept)
