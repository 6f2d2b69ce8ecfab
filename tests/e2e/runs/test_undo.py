"""Taking an acceptance back (REQ-6, GIT-3), with real git: a revert on the base, and the work brought in once more."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.bench import Bench


def accepted(bench: Bench) -> Any:
    """Let RQ-1's run change app.txt, add new.txt, and accept it."""
    bench.agent.does("implementer", "write('app.txt', 'ours\\n'); write('new.txt', 'new\\n'); done()")
    bench.run()
    return bench.aiflow.json("accept", "RQ-1")


def commit_on_base(bench: Bench, path: str, text: str, message: str = "a person's") -> str:
    (bench.root / path).write_text(text)
    bench.git("add", path)
    bench.git("commit", "-qm", message)
    return bench.git("rev-parse", "HEAD")


def files(bench: Bench) -> tuple[str, bool]:
    return (bench.root / "app.txt").read_text(), (bench.root / "new.txt").exists()


@pytest.mark.spec("REQ-5", "REQ-6", "GIT-3")
def test_undo_takes_the_work_out_of_the_base_and_blocks_the_request(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "pwd >> tested"')
    before = (bench.root / "app.txt").read_text()
    done = accepted(bench)
    merge = bench.git("rev-parse", "main")
    undone = bench.aiflow.json("undo", "RQ-1")
    revert = bench.git("rev-parse", "main")
    assert bench.git("rev-parse", "main^") == merge
    assert (undone["undone_as"], undone["accepted_as"], undone["reason_code"]) == (revert, None, "ACCEPTANCE_UNDONE")
    assert (files(bench), bench.status()) == ((before, False), "blocked")
    assert bench.git("diff", "--stat", f"{merge}^1", "main") == ""
    assert bench.git("status", "--porcelain", "--untracked-files=no") == "M aiflow.toml\n M requests/RQ-1.md"
    message = bench.git("log", "-1", "--format=%B")
    assert message.startswith(f'Revert "Merge RQ-1: {bench.stage()["title"]}"\n\nThis reverts commit {merge},')
    assert f"Aiflow-Request: RQ-1\nAiflow-Run: {done['run_id']}" in message
    assert bench.git("rev-parse", done["branch"]) == bench.git("rev-parse", f"{merge}^2")
    assert "undo, unit tests" in bench.log(1)
    assert not list(bench.state.glob("aiflow/*/worktrees/*.merge"))
    assert bench.locks() == []
    assert undone["suggested_next"]["command"] == 'aiflow send-back RQ-1 -m "…"'
    station = bench.aiflow.json("why", "RQ-1")["stations"][0]
    assert (station["latest_run"]["reason_code"], station["commands"]) == (
        "ACCEPTANCE_UNDONE",
        ['aiflow send-back RQ-1 -m "…"'],
    )
    statuses = [(e["data"]["from"], e["data"]["to"]) for e in bench.journal() if e["kind"] == "status_changed"]
    assert statuses[-1] == ("done", "blocked")
    again = bench.aiflow.json("undo", "RQ-1")
    assert (again["undone_as"], bench.git("rev-parse", "main")) == (revert, revert)


@pytest.mark.spec("REQ-6", "GIT-3")
def test_what_was_undone_is_accepted_again_and_undone_again(bench: Bench) -> None:
    before = (bench.root / "app.txt").read_text()
    accepted(bench)
    for _ in range(2):
        bench.aiflow.json("undo", "RQ-1")
        assert files(bench) == (before, False)
        commit_on_base(bench, "other.txt", bench.git("rev-parse", "HEAD"))
        again = bench.aiflow.json("accept", "RQ-1")
        assert (again["accepted_as"], bench.status()) == (bench.git("rev-parse", "main"), "done")
        assert files(bench) == ("ours\n", True)
    assert [e["event"] for e in bench.stage()["history"]].count("UNDONE") == 2
