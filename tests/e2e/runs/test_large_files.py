"""A file that is too large for a commit, as people meet it: the agent is told, then the run stops (RUN-3, RUN-7)."""

from __future__ import annotations

import json

import pytest

from e2e.bench import Bench

LARGE = "open('data.bin', 'wb').truncate(2_000_000_000)"
LIMIT = "[limits]\nfile_mb = 1"


@pytest.fixture
def limited(bench: Bench) -> Bench:
    """A repository in which files may have 1 MB."""
    bench.configure(LIMIT)
    bench.commit()
    return bench


@pytest.mark.spec("RUN-3", "RUN-4", "RUN-7", "ERR-1")
def test_a_step_with_a_large_file_is_told_and_then_stops(limited: Bench) -> None:
    limited.agent.does("implementer", f"write('S01.txt', 'x\\n'); {LARGE}; done()")
    done = limited.aiflow("run", "RQ-1", "--json", code=5)
    stopped = json.loads(done.stdout)
    assert (stopped["state"], stopped["reason_code"], stopped["cause"]) == (
        "NEEDS_INPUT",
        "RETRY_LIMIT_EXCEEDED",
        "FILE_TOO_LARGE",
    )
    assert stopped["suggested_next"]["command"] == "aiflow retry-step RQ-1"
    assert "data.bin (2.0 GB)" in stopped["summary"]
    assert "limits.file_mb (1 MB)" in stopped["summary"]
    told = limited.agent.last("implementer")["feedback"]
    assert [(each["reason_code"], "data.bin (2.0 GB)" in each["summary"]) for each in told] == [
        ("FILE_TOO_LARGE", True)
    ]
    japanese = limited.aiflow("--lang", "ja", "show", stopped["run_id"]).stdout
    assert "limits.file_mb（1 MB）を超えるファイル" in japanese
    # What is kept of the step does not have it, and that is said.
    tree = limited.worktree()
    only_there = f"they exist only in the worktree {tree}: data.bin (2.0 GB)"
    assert only_there in done.stderr
    assert only_there in limited.report()
    patch = (limited.folder() / "S01.patch").read_text()
    assert ("S01.txt" in patch, "data.bin" in patch) == (True, False)
    assert (tree / "data.bin").stat().st_size == 2_000_000_000


@pytest.mark.spec("RUN-6", "RUN-7")
def test_a_retry_starts_without_the_file_and_says_that_it_is_gone(limited: Bench) -> None:
    limited.agent.does("implementer", f"{LARGE}; done()")
    limited.run(code=5)
    limited.agent.forget()
    again = limited.aiflow("retry-step", "RQ-1", "--json")
    assert json.loads(again.stdout)["state"] == "DONE"
    assert "too large to be kept under refs/aiflow/: data.bin (2.0 GB)" in again.stderr
    assert "S01.txt" in limited.files_at(json.loads(again.stdout)["branch"])


@pytest.mark.spec("RUN-3")
def test_a_second_attempt_without_the_file_is_done(limited: Bench) -> None:
    limited.agent.does("implementer", f"{LARGE}; done()", attempt=1)
    limited.agent.does("implementer", "os.unlink('data.bin'); write('S01.txt', 'x\\n'); done()", attempt=2)
    assert limited.run()["state"] == "DONE"


@pytest.mark.spec("RUN-7")
def test_a_step_that_stops_for_another_reason_says_that_its_large_file_was_not_saved(limited: Bench) -> None:
    limited.agent.does("implementer", f"write('half.txt', 'x\\n'); {LARGE}; ask('Which?')")
    done = limited.aiflow("run", "RQ-1", "--json", code=5)
    assert json.loads(done.stdout)["reason_code"] == "NEEDS_CLARIFICATION"
    assert "they exist only in the worktree" in done.stderr
    limited.agent.forget()
    limited.agent.does("implementer", "os.unlink('data.bin'); done()")
    assert limited.aiflow.json("resume", "RQ-1", "--answer", "This.")["state"] == "DONE"


@pytest.mark.spec("RUN-7", "RUN-6")
def test_a_persons_large_file_is_neither_committed_nor_deleted_unasked(limited: Bench) -> None:
    limited.agent.does("implementer", "write('S01.txt', 'x\\n'); done()")
    limited.configure(f'{LIMIT}\n[tests]\nunit = "test -e fixed"')
    limited.commit()
    limited.run(code=7)
    tree = limited.worktree()
    (tree / "fixed").touch()
    with (tree / "mine.bin").open("wb") as file:
        file.truncate(2_000_000)
    assert limited.aiflow.json("retry-step", "RQ-1", code=6)["error"]["reason_code"] == "WORKTREE_DIRTY"
    stopped = limited.aiflow.json("resume", "RQ-1", "--keep-changes", code=5)
    assert stopped["cause"] == "FILE_TOO_LARGE"
    assert (tree / "mine.bin").exists()
    limited.configure("[limits]\nfile_mb = 2")
    limited.commit()
    done = limited.aiflow.json("resume", "RQ-1", "--keep-changes")
    assert {"S01.txt", "fixed", "mine.bin"} <= set(limited.files_at(done["branch"]))
