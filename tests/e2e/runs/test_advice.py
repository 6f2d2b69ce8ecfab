"""Advice that works (ERR-1, SEL-5): what a refusal names is typed as it stands, and taken."""

from __future__ import annotations

import re
import shlex
import shutil
from typing import Any

import pytest

from e2e.bench import Bench
from e2e.runs.test_limits import ALWAYS_RED

UNKNOWN_RUN = "RUN-20260101-000000-abcdef"
# Where this stands a person has to say something themselves; all else is typed as it is advised.
OPEN = "…"
# A command that was taken ends well, or with what its own run came to.
TAKEN = (0, 7)


def typed_in(actions: list[str]) -> list[list[str]]:
    """The commands that actions name, apart from what a person has to fill in."""
    lines = [line for each in actions for line in re.findall(r"`(aiflow [^`]+)`", each) or [each]]
    return [shlex.split(line)[1:] for line in lines if line.startswith("aiflow ") and OPEN not in line]


def refuse(bench: Bench, *args: str, code: int) -> Any:
    """Have a command refused, and type everything that it advises: none of that is refused."""
    refused = bench.aiflow.json(*args, code=code)["error"]
    commands = typed_in(refused["actions"])
    assert commands
    for words in commands:
        process = bench.start(*words)
        told = process.communicate()
        assert process.returncode in TAKEN, (words, told)
    return refused


@pytest.mark.spec("ERR-1", "CLI")
@pytest.mark.parametrize("command", ["logs", "resume", "accept", "report"])
def test_a_request_that_never_ran_is_to_be_run(bench: Bench, command: str) -> None:
    refused = refuse(bench, command, "RQ-1", code=2)
    assert refused["reason_code"] == "RUN_NOT_FOUND"
    assert refused["actions"] == ["aiflow run RQ-1", "aiflow why RQ-1"]
    assert bench.run_ids()  # it has run now


@pytest.mark.spec("ERR-1", "CLI")
def test_a_draft_that_never_ran_is_to_be_looked_at(bench: Bench) -> None:
    bench.add_request("RQ-2", status="draft")
    assert refuse(bench, "logs", "RQ-2", code=2)["actions"] == ["aiflow show RQ-2", "aiflow why RQ-2"]


@pytest.mark.spec("ERR-1", "CLI")
def test_an_unknown_run_is_to_be_looked_up(bench: Bench) -> None:
    assert refuse(bench, "show", UNKNOWN_RUN, code=2)["actions"] == ["aiflow runs"]


@pytest.mark.spec("ERR-1", "RUN-6", "REQ-6")
def test_what_is_accepted_is_neither_resumed_nor_sent_back(bench: Bench) -> None:
    bench.run()
    bench.aiflow("accept", "RQ-1")
    for command in ("resume", "retry-step", "replan"):
        refused = refuse(bench, command, "RQ-1", code=4)
        assert refused["reason_code"] == "RUN_NOT_RESUMABLE"
        assert refused["context"]["detail"].endswith("is accepted")
        assert refused["actions"] == [f"aiflow show {bench.run_ids()[0]}"]
    assert refuse(bench, "send-back", "RQ-1", "-m", "no", code=4)["reason_code"] == "RUN_NOT_ACCEPTABLE"


@pytest.mark.spec("ERR-1", "REQ-6", "REQ-8")
@pytest.mark.parametrize("command", [("accept",), ("send-back", "-m", "again")])
def test_the_work_of_a_request_whose_file_is_gone_is_named_with_the_ways_to_it(
    bench: Bench, command: tuple[str, ...]
) -> None:
    file = bench.root / "requests/RQ-1.md"
    bench.agent.does("implementer", "(ROOT / 'requests/RQ-1.md').unlink(); write('a', 'a'); done()")
    text, run_id = file.read_text(), bench.run()["run_id"]
    branch = f"aiflow/RQ-1/{run_id}"
    refused = refuse(bench, command[0], "RQ-1", *command[1:], code=2)
    assert refused["reason_code"] == "REQUEST_NOT_FOUND"
    assert run_id in refused["detail"]
    assert branch in refused["detail"]
    look, ways = refused["actions"]
    assert look.endswith(f"`aiflow diff {run_id}`")
    assert "main" in ways
    merge, back = (shlex.split(line) for line in re.findall(r"`([^`]+)`", ways))
    if command[0] == "accept":
        assert merge == ["git", "merge", branch]
        bench.git(*merge[1:])
        assert (bench.root / "a").read_text() == "a"
    else:
        assert "requests/RQ-1.md" in ways
        file.write_text(text)
        assert back[:3] == ["aiflow", "send-back", "RQ-1"]
        bench.aiflow(*back[1:-1], "again")
        assert bench.status() == "ready"


@pytest.mark.spec("ERR-1", "REQ-6", "RUN-8")
def test_what_stopped_is_not_accepted_and_its_own_way_on_is_advised(bench: Bench) -> None:
    bench.configure(ALWAYS_RED)
    bench.run(code=7)
    refused = refuse(bench, "accept", "RQ-1", code=4)
    assert refused["reason_code"] == "RUN_NOT_ACCEPTABLE"
    send_back = 'aiflow send-back RQ-1 -m "…"'
    assert refused["actions"] == ["aiflow retry-step RQ-1", send_back, "aiflow show RQ-1", "aiflow why RQ-1"]


