"""`aiflow clean` (GIT-5): what closed runs left goes, what waits goes on afterwards, and nobody at work notices."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clean_yard import everything_in
from e2e.bench import Bench, git
from waiting import wait_until

GREEN = '[tests]\nunit = "test ! -e half.txt || test -e green.txt"'
MADE_GREEN = "write('green.txt', open('half.txt').read()); done('made it green')"


def stop_in_second_step(bench: Bench) -> Any:
    """Let a run stop in S02 because its tests fail; it leaves `half.txt` there."""
    bench.agent.plans("S01", "S02")
    bench.configure(GREEN)
    bench.agent.does("implementer", "write('half.txt', 'half\\n'); write('rest.txt', 'rest\\n'); done()", "S02")
    result = bench.run(code=7)
    bench.agent.forget()
    return result


def take_over(bench: Bench, run: Any) -> None:
    """Merge a run by hand: unlike `accept`, that leaves everything where it is."""
    bench.git("merge", "-q", "--no-edit", run["branch"])
    bench.aiflow("set", run["request_id"], "status=done")


def clean(bench: Bench, *args: str, code: int = 0) -> Any:
    return bench.aiflow.json("clean", *args, code=code)


def kinds(answer: Any, what: str = "removed") -> list[tuple[str, str]]:
    return sorted((item["kind"], item["why"]) for item in answer[what])


def ours(bench: Bench) -> list[str]:
    lines = bench.git("for-each-ref", "--format=%(refname)", "refs/heads/aiflow", "refs/aiflow").splitlines()
    return [*lines, *sorted(str(path) for path in bench.state.glob("aiflow/*/worktrees/*"))]


# --- what goes and what is said --------------------------------------------------------------------------------------


@pytest.mark.spec("GIT-5")
def test_a_night_s_work_is_cleaned_away_and_a_dry_run_says_so_before(bench: Bench) -> None:
    assert bench.aiflow("clean").stdout == "Nothing to clean.\n"
    for number in (2, 3):
        bench.add_request(f"RQ-{number}")
    first, second, third = (bench.run(f"RQ-{number}") for number in (1, 2, 3))
    take_over(bench, first)
    bench.aiflow("set", "RQ-2", "status=done")  # without taking it over
    (Path(third["worktree"]) / "mine.txt").write_text("mine\n")
    young = clean(bench)
    assert (young["removed"], kinds(young, "kept")) == ([], [("run", "young")] * 3)
    before = everything_in(bench.root, bench.state)

    told = bench.aiflow("clean", "--now", "--dry-run").stdout
    dry = clean(bench, "--now", "--dry-run")

    assert everything_in(bench.root, bench.state) == before
    assert re.search(rf"^branch +aiflow/RQ-1/{first['run_id']} +accepted$", told, re.MULTILINE)
    assert re.search(rf"^worktree +[\d.]+ kB +{second['run_id']} +its request is done or archived$", told, re.MULTILINE)
    assert "Nothing was changed." in told
    assert (
        f"  branch  aiflow/RQ-2/{second['run_id']}\n    Not merged. `aiflow clean --unmerged` removes it too.\n" in told
    )
    assert f"  worktree  {third['worktree']}\n    It has uncommitted changes.\n" in told
    done = clean(bench, "--now")
    assert {**done, "is_dry_run": True} == dry
    assert kinds(done) == [("branch", "accepted"), ("worktree", "accepted"), ("worktree", "request_closed")]
    assert kinds(done, "kept") == [("branch", "not_merged"), ("worktree", "unsaved")]
    assert done["freed_bytes"] > 0
    assert ours(bench) == [
        f"refs/heads/aiflow/RQ-2/{second['run_id']}",
        f"refs/heads/aiflow/RQ-3/{third['run_id']}",
        third["worktree"],
    ]
    assert bench.status("RQ-1") == "done"
    assert len([entry for entry in bench.journal() if entry["kind"] == "cleaned"]) == 2


def type_into(bench: Bench, text: str, *args: str) -> tuple[int, str]:
    """Call the program on a terminal and type something."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "aiflow", *args],
        cwd=bench.root,
        env=bench.aiflow.environ,
        stdin=side,
        stdout=side,
        stderr=side,
    )
    os.close(side)
    os.write(main, text.encode())
    shown = b""
    try:
        while data := os.read(main, 4096):
            shown += data
    except OSError:  # the other end is closed
        pass
    os.close(main)
    return process.wait(), shown.decode()


