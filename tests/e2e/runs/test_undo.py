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
    assert "`aiflow set RQ-1 status=archived`" in bench.aiflow("undo", "RQ-1").stdout


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


@pytest.mark.spec("GIT-3", "ERR-1")
def test_what_later_work_changed_again_is_not_undone_and_that_work_is_named(bench: Bench) -> None:
    accepted(bench)
    commit_on_base(bench, "app.txt", "ours, and theirs\n", "Go on\n\nAiflow-Request: RQ-2\nAiflow-Run: RUN-2")
    commit_on_base(bench, "app.txt", "ours, theirs and mine\n", "By hand")
    base = bench.git("rev-parse", "main")
    error = bench.aiflow.json("undo", "RQ-1", code=6)["error"]
    assert error["reason_code"] == "UNDO_CONFLICT"
    assert (error["context"]["files"], error["context"]["later"]) == ("app.txt", "“By hand”, RQ-2")
    assert (bench.git("rev-parse", "main"), bench.status()) == (base, "done")
    assert bench.stage()["accepted_as"]
    assert bench.stage()["history"][-1]["event"] == "KEPT"
    assert bench.locks() == []


@pytest.mark.spec("GIT-3", "ERR-1")
def test_tests_that_need_the_work_keep_it_in(bench: Bench) -> None:
    done = accepted(bench)
    bench.configure('[tests]\nunit = "test -e new.txt"')
    error = bench.aiflow.json("undo", "RQ-1", code=7)["error"]
    assert (error["reason_code"], error["context"]["command"]) == ("UNDO_TESTS_FAILED", "test -e new.txt")
    assert (bench.git("rev-parse", "main"), bench.status()) == (done["accepted_as"], "done")
    bench.git("revert", "-m", "1", "--no-edit", done["accepted_as"])
    by_hand = bench.git("rev-parse", "main")
    undone = bench.aiflow.json("undo", "RQ-1")
    assert (undone["undone_as"], bench.git("rev-parse", "main"), bench.status()) == (by_hand, by_hand, "blocked")
    bench.configure("")
    assert bench.aiflow.json("accept", "RQ-1")["accepted_as"] == bench.git("rev-parse", "main") != by_hand
    assert files(bench) == ("ours\n", True)


@pytest.mark.spec("GIT-3", "ERR-1")
def test_what_is_not_in_the_base_is_not_undone(bench: Bench) -> None:
    assert bench.aiflow.json("undo", "RQ-1", code=2)["error"]["reason_code"] == "RUN_NOT_FOUND"
    bench.agent.does("implementer", "write('app.txt', 'ours\\n'); done()")
    bench.run()
    assert bench.aiflow.json("undo", "RQ-1", code=4)["error"]["reason_code"] == "NOT_UNDOABLE"
    start = bench.git("rev-parse", "main")
    bench.aiflow.json("accept", "RQ-1")
    bench.git("reset", "-q", "--keep", start)
    error = bench.aiflow.json("undo", "RQ-1", code=4)["error"]
    assert (error["reason_code"], "no longer contains" in error["context"]["detail"]) == ("NOT_UNDOABLE", True)
    assert bench.status() == "done"


@pytest.mark.spec("GIT-3")
def test_a_checkout_in_the_way_keeps_the_work_in(bench: Bench) -> None:
    done = accepted(bench)
    (bench.root / "app.txt").write_text("not committed\n")
    error = bench.aiflow.json("undo", "RQ-1", code=6)["error"]
    assert error["reason_code"] == "CHECKOUT_IN_THE_WAY"
    assert any("aiflow undo RQ-1" in each for each in error["actions"])
    assert (bench.root / "app.txt").read_text() == "not committed\n"
    assert (bench.git("rev-parse", "main"), bench.status()) == (done["accepted_as"], "done")


@pytest.mark.spec("GIT-3", "REQ-6")
def test_work_that_a_person_merged_before_it_was_accepted_is_undone_whole(bench: Bench) -> None:
    before = (bench.root / "app.txt").read_text()
    bench.agent.does("implementer", "write('app.txt', 'ours\\n'); write('new.txt', 'new\\n'); done()")
    run = bench.aiflow.json("run", "RQ-1")
    bench.git("merge", "-q", "--no-edit", run["branch"])
    commit_on_base(bench, "other.txt", "later\n")
    bench.aiflow.json("accept", "RQ-1")
    bench.aiflow.json("undo", "RQ-1")
    assert files(bench) == (before, False)
    assert (bench.root / "other.txt").read_text() == "later\n"


@pytest.mark.spec("GIT-3", "REQ-6", "GIT-5")
def test_a_branch_that_was_cleaned_up_is_there_again_and_all_does_not_accept_it(bench: Bench) -> None:
    done = accepted(bench)
    bench.aiflow.json("clean", "--days", "0")
    assert bench.git("branch", "--list", done["branch"]) == ""
    bench.aiflow.json("undo", "RQ-1")
    assert bench.git("branch", "--list", done["branch"])
    base = bench.git("rev-parse", "main")
    assert bench.aiflow.json("accept", "--all")["accepted"] == []
    assert (bench.git("rev-parse", "main"), bench.status()) == (base, "blocked")


@pytest.mark.spec("REQ-6")
def test_what_was_built_on_the_work_is_named(bench: Bench) -> None:
    accepted(bench)
    for name, status in (("RQ-7", "done"), ("RQ-8", "ready"), ("RQ-9", "draft")):
        (bench.root / f"requests/{name}.md").write_text(f"---\nstatus: {status}\ndepends_on: [RQ-1]\n---\n\n# {name}\n")
    told = bench.aiflow("undo", "RQ-1", "--yes").stdout
    assert "Done already, and built on this work: RQ-7." in told
    assert "These wait until it is done again: RQ-8." in told
    assert "RQ-9" not in told
    built_on = bench.aiflow.json("undo", "RQ-1")["built_on"]
    assert built_on == {"done": ["RQ-7"], "running": [], "waits": ["RQ-8"]}


@pytest.mark.spec("REQ-6", "REQ-6a", "GIT-3")
def test_what_was_undone_is_sent_back_continued_and_accepted(bench: Bench) -> None:
    accepted(bench)
    commit_on_base(bench, "other.txt", "later\n")
    bench.aiflow.json("undo", "RQ-1")
    assert files(bench)[1] is False
    bench.aiflow.json("send-back", "RQ-1", "-m", "Say more.")
    bench.agent.does("implementer", "write('more.txt', 'more\\n'); done()")
    again = bench.run()
    assert (again["state"], len(bench.run_ids())) == ("DONE", 2)
    bench.aiflow.json("accept", "RQ-1")
    assert files(bench) == ("ours\n", True)
    assert (bench.root / "more.txt").read_text() == "more\n"
    assert (bench.root / "other.txt").read_text() == "later\n"
    bench.aiflow.json("undo", "RQ-1")
    assert files(bench)[1] is False
    assert not (bench.root / "more.txt").exists()