@pytest.mark.spec("ERR-1", "RUN-6")
def test_a_replaced_run_leads_to_the_one_that_replaced_it(bench: Bench) -> None:
    bench.configure(ALWAYS_RED)
    first = bench.run(code=7)["run_id"]
    bench.aiflow("replan", "RQ-1", code=7)
    newer = bench.run_ids()[-1]
    assert refuse(bench, "resume", first, code=4)["actions"] == [f"aiflow show {newer}"]


@pytest.mark.spec("RUN-7", "ERR-1")
def test_a_dirty_checkout_keeps_a_run_back_and_nothing_is_advised_that_run_does_not_have(bench: Bench) -> None:
    (bench.root / "app.txt").write_text("changed\n")
    refused = bench.aiflow.json("run", "RQ-1", code=6)["error"]
    assert refused["reason_code"] == "WORKTREE_DIRTY"
    assert "keep-changes" not in str(refused["actions"])
    bench.git("checkout", "app.txt")
    assert typed_in(refused["actions"]) == [["run", "RQ-1"]]
    bench.aiflow("run", "RQ-1")


@pytest.mark.spec("SEL-5", "RUN-4")
def test_list_and_why_show_the_cause_and_offer_to_mend_it_by_hand(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "test -e green"')
    bench.add_request("RQ-2", depends_on="[RQ-1]")
    assert bench.run(code=7)["reason_code"] == "RETRY_LIMIT_EXCEEDED"
    by_hand = "aiflow resume RQ-1 --keep-changes"
    for command in (("list",), ("why", "RQ-1"), ("why", "RQ-2")):
        for language in ("en", "ja"):
            shown = bench.aiflow(*command, env={"AIFLOW_LANG": language}).stdout
            assert "UNIT_TEST_FAILED" in shown
            assert "RETRY_LIMIT_EXCEEDED" not in shown
            assert by_hand in shown
    assert bench.aiflow.json("why", "RQ-1")["stations"][0]["commands"] == ["aiflow retry-step RQ-1"]
    (bench.worktree() / "green").write_text("by hand\n")
    assert bench.aiflow.json(*shlex.split(by_hand)[1:])["state"] == "DONE"
    assert by_hand not in bench.aiflow("list").stdout


@pytest.mark.spec("LCK-7", "ERR-2")
@pytest.mark.parametrize(
    ("language", "own", "other"),
    [
        ("en", "A run is already in progress", "A run of another request is in progress, so RQ-2 has to wait"),
        ("ja", "同一RequestのRunが実行中です", "別の Request の Run が実行中のため、RQ-2 は開始できません"),
    ],
)
def test_a_run_of_another_request_in_the_way_is_told_as_such(bench: Bench, language: str, own: str, other: str) -> None:
    bench.add_request("RQ-2")
    bench.start_hanging()
    for request_id, title in (("RQ-1", own), ("RQ-2", other)):
        refused = bench.aiflow.json("run", request_id, code=4, env={"AIFLOW_LANG": language})["error"]
        assert (refused["reason_code"], refused["message"]) == ("RUN_IN_PROGRESS", title)
        assert refused["context"]["request_id"] == "RQ-1"  # who is in the way
        assert refused["context"].get("asked_for") == (None if request_id == "RQ-1" else "RQ-2")
    bench.aiflow("cancel", "RQ-1")


@pytest.mark.spec("ERR-1", "CLI")
def test_a_run_without_a_worktree_says_where_its_work_is_and_how_to_get_one(bench: Bench) -> None:
    bench.agent.does("implementer", "ask('Which?')")
    bench.run(code=5)
    run_id = bench.run_ids()[0]
    branch, diff = f"aiflow/RQ-1/{run_id}", f"aiflow diff {run_id}"
    shutil.rmtree(bench.worktree())
    asked = refuse(bench, "shell", "RQ-1", code=6)
    assert (asked["reason_code"], branch in asked["context"]["detail"]) == ("WORKTREE_LOST", True)
    assert asked["actions"] == ['aiflow resume RQ-1 --answer "…"', diff]
    bench.agent.forget()
    bench.aiflow("resume", "RQ-1", "--answer", "This.")
    shutil.rmtree(bench.worktree())
    assert refuse(bench, "shell", "RQ-1", code=6)["actions"] == ["aiflow accept RQ-1", diff]
    assert bench.status() == "done"
    accepted = refuse(bench, "shell", run_id, code=6)
    assert accepted["actions"] == [diff]
    assert "is accepted" in accepted["context"]["detail"]


@pytest.mark.spec("ERR-1", "CLI", "RUN-8")
def test_a_stopped_run_without_a_worktree_gets_one_by_its_own_way_on(bench: Bench) -> None:
    bench.configure(ALWAYS_RED)
    bench.run(code=7)
    shutil.rmtree(bench.worktree())
    first = bench.run_ids()[0]
    assert refuse(bench, "shell", "RQ-1", code=6)["actions"] == ["aiflow retry-step RQ-1", f"aiflow diff {first}"]
    bench.aiflow("replan", "RQ-1", code=7)
    shutil.rmtree(bench.stage(run_id=first)["worktree"]["path"])
    assert refuse(bench, "shell", first, code=6)["actions"] == [f"aiflow diff {first}"]
