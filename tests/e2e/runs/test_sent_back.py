"""The run after a send-back with real git (REQ-6a): from the old branch, in line with the base; fresh; killed; gone."""

from __future__ import annotations

import json
import shutil
import signal
from typing import Any

import pytest

from e2e.bench import Bench
from waiting import wait_until

pytestmark = pytest.mark.spec("REQ-6a")

WRITE = "write('app.txt', 'ours\\n'); write('new.txt', 'new\\n'); done('Wrote new.txt')"
MORE = "write('more.txt', 'more\\n'); done('Wrote more.txt')"
RESOLVE = "assert '<<<<<<<' in open('app.txt').read(); write('app.txt', 'theirs and ours\\n'); done('resolved')"
WORDS = "Say more.\n\nnew.txt:1: in capitals"


def sent_back(bench: Bench, *flags: str) -> Any:
    """Let a run change app.txt and make new.txt, and send it back."""
    bench.agent.does("implementer", WRITE)
    done = bench.run()
    bench.aiflow.json("send-back", "RQ-1", "-m", WORDS, *flags)
    bench.agent.forget()
    return done


def commit_on_base(bench: Bench, path: str, text: str) -> str:
    (bench.root / path).write_text(text)
    bench.git("add", path)
    bench.git("commit", "-qm", f"a person changes {path}")
    return bench.git("rev-parse", "HEAD")


def parents(bench: Bench, commit: str) -> list[str]:
    return bench.git("rev-list", "--parents", "-1", commit).split()[1:]


def test_it_continues_the_branch_and_its_agents_know_what_was_done_and_said(bench: Bench) -> None:
    first = sent_back(bench)
    tip = bench.git("rev-parse", first["branch"])
    before = bench.git("rev-parse", "main")
    bench.agent.does("implementer", MORE)
    second = bench.run()
    assert (second["state"], second["continues"], second["replaces"]) == ("DONE", first["run_id"], None)
    assert parents(bench, second["branch"]) == [tip]
    assert bench.git("rev-parse", first["branch"]) == tip
    assert (bench.git("rev-parse", "main"), (bench.root / "app.txt").read_text()) == (before, "app\n")
    for role in ("planner", "implementer"):
        told = bench.agent.last(role)
        assert told["feedback"] == [{"reason_code": "SENT_BACK", "summary": WORDS, "detail": ""}]
        former = told["former"]
        assert (former["run_id"], former["is_continued"], former["commit"]) == (first["run_id"], True, tip)
        (step,) = former["steps"]
        assert (step["id"], step["is_done"], step["summary"], step["commit"]) == ("S01", True, "Wrote new.txt", tip)
        assert "+new" in former["diff"]
    stage = bench.stage(run_id=first["run_id"])
    assert stage["continued_by"] == second["run_id"]
    assert bench.stage()["continues"] == {"run_id": first["run_id"], "commit": tip}
    assert f"Continues: {first['run_id']}" in bench.report()
    assert first["run_id"] in bench.aiflow("show", second["run_id"]).stdout
    assert second["run_id"] in bench.aiflow("show", first["run_id"]).stdout
    diff = bench.aiflow.json("diff", "RQ-1")
    assert [file["path"] for file in diff["files"]] == ["app.txt", "more.txt", "new.txt"]
    own = bench.aiflow.json("diff", "RQ-1", "--step", "S01")
    assert [file["path"] for file in own["files"]] == ["more.txt"]
    bench.aiflow.json("accept", "RQ-1")
    assert (bench.status(), bench.git("show", "main:new.txt")) == ("done", "new")
    trailers = bench.git("log", "--format=%(trailers:key=Aiflow-Run,valueonly,separator=)", f"{before}..main").split()
    assert trailers == [second["run_id"], second["run_id"], first["run_id"]]


