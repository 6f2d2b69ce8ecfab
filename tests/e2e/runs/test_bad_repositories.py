"""Repositories, settings and disks in a bad way: what is refused, what is recovered, and that nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Program
from e2e.bench import Bench, git, is_alive, tree_of


def untouched(bench: Bench) -> bool:
    """Tell whether a refused start left nothing behind."""
    return bench.run_ids() == [] and bench.status() == "ready" and bench.locks() == []


@pytest.mark.spec("DOC-1", "RUN-7")
def test_a_repository_without_commits_is_refused(repository: Path, bench: Bench) -> None:
    git(repository, "update-ref", "-d", "HEAD")
    refused = bench.aiflow.json("run", "RQ-1", code=6)["error"]
    assert refused["reason_code"] == "NO_COMMITS"
    assert untouched(bench)


@pytest.mark.spec("DOC-1", "RUN-7")
def test_a_base_branch_that_does_not_exist_is_refused(bench: Bench) -> None:
    refused = json.loads(bench.aiflow("-c", "base_branch=develop", "run", "RQ-1", "--json", code=6).stdout)["error"]
    assert refused["reason_code"] == "BASE_BRANCH_MISSING"
    assert "develop" in json.dumps(refused)
    assert untouched(bench)


@pytest.mark.spec("DOC-1", "RUN-7")
def test_a_detached_head_needs_a_base_branch(bench: Bench) -> None:
    bench.git("checkout", "-q", "--detach")
    refused = bench.aiflow.json("run", "RQ-1", code=6)["error"]
    assert refused["reason_code"] == "BASE_BRANCH_MISSING"
    assert "base_branch" in json.dumps(refused["actions"])
    assert untouched(bench)


@pytest.mark.spec("DOC-1", "RUN-7")
def test_no_git_identity_is_refused_before_the_agent_works(bench: Bench) -> None:
    bench.git("config", "--unset", "user.name")
    bench.git("config", "--unset", "user.email")
    bench.git("config", "user.useConfigOnly", "true")
    refused = bench.aiflow.json("run", "RQ-1", code=6)["error"]
    assert refused["reason_code"] == "GIT_IDENTITY_MISSING"
    assert untouched(bench)
    assert bench.agent.calls == []


@pytest.mark.spec("CFG", "ERR-3")
@pytest.mark.parametrize("text", ["nonsense = 3", "[agent\nkind", "[limits]\nrole_attempts = 0", "[tests]\nunit = 3"])
def test_broken_settings_stop_everything_with_file_key_and_line(bench: Bench, text: str) -> None:
    (bench.root / "aiflow.toml").write_text(text)
    for command in (["run", "RQ-1"], ["doctor"], ["resume", "RQ-1"]):
        refused = bench.aiflow.json(*command, code=2)["error"]
        assert refused["reason_code"] == "SETTINGS_INVALID"
        assert "aiflow.toml" in json.dumps(refused)
    assert untouched(bench)


@pytest.mark.spec("CFG", "RUN-2")
def test_settings_that_break_during_a_run_do_not_matter_to_it(bench: Bench) -> None:
    bench.agent.does("planner", "write(ROOT / 'aiflow.toml', '['); answer({'steps': [{'id': 'S01', 'title': 'T'}]})")
    assert bench.run()["state"] == "DONE"


@pytest.mark.spec("RUN-15", "REQ-4")
@pytest.mark.parametrize(
    ("text", "code", "exit_code"),
    [
        ("---\nstatus: draft\n---\n# T\n", "NOT_READY", 4),
        ("---\nstatus: blocked\n---\n# T\n", "NOT_READY", 4),
        ("---\nstatus: ready\ndepends_on: [RQ-1]\n---\n# T\n", "DEPENDS_NOT_DONE", 4),
        ("---\nstatus: ready\ndepends_on: [RQ-77]\n---\n# T\n", "DEPENDS_NOT_FOUND", 2),
        ("---\nstatus: ready\ndepends_on: [RQ-5]\n---\n# T\n", "DEPENDS_CYCLE", 2),
        ("---\nstatus: [ready\n---\n# T\n", "REQUEST_INVALID", 2),
        (None, "REQUEST_NOT_FOUND", 2),
    ],
)
def test_only_a_runnable_request_runs_and_the_exclusion_is_told(
    bench: Bench, text: str | None, code: str, exit_code: int
) -> None:
    if text is not None:
        (bench.root / "requests/RQ-5.md").write_text(text)
    before = (bench.root / "requests/RQ-5.md").read_bytes() if text else None
    refused = bench.aiflow.json("run", "RQ-5", code=exit_code)["error"]
    assert refused["reason_code"] == code
    assert refused["actions"] or refused["detail"]
    assert untouched(bench)
    assert text is None or (bench.root / "requests/RQ-5.md").read_bytes() == before


@pytest.mark.spec("RUN-15", "RUN-14", "SEL-1")
def test_a_request_that_stopped_is_not_started_anew(bench: Bench) -> None:
    bench.agent.does("implementer", "ask('?')")
    bench.run(code=5)
    assert bench.aiflow.json("run", "RQ-1", code=4)["error"]["reason_code"] == "NOT_READY"
    bench.aiflow("set", "RQ-1", "status=ready")
    refused = bench.aiflow.json("run", "RQ-1", code=4)["error"]
    assert refused["reason_code"] == "LATEST_RUN_NEEDS_INPUT"
    assert "resume" in json.dumps(refused["actions"])
    assert len(bench.run_ids()) == 1


DAMAGED = [b"", b"{", b"null", b"\xff\xfe", None]


@pytest.mark.spec("RUN-1", "REQ-5", "REQ-7")
def test_a_damaged_stage_is_explained_and_a_new_run_is_the_way_on(bench: Bench) -> None:
    bench.agent.does("implementer", "ask('?')")
    bench.run(code=5)
    bench.agent.forget()
    stage = bench.folder() / "stage.json"
    whole = stage.read_bytes()
    for content in DAMAGED:
        stage.write_bytes(whole[: len(whole) // 2] if content is None else content)
        refused = bench.aiflow.json("resume", "RQ-1", code=3)["error"]
        assert refused["reason_code"] == "RUN_LOST", content
        assert refused["actions"]
    for command in ("retry-step", "replan", "cancel", "report", "logs"):
        assert bench.aiflow.json(command, "RQ-1", code=3)["error"]["reason_code"] == "RUN_LOST", command
    assert bench.aiflow.json("runs")["runs"][0]["reason_code"] == "RUN_LOST"
    bench.aiflow("doctor", "--full")
    bench.aiflow("show", "RQ-1")
    assert bench.status() == "blocked"
    bench.aiflow("set", "RQ-1", "status=ready")
    assert bench.run()["state"] == "DONE"
    assert len(bench.run_ids()) == 2


@pytest.mark.spec("REQ-7", "DOC-2", "REQ-5")
def test_the_doctor_sets_a_request_right_whose_runs_are_gone(bench: Bench) -> None:
    process = bench.start_hanging()
    process.kill()
    process.wait()
    bench.git("clean", "-fdxq")
    assert bench.status() == "running"
    found = bench.aiflow.json("doctor", "--full")
    runs = next(check for check in found["checks"] if check["id"] == "runs")
    assert (runs["result"], runs["evidence"]) == ("WARN", ["RQ-1"])
    assert bench.status() == "blocked"


@pytest.mark.spec("LCK-3", "LCK-4")
def test_a_broken_lock_ends_the_run_that_held_it(bench: Bench) -> None:
    process = bench.start_hanging()
    pid = bench.agent.calls[-1]["pid"]
    before = bench.stage()
    broken = bench.aiflow.json("locks", "break", "RQ-1", "--yes")
    assert broken["broken"]["request_id"] == "RQ-1"
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 4
    assert json.loads(out)["error"]["reason_code"] == "LOCK_LOST"
    assert not is_alive(pid)
    assert bench.stage() == before
    assert bench.run()["state"] == "DONE"  # the interrupted run is recovered
    assert len(bench.run_ids()) == 1


FILL = """
with open(ROOT / 'fill.ignored', 'wb') as file:
    try:
        while True: file.write(b'x' * 100_000); file.flush()
    except OSError: pass
