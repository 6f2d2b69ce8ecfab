"""`aiflow auto` and `aiflow stop` as people use them: words, shapes, exit codes, signals, kills, two at once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import datetime, timedelta
from typing import Any

import pytest

from e2e.bench import Bench, is_alive
from waiting import wait_until

FIELDS = [
    *(
        "state",
        "reason_code",
        "began_at",
        "ended_at",
        "base_branch",
        "runs",
        "done",
        "cost_usd",
        "tokens",
        "agent_calls",
    ),
    *("interrupted", "results", "waiting", "unreached", "follow_ups", "checks"),
]
# The implementer says that it is at work and waits until it is let go.
HELD = (
    "(HERE / ('at.' + call['request']['id'])).touch()\n"
    "while not (HERE / 'go').exists(): time.sleep(0.02)\n"
    "write('x.txt', call['run_id']); done()"
)


def begin(bench: Bench, *args: str) -> subprocess.Popen[str]:
    """Start an auto-run and come back when it is at RQ-1."""
    bench.agent.does("implementer", HELD)
    process = bench.start("auto", "--json", *args)
    wait_until(lambda: (bench.agent.folder / "at.RQ-1").exists() or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    return process


def let_go(bench: Bench) -> None:
    (bench.agent.folder / "go").touch()


def end(process: subprocess.Popen[str], code: int = 0) -> Any:
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, out + err
    assert "Traceback" not in err
    return json.loads(out)


def assert_tidy(bench: Bench) -> None:
    assert bench.locks() == []
    assert list((bench.root / ".aiflow/control").glob("*")) == []
    assert not any(is_alive(call["pid"]) for call in bench.agent.calls)


@pytest.mark.spec("AUT-1", "AUT-2", "CLI")
def test_a_night_in_words_and_as_data(bench: Bench) -> None:
    bench.add_request("RQ-2", priority="P2")
    asks = "ask('Which one?') if call['request']['id'] == 'RQ-2' else done()"
    bench.agent.does("implementer", f"write(call['request']['id'] + '.txt', 'x'); {asks}")
    told = bench.aiflow("auto").stdout
    for words in (
        "RQ-1",
        "RQ-2",
        "Auto-run ended",
        "aiflow accept RQ-1",
        "Which one?",
        'aiflow resume RQ-2 --answer "…"',
    ):
        assert words in told
    bench.add_request("RQ-3")
    (bench.root / "requests/RQ-4.md").write_text("---\nstatus: wip\n---\n")
    shape = bench.aiflow.json("auto")
    assert list(shape) == FIELDS
    assert (shape["state"], shape["reason_code"], shape["runs"], shape["done"]) == (
        "completed",
        "AUTO_NOTHING_RUNNABLE",
        1,
        1,
    )
    run_id = bench.run_ids("RQ-3")[0]
    assert shape["results"] == [
        {"request_id": "RQ-3", "run_id": run_id, "outcome": "awaiting_acceptance", "reason_code": None}
    ]
    assert [each["request_id"] for each in shape["waiting"]] == ["RQ-1", "RQ-3", "RQ-2"]
    assert list(shape["waiting"][2]) == [
        "request_id",
        "title",
        "reason_code",
        "text",
        "command",
        "is_question",
        "choices",
    ]
    assert [(each["request_id"], each["reason_code"]) for each in shape["unreached"]] == [("RQ-4", "REQUEST_INVALID")]
    assert_tidy(bench)
    # Plain data is English, people are answered in their language.
    bench.add_request("RQ-5", depends_on="[RQ-1]")
    assert bench.aiflow.json("--lang", "ja", "auto")["unreached"][0]["text"] == "depends_on: RQ-1 is not done"
    assert "Auto-run" in bench.aiflow("--lang", "ja", "auto").stdout


@pytest.mark.spec("AUT-3", "CLI", "CFG")
def test_ceilings_come_from_options_and_settings_and_the_doctor_has_its_own_exit_code(bench: Bench) -> None:
    bench.configure("[limits]\nsession_runs = 2\n[auto]\nstop_after_needs_input = 1")
    for number in (2, 3, 4):
        bench.add_request(f"RQ-{number}")
    shape = bench.aiflow.json("auto", "--max-runs", "1", "--max-minutes", "60", "--max-cost", "9.5")
    assert (shape["runs"], shape["reason_code"]) == (1, "AUTO_RUNS_LIMIT")
    bench.agent.does("implementer", "ask('Which one?')")
    assert bench.aiflow.json("auto", "--max-runs", "0")["reason_code"] == "AUTO_NEEDS_INPUT_LIMIT"
    for wrong in (("--max-runs", "-1"), ("--max-minutes", "x"), ("--max-cost", "-0.1"), ("--max-cost", "nan")):
        assert bench.aiflow.json("auto", *wrong, code=2)["error"]["reason_code"] == "INPUT_INVALID"
    assert not any("auto" in line for line in bench.aiflow("doctor").stdout.splitlines()), "they have an effect now"
    (bench.root / "app.txt").write_text("changed by hand\n")
    shape = bench.aiflow.json("auto", code=3)
    assert (shape["state"], shape["reason_code"], shape["runs"]) == ("stopped", "DOCTOR_FAILED", 0)
    assert [(check["reason_code"], check["evidence"]) for check in shape["checks"]] == [("WORKTREE_DIRTY", ["app.txt"])]
    told = bench.aiflow("auto", code=3).stdout
    assert "WORKTREE_DIRTY" in told
    assert "app.txt" in told
    assert_tidy(bench)


@pytest.mark.spec("AUT-1", "LCK-2", "LCK-7")
def test_two_at_once_and_a_stop_after_the_run(bench: Bench) -> None:
    bench.add_request("RQ-2")
    assert bench.aiflow.json("stop", code=4)["error"]["reason_code"] == "AUTO_NOT_RUNNING"
    process = begin(bench)
    refused = bench.aiflow.json("auto", code=4)["error"]
    assert refused["reason_code"] == "QUEUE_IN_PROGRESS"
    assert refused["context"]["pid"] == process.pid
    assert refused["context"]["host"]
    # D39 §9's own words, each with what does it.
    assert bench.aiflow.json("auto", "--lang", "ja", code=4)["error"]["actions"] == [
        "別タブ/別ウィンドウで起動していないか確認: `aiflow locks`",
        "しばらく待つ（TTLで回収されます）",
        "必要なら doctor(full) でロック回収を実施: `aiflow doctor --full`",
    ]
    told = bench.aiflow("auto", code=4).stderr
    assert str(process.pid) in told
    assert "→ aiflow stop" in told
    assert bench.aiflow.json("run", "RQ-2", code=4)["error"]["reason_code"] == "RUN_IN_PROGRESS"
    run_id = bench.run_ids()[0]
    assert bench.aiflow.json("stop") == {
        "stop_request": "after_run",
        "request_id": "RQ-1",
        "run_id": run_id,
        "pid": process.pid,
        "host": refused["context"]["host"],
        "has_ended": False,
    }
    assert bench.aiflow("stop").stdout == f"Auto-run stops after RQ-1 ({run_id}).\n"
    let_go(bench)
    shape = end(process)
    assert (shape["state"], shape["reason_code"]) == ("stopped", "AUTO_STOPPED_BY_PERSON")
    assert [(each["request_id"], each["outcome"]) for each in shape["results"]] == [("RQ-1", "awaiting_acceptance")]
    assert [each["request_id"] for each in shape["unreached"]] == ["RQ-2"]
    assert_tidy(bench)
    asked = [entry for entry in bench.journal() if entry.get("data", {}).get("asked") == "stop"]
    assert [(entry["actor"], entry["run_id"]) for entry in asked] == [("person", run_id)] * 2
    assert bench.aiflow.json("stop", code=4)["error"]["reason_code"] == "AUTO_NOT_RUNNING"


def assert_cancelled(bench: Bench, shape: Any) -> None:
    """The run was cancelled in order: it waits to be resumed, and nothing else was started."""
    assert (shape["state"], shape["reason_code"]) == ("stopped", "AUTO_STOPPED_BY_PERSON")
    assert [(each["outcome"], each["reason_code"]) for each in shape["results"]] == [("cancelled", "CANCELLED")]
    assert [each["command"] for each in shape["waiting"]] == ["aiflow resume RQ-1"]
    assert bench.stage()["state"] == "NEEDS_INPUT"
    assert_tidy(bench)


@pytest.mark.spec("AUT-3", "RUN-12", "LCK-8")
def test_a_stop_now_from_another_terminal(bench: Bench) -> None:
    bench.add_request("RQ-2")
    process = begin(bench, "--watch")
    told = bench.aiflow("stop", "--now").stdout.splitlines()
    assert told[0].startswith(f"Auto-run cancels RQ-1 ({bench.run_ids()[0]})")
    assert told[1] == "Auto-run has stopped."
    assert_cancelled(bench, end(process))
    bench.agent.forget()
    assert bench.aiflow.json("resume", "RQ-1")["state"] == "DONE"


@pytest.mark.faults
@pytest.mark.spec("AUT-3", "RUN-12", "LCK-6")
def test_ctrl_c_twice_means_now(bench: Bench) -> None:
    bench.add_request("RQ-2")
    process = begin(bench)
    process.send_signal(signal.SIGINT)
    wait_until(lambda: json.loads((bench.root / ".aiflow/auto.json").read_text())["state"] == "stopping")
    process.send_signal(signal.SIGINT)
    assert_cancelled(bench, end(process))


@pytest.mark.faults
@pytest.mark.spec("AUT-4", "RUN-12", "LCK-6")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_from_outside_means_now_and_the_next_auto_run_continues(bench: Bench, number: signal.Signals) -> None:
    bench.add_request("RQ-2")
    process = begin(bench)
    process.send_signal(number)
    shape = end(process, 3)
    assert (shape["state"], shape["reason_code"]) == ("stopped", "AUTO_CUT_OFF")
    assert shape["results"] == []  # counted when it is continued, by its final outcome
    assert_tidy(bench)
    let_go(bench)
    shape = bench.aiflow.json("auto")
    assert [(each["request_id"], each["outcome"]) for each in shape["results"]] == [
        ("RQ-1", "awaiting_acceptance"),
        ("RQ-2", "awaiting_acceptance"),
    ]
    assert len(bench.run_ids()) == 1


@pytest.mark.spec("AUT-3", "LCK-6")
def test_ctrl_c_once_stops_after_the_run_and_at_once_while_it_waits(bench: Bench) -> None:
    bench.add_request("RQ-2")
    process = begin(bench, "--watch")
    process.send_signal(signal.SIGINT)
    wait_until(lambda: json.loads((bench.root / ".aiflow/auto.json").read_text())["state"] == "stopping")
    let_go(bench)
    shape = end(process)
    assert [(each["request_id"], each["outcome"]) for each in shape["results"]] == [("RQ-1", "awaiting_acceptance")]
    process = bench.start("auto", "--json", "--watch")
    record = bench.root / ".aiflow/auto.json"
    wait_until(lambda: json.loads(record.read_text())["state"] == "waiting" and bench.run_ids("RQ-2"))
    bench.add_request("RQ-3")
    wait_until(lambda: bench.run_ids("RQ-3"))
    wait_until(lambda: json.loads(record.read_text())["state"] == "waiting")
    process.send_signal(signal.SIGINT)
    shape = end(process)
    assert [each["request_id"] for each in shape["results"]] == ["RQ-2", "RQ-3"]
    assert shape["reason_code"] == "AUTO_STOPPED_BY_PERSON"
    assert_tidy(bench)


@pytest.mark.faults
@pytest.mark.spec("AUT-1")
@pytest.mark.parametrize("command", ["auto", "run RQ-1"])
def test_a_signal_that_the_caller_ignores_stays_ignored(bench: Bench, command: str) -> None:
    bench.agent.does("implementer", HELD)
    script = f"trap '' HUP INT; exec {sys.executable} -m aiflow {command} --json"
    process = bench.start(*command.split(), "--json", argv=["sh", "-c", script])
    wait_until(lambda: (bench.agent.folder / "at.RQ-1").exists() or process.poll() is not None)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    let_go(bench)
    shape = end(process)
    assert bench.stage()["state"] == "DONE"
    assert shape["state"] in ("completed", "DONE")


@pytest.mark.spec("AUT-2", "LCK-7")
def test_a_run_beside_it_is_waited_for(bench: Bench) -> None:
    bench.add_request("RQ-2")
    bench.agent.does("implementer", HELD)
    beside = bench.start("run", "RQ-1", "--json")
    wait_until(lambda: (bench.agent.folder / "at.RQ-1").exists() or beside.poll() is not None)
    process = bench.start("auto", "--json")
    record = bench.root / ".aiflow/auto.json"
    wait_until(lambda: record.exists() and json.loads(record.read_text())["state"] == "waiting")
    assert bench.run_ids("RQ-2") == []
    let_go(bench)
    assert end(beside)["state"] == "DONE"
    shape = end(process)
    assert [(each["request_id"], each["outcome"]) for each in shape["results"]] == [("RQ-2", "awaiting_acceptance")]
    assert_tidy(bench)


@pytest.mark.spec("AUT-4", "RUN-11", "LCK-4", "AUT-3")
def test_after_a_kill_the_next_one_carries_on_and_counts_each_run_once(bench: Bench) -> None:
    bench.add_request("RQ-0", priority="P0")
    bench.add_request("RQ-2")
    bench.agent.does("implementer", f"done() if call['request']['id'] == 'RQ-0' else exec({HELD!r})")
    process = bench.start("auto", "--json", "--max-runs", "2")
    wait_until(lambda: (bench.agent.folder / "at.RQ-1").exists() or process.poll() is not None)
    process.kill()
    process.communicate()
    run_id = bench.run_ids()[0]
    left = json.loads((bench.root / ".aiflow/auto.json").read_text())
    assert (left["state"], left["runs"], left["current"]["request_id"]) == ("running", 1, "RQ-1")
    assert bench.aiflow.json("stop", code=4)["error"]["reason_code"] == "AUTO_NOT_RUNNING", "a dead one is none"
    let_go(bench)
    shape = bench.aiflow.json("auto", "--max-runs", "2")
    assert (shape["runs"], shape["done"], shape["reason_code"]) == (2, 2, "AUTO_RUNS_LIMIT")
    assert shape["interrupted"] == ["RQ-1"]
    assert shape["began_at"] == left["began_at"]
    assert [(each["request_id"], each["run_id"]) for each in shape["results"]][1:] == [("RQ-1", run_id)]
    assert [line["event"] for line in bench.stage()["history"]].count("RECOVERED") == 1
    recovered = [entry["reason_code"] for entry in bench.journal() if entry["kind"] == "recovery"]
    assert recovered.count("LOCK_STALE_RECOVERED") == 2, "the queue's and the request's"
    assert_tidy(bench)
    # It has ended now: the next one begins anew, and says nothing of the old one.
    shape = bench.aiflow.json("auto")
    assert (shape["runs"], shape["interrupted"]) == (1, [])
    assert [each["request_id"] for each in shape["results"]] == ["RQ-2"]


@pytest.mark.spec("AUT-4")
def test_one_that_was_cut_off_continues_with_the_limits_it_had(bench: Bench) -> None:
    assert bench.aiflow.json("auto", "--continue", code=4)["error"]["reason_code"] == "AUTO_NOT_CUT"
    bench.add_request("RQ-2")
    process = begin(bench, "--max-runs", "1", "--until", "23:59")
    assert bench.aiflow.json("auto", "--continue", code=4)["error"]["reason_code"] == "QUEUE_IN_PROGRESS"
    process.kill()
    process.communicate()
    left = json.loads((bench.root / ".aiflow/auto.json").read_text())["limits"]
    assert (left["session_runs"], left["until"][11:16]) == (1, "23:59")
    let_go(bench)
    assert bench.aiflow.json("auto", "--continue", "--watch", code=2)["error"]["reason_code"] == "INPUT_INVALID"
    shape = bench.aiflow.json("auto", "--continue")
    assert (shape["runs"], shape["reason_code"], shape["interrupted"]) == (1, "AUTO_RUNS_LIMIT", ["RQ-1"])
    assert bench.aiflow.json("auto", "--continue", code=4)["error"]["reason_code"] == "AUTO_NOT_CUT"


@pytest.mark.spec("LCK-7", "AUT-2")
def test_whoever_waits_for_their_turn_goes_before_the_next_request(bench: Bench) -> None:
    bench.agent.does("implementer", "ask('Which one?')")
    bench.run(code=5)
    for name in ("RQ-2", "RQ-3"):
        bench.add_request(name)
    bench.agent.does("implementer", HELD)
    process = bench.start("auto", "--json")
    wait_until(lambda: (bench.agent.folder / "at.RQ-2").exists() or process.poll() is not None)
    refused = bench.aiflow.json("resume", "RQ-1", "--answer", "This one", code=4)["error"]
    assert (refused["reason_code"], any("--wait" in each for each in refused["actions"])) == ("RUN_IN_PROGRESS", True)
    waiting = bench.start("resume", "RQ-1", "--answer", "This one", "--wait", "--json")
    wait_until(lambda: list((bench.root / ".aiflow/control").glob("turn.*")))
    let_go(bench)
    assert end(waiting)["state"] == "DONE"
    end(process)
    implementers = [call["request"]["id"] for call in bench.agent.documents if call["role"] == "implementer"]
    assert implementers == ["RQ-1", "RQ-2", "RQ-1", "RQ-3"]
    assert_tidy(bench)


@pytest.mark.spec("AUT-3")
def test_ctrl_c_behind_a_stop_cancels_the_run(bench: Bench) -> None:
    process = begin(bench)
    bench.aiflow.json("stop")
    record = bench.root / ".aiflow/auto.json"
    wait_until(lambda: json.loads(record.read_text())["state"] == "stopping")
    process.send_signal(signal.SIGINT)
    shape = end(process)
    assert [(each["request_id"], each["outcome"]) for each in shape["results"]] == [("RQ-1", "cancelled")]
    assert_tidy(bench)


@pytest.mark.spec("AUT-4", "CLI")
def test_the_last_summary_can_be_seen_again_and_looking_changes_nothing(bench: Bench) -> None:
    assert "no auto-run" in bench.aiflow("auto", "--last").stdout
    assert bench.aiflow.json("auto", "--last") is None
    bench.agent.does("implementer", "ask('Which one?')")
    shape = bench.aiflow.json("auto")
    before = {path: path.stat().st_mtime_ns for path in (bench.root / ".aiflow").rglob("*")}
    again = bench.aiflow.json("auto", "--last")
    assert {**again, "checks": []} == {**shape, "checks": []}
    told = bench.aiflow("auto", "--last").stdout
    assert "AUTO_NOTHING_RUNNABLE: " in told
    assert "Which one?" in told
    assert {path: path.stat().st_mtime_ns for path in (bench.root / ".aiflow").rglob("*")} == before
    bench.add_request("RQ-2")
    process = bench.start("auto", "--json")
    bench.agent.does("implementer", HELD)
    wait_until(lambda: (bench.agent.folder / "at.RQ-2").exists() or process.poll() is not None)
    assert "still running" in bench.aiflow("auto", "--last").stdout
    process.kill()
    process.wait()
    assert "was interrupted" in bench.aiflow("auto", "--last").stdout
    # Nobody says that a dead auto-run will come to anything.
    bench.add_request("RQ-3")
    assert "auto-run is running" not in bench.aiflow("list").stdout


@pytest.mark.spec("AUT-3", "CLI")
def test_an_auto_run_that_waits_for_its_time_is_shown_and_can_be_stopped(bench: Bench) -> None:
    assert bench.aiflow.json("stop", code=4)["error"]["reason_code"] == "AUTO_NOT_RUNNING"
    at = datetime.now().astimezone() + timedelta(hours=3)
    waiting = bench.start("auto", "--at", f"{at:%H:%M}")
    wait_until(lambda: bench.aiflow.json("status")["auto"]["begins"] or waiting.poll() is not None)
    assert waiting.poll() is None, waiting.communicate()
    [begins] = bench.aiflow.json("status")["auto"]["begins"]
    assert f"  Auto-run starts at {at:%H:%M}:00 (pid {begins['pid']})" in bench.aiflow("status").stdout
    stopped = bench.aiflow("stop").stdout
    assert stopped == f"The auto-run that was to start at {at:%H:%M}:00 (pid {begins['pid']}) will not start.\n"
    waiting.communicate(timeout=60)
    assert waiting.returncode != 0
    assert bench.aiflow.json("status")["auto"]["begins"] == []
    assert bench.run_ids() == []
    assert list((bench.root / ".aiflow/control").iterdir()) == []
