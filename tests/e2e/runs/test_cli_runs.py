"""The commands about runs as people and programs use them: words, shapes, exit codes, live runs."""

from __future__ import annotations

import json
import re
import signal
import time

import pytest

from e2e.bench import Bench, is_alive
from e2e.doctor.test_doctor import assert_worded
from waiting import wait_until

RUN_FIELDS = {"request_id", "run_id", "state", "reason_code", "cause", "changed_at", "task"}
RECORD_FIELDS = {"branch", "created_at", "worked_seconds", "cost_usd", "tokens", "agent_calls"}
RESULT_FIELDS = {
    "request_id",
    "run_id",
    "state",
    "reason_code",
    "cause",
    "summary",
    "question",
    "choices",
    "usage",
    "waits_until",
    "current_step_id",
    "branch",
    "base_branch",
    "worktree",
    "compare_url",
    "warnings",
    "replaces",
    "replaced_by",
    "continues",
    "continued_by",
    "follow_ups",
    "follow_ups_left_out",
    "task",
    "accepted_as",
    "is_pushed",
    "pull_url",
    "created_at",
    "changed_at",
    "steps",
    "suggested_next",
}


@pytest.mark.spec("RUN-12", "LCK-8", "CLI")
def test_a_live_run_is_cancelled_followed_refused_and_resumed(bench: Bench) -> None:
    bench.agent.does(
        "implementer",
        "p = subprocess.Popen(['sleep', '600'], start_new_session=True)\n(HERE / 'child').write_text(str(p.pid))\n"
        "write('half.txt', 'half\\n')\nprint('one', flush=True)\n"
        "while not (HERE / 'more').exists(): time.sleep(0.05)\n"
        "print('two', flush=True); time.sleep(600)",
    )
    process = bench.start("run", "RQ-1", "--json")
    wait_until(lambda: (bench.agent.folder / "child").exists() and process.poll() is None)
    run_id = bench.run_ids()[0]
    bench.agent.forget()
    bench.add_request("RQ-2")

    # Others see it, and are refused while it runs.
    for request_id in ("RQ-1", "RQ-2"):
        refused = bench.aiflow.json("run", request_id, code=4)["error"]
        assert refused["reason_code"] == "RUN_IN_PROGRESS"
        assert (refused["context"]["request_id"], refused["context"]["run_id"]) == ("RQ-1", run_id)
    assert bench.aiflow.json("resume", "RQ-1", code=4)["error"]["reason_code"] == "RUN_IN_PROGRESS"
    held = bench.aiflow.json("locks")["locks"]
    assert [(lock["request_id"], lock["run_id"], lock["verdict"]) for lock in held] == [("RQ-1", run_id, "held")]
    assert bench.aiflow.json("runs")["runs"][0]["state"] == "IMPLEMENTING"
    assert run_id in bench.aiflow("locks").stdout

    impatient = bench.start("logs", "-f", "RQ-1")
    assert impatient.stdout is not None
    impatient.stdout.readline()
    impatient.send_signal(signal.SIGINT)
    assert (impatient.communicate(timeout=60)[1], impatient.returncode) == ("", 0)
    follower = bench.start("logs", "-f", "RQ-1")
    (bench.agent.folder / "more").touch()
    wait_until(lambda: "two" in bench.log(1))
    cancelled = bench.aiflow.json("cancel", "RQ-1")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 4
    assert json.loads(out)["reason_code"] == cancelled["reason_code"] == "CANCELLED"
    assert (cancelled["state"], cancelled["run_id"]) == ("NEEDS_INPUT", run_id)
    followed, _ = follower.communicate(timeout=60)
    assert follower.returncode == 0
    assert "one\n" in followed
    assert "two\n" in followed
    assert followed.count("two\n") == 1
    assert not is_alive(int((bench.agent.folder / "child").read_text()))
    assert not is_alive(bench.agent.calls[-1]["pid"])
    assert bench.locks() == []
    assert bench.status() == "blocked"
    assert list((bench.root / ".aiflow/control").glob("*")) == []
    assert "half.txt" in (bench.folder() / "S01.patch").read_text()

    # It is no failure: resume goes on with what was there.
    assert bench.aiflow.json("cancel", "RQ-1", code=4)["error"]["reason_code"] == "RUN_NOT_ACTIVE"
    bench.agent.does("implementer", "write('whole.txt', open('half.txt').read()); done()")
    assert bench.aiflow.json("resume", "RQ-1")["state"] == "DONE"
    assert bench.agent.last("implementer")["feedback"] == []