try:
    with open(ROOT / 'fill2.ignored', 'wb', buffering=0) as file:
        while True: file.write(b'x')
except OSError: pass
"""


@pytest.mark.spec("RUN-1", "RUN-2", "DOC-1", "RUN-11")
@pytest.mark.parametrize("where", ["repository", "both"])
def test_a_full_disk_loses_nothing(tiny_disk: Path, tmp_path: Path, where: str) -> None:
    root = tiny_disk / "repository"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    bench = Bench(root, tmp_path)
    if where == "both":
        bench.aiflow.environ["XDG_STATE_HOME"] = str(tiny_disk / "state")
    bench.agent.plans("S01", "S02")
    bench.agent.does("implementer", f"write('early.txt', 'x' * 10)\n{FILL}\ndone()", "S02")

    done = subprocess.run(
        [sys.executable, "-m", "aiflow", "run", "RQ-1", "--json"],
        cwd=root,
        env=bench.aiflow.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 3, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "DISK_FULL" in done.stdout
    stage = bench.stage()  # readable, however full
    assert stage["steps"][0]["state"] == "done"
    while_full = bench.aiflow.json("doctor", code=3)
    assert next(check for check in while_full["checks"] if check["id"] == "disk")["result"] == "FAIL"

    for path in root.glob("fill*.ignored"):
        path.unlink()
    bench.agent.forget()
    if stage["state"] != "NEEDS_INPUT":  # that it stopped could not be written: it is recovered as after a crash
        subprocess.run([sys.executable, "-m", "aiflow", "run", "RQ-1"], cwd=root, env=bench.aiflow.environ, check=False)
    result = bench.aiflow.json("resume", "RQ-1") if bench.stage()["state"] == "NEEDS_INPUT" else bench.stage()
    assert result["state"] == "DONE"
    assert len(bench.run_ids()) == 1
    assert len(bench.commits(result["branch"])) == 2
    assert "early.txt" in bench.files_at(result["branch"])  # what the unfinished step had done is still there
    assert bench.locks() == []
    assert bench.status() == "blocked"


@pytest.mark.spec("GIT-1", "RUN-3")
def test_a_repository_with_hooks_signing_and_templates_is_committed_to_all_the_same(bench: Bench) -> None:
    bench.git("config", "commit.gpgSign", "true")
    bench.git("config", "gpg.program", "/bin/false")
    bench.git("config", "commit.template", "/no/such/file")
    bench.git("config", "core.hooksPath", ".hooks")
    hooks = bench.root / ".hooks"
    hooks.mkdir()
    for name in ("pre-commit", "commit-msg", "post-checkout", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {bench.state}.{name}\nexit 1\n")
        (hooks / name).chmod(0o755)
    assert bench.run()["state"] == "DONE"
    assert list(bench.state.parent.glob("state.*")) == []


@pytest.mark.spec("GIT-1")
def test_a_project_below_odd_names_and_settings_of_git_works(tmp_path: Path) -> None:
    root = tmp_path / "my projekt 日本 [x]*"
    root.mkdir()
    git(root, "init", "-q", "-b", "feature/ünï")
    bench = Bench(root, tmp_path)
    bench.git("config", "core.autocrlf", "input")
    bench.git("config", "status.showUntrackedFiles", "no")
    bench.git("config", "core.quotepath", "true")
    bench.git("config", "diff.noprefix", "true")
    bench.git("config", "alias.commit", "commit --amend")
    bench.agent.does("implementer", "write('ñ [1]*.txt', 'x\\n'); done()")
    result = bench.run()
    assert result["state"] == "DONE"
    names = bench.git("-c", "core.quotepath=false", "ls-tree", "-r", "--name-only", result["branch"])
    assert "ñ [1]*.txt" in names.splitlines()


@pytest.mark.spec("GIT-1")
def test_a_linked_worktree_of_the_user_is_a_checkout_of_its_own(bench: Bench, tmp_path: Path) -> None:
    other = tmp_path / "linked"
    bench.git("worktree", "add", "-q", "-b", "side", str(other))
    (other / "requests/RQ-1.md").write_text((bench.root / "requests/RQ-1.md").read_text())
    before = {k: v for k, v in tree_of(bench.root).items() if not k.startswith(".git")}
    program = Program(other)
    program.environ = bench.aiflow.environ
    result = program.json("run", "RQ-1")
    assert (result["state"], result["base_branch"]) == ("DONE", "side")
    assert {k: v for k, v in tree_of(bench.root).items() if not k.startswith(".git")} == before
    assert (other / "runs/RQ-1").exists()


@pytest.mark.spec("GIT-4", "RUN-6")
def test_a_setup_that_fails_stops_the_run_which_resumes_when_it_is_mended(bench: Bench) -> None:
    bench.configure('[worktree]\nsetup = "echo trouble; exit 3"')
    result = bench.run(code=3)
    assert (result["state"], result["reason_code"]) == ("NEEDS_INPUT", "SETUP_FAILED")
    assert bench.agent.calls == []
    evidence = bench.errors()["evidence"]
    assert (evidence["command"], evidence["exit_code"]) == ("echo trouble; exit 3", 3)
    assert "trouble" in evidence["stderr_snippet"]

    bench.configure('[worktree]\nsetup = "true"')
    assert bench.aiflow.json("resume", "RQ-1")["state"] == "DONE"