@pytest.mark.spec("GIT-5", "ERR-3")
def test_a_person_is_asked_before_unmerged_work_goes_and_told_what_brings_it_back(bench: Bench) -> None:
    run = bench.run()
    bench.aiflow("set", "RQ-1", "status=done")
    commit, before = bench.git("rev-parse", run["branch"]), ours(bench)
    assert "not both" in bench.aiflow("clean", "--now", "--days", "3", code=2).stderr
    assert bench.aiflow.json("clean", "RQ-11", code=2)["error"]["reason_code"] == "REQUEST_NOT_FOUND"
    assert bench.aiflow("clean", "--days", "3", "--lang", "ja").stdout == (
        "片付けるものはありません。\n3日以内に変更された Run: 1件（--days N または --now で対象になります）\n"
    )
    code, shown = type_into(bench, "n\n", "clean", "--now", "--unmerged")
    assert (code, ours(bench)) == (130, before)
    assert "This removes work that is not in any base branch: 1. Continue?" in shown
    code, shown = type_into(bench, "y\n", "clean", "--now", "--unmerged")
    assert (code, ours(bench)) == (0, [])
    back = f"git branch {run['branch']} {commit}"
    assert back in shown
    bench.git(*back.split()[1:])
    assert "S01.txt" in bench.files_at(run["branch"])
    assert back in bench.aiflow("clean", "--now", "--unmerged").stdout  # a script is not asked