@pytest.mark.spec("RUN-12", "LCK-6")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cancels_in_order(bench: Bench, number: signal.Signals) -> None:
    process = bench.start_hanging()
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 4
    assert json.loads(out)["reason_code"] == "CANCELLED"
    assert not is_alive(bench.agent.calls[-1]["pid"])
    assert bench.locks() == []
    assert bench.status() == "blocked"
    assert bench.stage()["state"] == "NEEDS_INPUT"


@pytest.mark.spec("RUN-12", "RUN-11")
def test_a_crashed_run_can_be_cancelled(bench: Bench) -> None:
    process = bench.start_hanging()
    process.kill()
    process.wait()
    result = bench.aiflow.json("cancel", "RQ-1")
    assert (result["state"], result["reason_code"]) == ("NEEDS_INPUT", "CANCELLED")
    assert bench.status() == "blocked"
    assert bench.locks() == []
    assert not is_alive(bench.agent.calls[-1]["pid"])
    assert bench.aiflow.json("resume", "RQ-1")["state"] == "DONE"
    assert "half.txt" in bench.files_at(bench.stage()["branch"])


@pytest.mark.spec("LCK-7", "CLI")
def test_wait_starts_as_soon_as_the_other_run_has_ended(bench: Bench) -> None:
    bench.add_request("RQ-2")
    process = bench.start_hanging()
    waiting = bench.start("run", "RQ-2", "--wait", "--json")
    assert waiting.stderr is not None
    assert bench.run_ids()[0] in waiting.stderr.readline()
    assert waiting.poll() is None
    assert bench.status("RQ-2") == "ready"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    out, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, err
    assert json.loads(out)["state"] == "DONE"


@pytest.mark.spec("LCK-2", "LCK-7")
def test_of_many_starts_at_once_exactly_one_runs(bench: Bench) -> None:
    bench.agent.does("planner", "time.sleep(1.5); answer({'steps': [{'id': 'S01', 'title': 'T'}]})")
    starts = [bench.start("run", "RQ-1", "--json") for _ in range(5)]
    answers = [json.loads(each.communicate(timeout=60)[0]) for each in starts]
    run_ids = bench.run_ids()
    assert len(run_ids) == 1
    assert sorted(each.returncode for each in starts) == [0, 4, 4, 4, 4]
    refused = [answer["error"] for answer in answers if "error" in answer]
    assert {(each["reason_code"], each["context"]["run_id"]) for each in refused} == {("RUN_IN_PROGRESS", run_ids[0])}
    assert bench.agent.roles == ["planner", "implementer S01", "qa S01"]


@pytest.mark.spec("RUN-11", "LCK-4")
def test_a_crashed_run_of_another_request_does_not_keep_one_from_running(bench: Bench) -> None:
    bench.add_request("RQ-2")
    process = bench.start_hanging()
    process.kill()
    process.wait()
    assert bench.run("RQ-2")["state"] == "DONE"
    assert bench.stage()["state"] == "IMPLEMENTING"  # it recovers only its own
    assert bench.aiflow.json("run", "requests/RQ-1.md")["state"] == "DONE"