def test_a_base_that_has_moved_is_merged_in_and_tested_before_anything_is_planned(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "test ! -e new.txt || test ! -e other.txt || test -e mended.txt"')
    first = sent_back(bench)
    tip = bench.git("rev-parse", first["branch"])
    base = commit_on_base(bench, "other.txt", "other\n")
    calls = len(bench.agent.roles)
    bench.agent.does("implementer", "write('mended.txt' if step == 'S01' else 'more.txt', 'x\\n'); done()")
    second = bench.run()
    assert second["state"] == "DONE"
    assert bench.agent.roles[calls:] == ["implementer S01", "qa S01", "planner", "implementer S02", "qa S02"]
    merge = bench.stage()["steps"][0]["base"]
    assert parents(bench, merge) == [tip, base]
    assert second["steps"][0]["title"] == "Merge main"
    bench.aiflow.json("accept", "RQ-1")
    assert {"new.txt", "other.txt", "mended.txt", "more.txt"} <= set(bench.files_at("main"))


def test_conflicts_with_a_moved_base_are_resolved_first(bench: Bench) -> None:
    first = sent_back(bench)
    tip = bench.git("rev-parse", first["branch"])
    base = commit_on_base(bench, "app.txt", "theirs\n")
    calls = len(bench.agent.roles)
    bench.agent.does("implementer", f"if step == 'S01':\n    {RESOLVE}\nelse:\n    {MORE}")
    second = bench.run()
    assert second["state"] == "DONE"
    assert bench.agent.roles[calls:] == ["implementer S01", "qa S01", "planner", "implementer S02", "qa S02"]
    resolved = second["steps"][0]["commit"]
    assert parents(bench, resolved) == [tip, base]
    bench.aiflow.json("accept", "RQ-1")
    assert bench.git("show", "main:app.txt") == "theirs and ours"
    assert bench.git("log", "--format=%H", "-S<<<<<<<", "main") == ""


def test_fresh_starts_from_the_base_with_the_comment_alone(bench: Bench) -> None:
    sent_back(bench, "--fresh")
    bench.agent.does("implementer", MORE)
    second = bench.run()
    assert (second["state"], second["continues"]) == ("DONE", None)
    assert parents(bench, second["branch"]) == [bench.git("rev-parse", "main")]
    told = bench.agent.last("planner")
    assert (told["feedback"][0]["summary"], told["former"]) == (WORDS, None)


def test_a_branch_that_is_gone_is_said(bench: Bench) -> None:
    first = sent_back(bench)
    bench.git("worktree", "remove", "--force", first["worktree"])
    bench.git("branch", "-D", first["branch"])
    bench.agent.does("implementer", MORE)
    done = bench.aiflow("run", "RQ-1")
    assert f"FORMER_BRANCH_GONE: the branch of {first['run_id']} is gone" in done.stdout + done.stderr
    assert "FORMER_BRANCH_GONE" in bench.report()
    assert bench.stage()["continues"] is None
    assert "new.txt" not in bench.files_at(bench.stage()["branch"])


@pytest.mark.spec("REQ-7")
def test_without_its_runs_a_request_that_was_sent_back_starts_from_the_base(bench: Bench) -> None:
    sent_back(bench)
    shutil.rmtree(bench.root / "runs")
    bench.agent.does("implementer", MORE)
    assert bench.run()["state"] == "DONE"
    assert "Say more." in bench.agent.last("planner")["request"]["body"]


@pytest.mark.spec("RUN-11")
@pytest.mark.parametrize("where", ["merge", "plan", "step"])
def test_killed_on_the_way_it_continues_where_it_was(bench: Bench, where: str) -> None:
    first = sent_back(bench)
    commit_on_base(bench, "app.txt", "theirs\n")
    at = {"merge": "role == 'implementer' and step == 'S01'", "plan": "role == 'planner'", "step": "step == 'S02'"}
    hang = f"if {at[where]} and not (HERE / 'killed').exists():\n    (HERE / 'killed').touch(); time.sleep(600)\n"
    work = f"if step == 'S01':\n    {RESOLVE}\nelse:\n    {MORE}"
    bench.agent.does("implementer", hang + work)
    plan = json.dumps({"steps": [{"id": "S01", "title": "More"}]})
    bench.agent.does("planner", f"{hang}answer({plan!r})")
    process = bench.start("run", "RQ-1")
    wait_until((bench.agent.folder / "killed").exists)
    process.send_signal(signal.SIGKILL)
    process.wait()
    second = bench.run()
    assert (second["state"], second["continues"]) == ("DONE", first["run_id"])
    assert bench.stage(run_id=first["run_id"])["continued_by"] == second["run_id"]
    bench.aiflow.json("accept", "RQ-1")
    assert bench.git("show", "main:app.txt") == "theirs and ours"
    assert {"new.txt", "more.txt"} <= set(bench.files_at("main"))
    assert bench.locks() == []


@pytest.mark.spec("GIT-5")
def test_a_branch_that_the_next_run_continues_is_not_cleaned_away(bench: Bench) -> None:
    first = sent_back(bench)
    cleaned = bench.aiflow.json("clean", "--unmerged", "--days", "0", "--yes")
    assert first["branch"] not in [item["name"] for item in cleaned["removed"]]
    bench.agent.does("implementer", MORE)
    assert bench.run()["continues"] == first["run_id"]


def test_after_an_undo_the_work_is_continued_though_git_takes_it_for_merged(bench: Bench) -> None:
    bench.agent.does("implementer", WRITE)
    first = bench.run()
    bench.aiflow.json("accept", "RQ-1")
    bench.aiflow.json("undo", "RQ-1", "--yes")
    assert "new.txt" not in bench.files_at("main")
    bench.aiflow.json("send-back", "RQ-1", "-m", WORDS)
    bench.agent.forget()
    bench.agent.does("implementer", MORE)
    second = bench.run()
    assert (second["state"], second["continues"]) == ("DONE", first["run_id"])
    assert {"new.txt", "more.txt"} <= set(bench.files_at(second["branch"]))
    bench.aiflow.json("accept", "RQ-1")
    assert {"new.txt", "more.txt"} <= set(bench.files_at("main"))
    assert bench.git("show", "main:app.txt") == "ours"