@pytest.mark.spec("GIT-5")
def test_what_cannot_be_removed_is_told_with_the_exit_code_of_its_reason(bench: Bench) -> None:
    run = bench.run()
    take_over(bench, run)
    script = (
        "import os, sys\n"
        "real = os.rename\n"
        "def rename(old, new):\n"
        "    if old.endswith(sys.argv[1]): raise PermissionError(13, 'Permission denied', old)\n"
        "    real(old, new)\n"
        "os.rename = rename\n"
        "from aiflow.cli.main import main\n"
        "main(['clean', '--now'])\n"
    )
    command = [sys.executable, "-c", script, run["run_id"]]
    done = subprocess.run(
        command, cwd=bench.root, env=bench.aiflow.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr == f"IO_ERROR: {run['worktree']}: Permission denied\n"
    assert run["branch"] in bench.git("branch", "--list", "aiflow/*")
    assert kinds(clean(bench, "--now")) == [("branch", "accepted"), ("worktree", "accepted")]


# --- what waits goes on ----------------------------------------------------------------------------------------------


@pytest.mark.spec("GIT-5", "RUN-7")
def test_a_run_that_waits_goes_on_after_its_worktree_was_cleaned_away(bench: Bench) -> None:
    stopped = stop_in_second_step(bench)
    worktree, files = Path(stopped["worktree"]), bench.folder()
    left = {path.name: path.read_text() for path in worktree.iterdir() if path.is_file() and path.name != ".git"}
    (worktree / "built.ignored").write_text("x")
    assert kinds(clean(bench, "--now", "--unmerged")) == [("worktree", "waiting")]
    assert not worktree.exists()
    assert (files / "S02.patch").exists()
    bench.agent.does("implementer", MADE_GREEN)

    result = bench.aiflow.json("resume", "RQ-1")

    assert (result["state"], result["run_id"]) == ("DONE", stopped["run_id"])
    assert bench.agent.roles.count("implementer S01") == 1
    files_before = [call["files"] for call in bench.agent.calls if call["document"]["role"] == "implementer"][-1]
    assert set(files_before) >= set(left)
    assert {"S01.txt", "half.txt", "green.txt"} <= set(bench.files_at(result["branch"]))
    assert len(bench.commits(result["branch"])) == 2
    bench.aiflow("accept", "RQ-1")
    assert bench.status() == "done"
    assert not worktree.exists()
    assert kinds(clean(bench, "--now")) == [("branch", "accepted"), ("ref", "accepted")]


@pytest.mark.spec("GIT-5", "RUN-7")
def test_a_persons_edits_that_a_run_took_over_are_not_lost(bench: Bench) -> None:
    stopped = stop_in_second_step(bench)
    worktree = Path(stopped["worktree"])
    (worktree / "edit.txt").write_text("a person's\n")
    assert kinds(clean(bench, "--now", "--unmerged"), "kept") == [("worktree", "unsaved")]
    bench.agent.does("implementer", "ask('Which colour?')")
    bench.aiflow.json("resume", "RQ-1", "--keep-changes", code=5)
    assert kinds(clean(bench, "--now")) == [("worktree", "waiting")]
    bench.agent.forget()
    bench.agent.does("implementer", MADE_GREEN)
    result = bench.aiflow.json("resume", "RQ-1", "--answer", "blue")
    assert {"half.txt", "edit.txt", "green.txt"} <= set(bench.files_at(result["branch"]))


@pytest.mark.spec("GIT-5", "RUN-6")
def test_a_step_is_done_again_after_the_worktree_was_cleaned_away(bench: Bench) -> None:
    stopped = stop_in_second_step(bench)
    clean(bench, "--now")
    result = bench.aiflow.json("retry-step", "RQ-1")
    assert (result["state"], result["run_id"]) == ("DONE", stopped["run_id"])
    assert "half.txt" not in bench.files_at(result["branch"])
    assert "half.txt" in bench.files_at(f"refs/aiflow/retried/{stopped['run_id']}/S02-1")


@pytest.mark.spec("GIT-5", "RUN-7")
def test_a_persons_commits_on_the_branch_count_without_the_worktree(bench: Bench) -> None:
    stopped = stop_in_second_step(bench)
    worktree = Path(stopped["worktree"])
    git(worktree, "add", "half.txt")
    git(worktree, "commit", "-qm", "half of it")  # resume would go on from here, with the rest as it lies there
    assert kinds(clean(bench, "--now"), "kept") == [("worktree", "unsaved")]
    git(worktree, "add", "-A")
    git(worktree, "commit", "-qm", "the rest")
    assert kinds(clean(bench, "--now")) == [("worktree", "waiting")]
    bench.agent.does("implementer", MADE_GREEN)
    result = bench.aiflow.json("resume", "RQ-1")
    assert {"half.txt", "rest.txt", "green.txt"} <= set(bench.files_at(result["branch"]))


# --- at the same time ------------------------------------------------------------------------------------------------


@pytest.mark.faults
@pytest.mark.spec("GIT-5", "LCK-7")
def test_a_run_that_is_at_work_is_not_touched_and_not_disturbed(bench: Bench) -> None:
    bench.add_request("RQ-2")
    take_over(bench, bench.run("RQ-2"))
    process = bench.start_hanging()
    answer = clean(bench, "--now", "--unmerged")
    assert kinds(answer) == [("branch", "accepted"), ("worktree", "accepted")]
    assert kinds(answer, "kept") == [("run", "locked")]
    assert (bench.worktree() / "half.txt").exists()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert kinds(clean(bench, "--now", "--unmerged"), "kept") == [("run", "locked")]
    bench.aiflow("doctor", "--full")
    assert kinds(clean(bench, "--now")) == [("worktree", "waiting")]
    result = bench.aiflow.json("resume", "RQ-1")
    assert {"half.txt", "S01.txt"} <= set(bench.files_at(result["branch"]))


@pytest.mark.faults
@pytest.mark.spec("GIT-5")
def test_a_run_goes_on_while_it_is_being_cleaned(bench: Bench) -> None:
    stop_in_second_step(bench)
    bench.agent.does("implementer", MADE_GREEN)
    cleaners = [bench.start("clean", "--now", "--json") for _ in range(2)]
    goes_on = bench.start("resume", "RQ-1", "--json")
    answers = [json.loads(process.communicate()[0]) for process in (*cleaners, goes_on)]
    assert [process.returncode for process in (*cleaners, goes_on)] == [0, 0, 0], answers
    assert answers[-1]["state"] == "DONE"
    assert {"S01.txt", "half.txt", "green.txt"} <= set(bench.files_at(answers[-1]["branch"]))


@pytest.mark.faults
@pytest.mark.spec("GIT-5")
def test_killed_while_it_empties_a_worktree_the_next_one_goes_on(bench: Bench) -> None:
    run = bench.run()
    take_over(bench, run)
    for folder in range(40):
        many = Path(run["worktree"], f"{folder}.ignored")
        many.mkdir()
        for number in range(250):
            (many / f"{number}.txt").touch()
    process = bench.start("clean", "--now")
    gone = Path(f"{run['worktree']}.gone")
    wait_until(lambda: gone.exists() or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert gone.is_dir()
    assert not Path(run["worktree"]).exists()
    rest = clean(bench, "--now")
    assert ("leftover", "leftover") in kinds(rest)
    assert ours(bench) == []
    assert clean(bench, "--now")["removed"] == []