@pytest.mark.spec("RUN-6", "RUN-12")
def test_a_run_that_was_cancelled_in_its_tests_goes_on_at_its_tests(bench: Bench) -> None:
    bench.configure('[tests]\nunit = "test -e green.ignored || { touch hangs.ignored; sleep 600; }"')
    process = bench.start("run", "RQ-1", "--json")
    wait_until(lambda: list(bench.state.glob("aiflow/*/worktrees/*/hangs.ignored")))
    bench.aiflow("cancel", "RQ-1")
    process.communicate(timeout=60)
    (bench.worktree() / "green.ignored").touch()
    assert bench.aiflow.json("resume", "RQ-1")["state"] == "DONE"
    assert bench.agent.roles == ["planner", "implementer S01", "qa S01"]


@pytest.mark.spec("LCK-7", "CLI")
def test_waiting_ends_when_it_is_interrupted(bench: Bench) -> None:
    bench.add_request("RQ-2")
    bench.start_hanging()
    waiting = bench.start("run", "RQ-2", "--wait", "--json")
    time.sleep(1.0)
    waiting.send_signal(signal.SIGINT)
    waiting.communicate(timeout=60)
    assert waiting.returncode != 0
    assert bench.status("RQ-2") == "ready"


@pytest.mark.spec("CLI", "RUN-8")
def test_the_shapes_that_programs_read(bench: Bench) -> None:
    bench.agent.plans("S01", "S02")
    bench.agent.does("implementer", "ask('Which?')", "S02")
    stopped = bench.run(code=5)
    assert set(stopped) == RESULT_FIELDS
    assert stopped["steps"][0].keys() == {"step_id", "title", "is_done", "commit"}
    assert stopped["suggested_next"] == {"way_on": "answer", "command": 'aiflow resume RQ-1 --answer "…"'}
    run_id = stopped["run_id"]

    runs = bench.aiflow.json("runs", "RQ-1")["runs"]
    assert [set(run) for run in runs] == [RUN_FIELDS | RECORD_FIELDS]
    assert runs == bench.aiflow.json("runs")["runs"]
    shown = bench.aiflow.json("show", "RQ-1")
    assert [run["run_id"] for run in shown["runs"]] == [run_id]
    logs = bench.aiflow.json("logs", run_id)
    assert (logs["run_id"], [log["step"] for log in logs["logs"]]) == (run_id, [0, 1, 2])
    assert [log["step"] for log in bench.aiflow.json("logs", "RQ-1", "-s", "s02")["logs"]] == [2]
    assert bench.aiflow.json("logs", "RQ-1", "-s", "S09", code=2)["error"]["reason_code"] == "INPUT_INVALID"
    assert "implementer S01" in bench.aiflow("logs", "RQ-1").stdout
    assert len(bench.aiflow("logs", "RQ-1", "-n", "1").stdout.splitlines()) == 1
    report = bench.aiflow.json("report", "RQ-1")
    assert (report["request_id"], report["run_id"], report["report"]) == ("RQ-1", run_id, bench.report())
    assert [(step["step_id"], step["is_done"]) for step in report["steps"]] == [("S01", True), ("S02", False)]
    assert [(file["path"], file["added"]) for file in report["steps"][0]["changes"]["files"]] == [("S01.txt", 1)]
    assert sum(role["calls"] for role in report["roles"]) == report["usage"]["calls"]
    assert "<!--" not in bench.aiflow("report", "RQ-1").stdout
    assert bench.aiflow.json("locks") == {"locks": []}
    assert bench.aiflow.json("locks", "break", "RQ-1", code=2)["error"]["reason_code"] == "LOCK_NOT_FOUND"
    assert bench.aiflow.json("locks", "break", code=2)["error"]["reason_code"] == "INPUT_INVALID"
    assert bench.aiflow.json("runs", "RQ-9", code=2)["error"]["reason_code"] == "REQUEST_NOT_FOUND"
    bench.add_request("RQ-2")
    for command in ("report", "logs", "cancel", "resume", "replan", "retry-step"):
        assert bench.aiflow.json(command, "RQ-2", code=2)["error"]["reason_code"] == "RUN_NOT_FOUND"

    bench.agent.forget()
    done = bench.aiflow.json("resume", run_id, "-a", "This.")
    assert set(done) == RESULT_FIELDS
    assert done["suggested_next"] == {"way_on": "accept", "command": "aiflow accept RQ-1"}


@pytest.mark.spec("CLI", "ERR-1", "ERR-3")
@pytest.mark.parametrize("language", ["en", "ja"])
def test_everything_a_person_reads_is_in_their_language(bench: Bench, language: str) -> None:
    bench.agent.plans("S01", "S02")
    bench.configure('[tests]\nunit = "test ! -e bad.txt"')
    bench.agent.does("implementer", "write('bad.txt', 'x'); done()", "S02")
    lang = ["--lang", language]
    texts = [
        bench.aiflow("runs", *lang).stdout,
        bench.aiflow("locks", *lang).stdout,
        bench.aiflow("run", "RQ-1", *lang, code=7).stdout,
        bench.aiflow("resume", "RQ-1", *lang, code=7).stdout,
        bench.aiflow("resume", "RQ-1", *lang, code=4).stderr,
        bench.aiflow("runs", *lang).stdout,
        bench.aiflow("show", "RQ-1", *lang).stdout,
        bench.aiflow("report", "RQ-1", *lang).stdout,
        bench.aiflow("why", "RQ-1", *lang).stdout,
        bench.aiflow("run", "RQ-1", *lang, code=4).stderr,
        bench.aiflow("cancel", "RQ-1", *lang, code=4).stderr,
        bench.aiflow("locks", "break", "RQ-1", "-y", *lang, code=2).stderr,
    ]
    bench.agent.forget()
    texts += [bench.aiflow("replan", "RQ-1", *lang).stdout, bench.aiflow("report", bench.run_ids()[0], *lang).stdout]
    for text in texts:
        assert text.strip()
        assert_worded(text)
    is_japanese = [bool(re.search(r"[ぁ-んァ-ン一-龠]", text)) for text in texts]
    assert is_japanese == [language == "ja"] * len(texts)
    assert "UNIT_TEST_FAILED" in texts[2]
    errors = bench.errors(run_id=bench.run_ids()[0])
    assert bool(re.search(r"[ぁ-んァ-ン一-龠]", errors["title"])) == (language == "ja")


@pytest.mark.spec("RUN-10", "CLI")
def test_a_question_is_shown_with_the_command_that_answers_it(bench: Bench) -> None:
    bench.agent.does("implementer", "ask('Blue\\nor green?')")
    out = bench.aiflow("run", "RQ-1", code=5).stdout
    assert "Blue" in out
    assert 'aiflow resume RQ-1 --answer "…"' in out
    refused = bench.aiflow("resume", "RQ-1", code=5).stderr
    assert "or green?" in refused
    assert "--answer" in refused
    shown = bench.aiflow("show", "RQ-1").stdout  # the way that the message itself points to
    assert "or green?" in shown


@pytest.mark.spec("AGT-1", "CLI")
def test_the_built_in_agent_needs_nothing(bench: Bench) -> None:
    (bench.root / "aiflow.toml").write_text('[agent]\nkind = "demo"\n')
    body = "## One\n```write a.txt\nhello\n```\n## Two\n```ask\nWhich colour?\n```\n```write b.txt\n{answer}\n```\n"
    (bench.root / "requests/RQ-1.md").write_text(f"---\nstatus: ready\n---\n# Demo\n\n{body}")
    assert bench.run(code=5)["question"] == "Which colour?"
    result = bench.aiflow.json("resume", "RQ-1", "-a", "green")
    assert result["state"] == "DONE"
    assert bench.git("show", f"{result['branch']}:b.txt") == "green"
    assert [step["title"] for step in result["steps"]] == ["One", "Two"]


@pytest.mark.spec("AGT-1")
def test_the_built_in_agent_works_on_any_text(bench: Bench) -> None:
    (bench.root / "aiflow.toml").write_text('[agent]\nkind = "demo"\n')
    result = bench.run()
    assert result["state"] == "DONE"
    assert "RQ-1" in bench.git("show", f"{result['branch']}:DEMO.md")
