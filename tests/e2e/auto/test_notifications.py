"""Notes (`notify.command`): one message when a run starts to wait for a person, none for what they did themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.bench import Bench
from waiting import wait_until

ASKS = "ask('Red or green?')"


class Mailbox:
    """What `notify.command` was told, and what it saw around it."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.path = folder / "notes"
        self.seen = folder / "seen"
        self.bench = bench
        self.configure(f"cat >> {self.path}; ls .aiflow/locks >> {self.seen}; cat requests/* >> {self.seen}")

    def configure(self, command: str) -> None:
        self.bench.configure(f"[notify]\ncommand = {json.dumps(command)}")

    @property
    def notes(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    @property
    def codes(self) -> list[str]:
        return [note["reason_code"] for note in self.notes]


@pytest.fixture
def mailbox(bench: Bench, tmp_path: Path) -> Mailbox:
    return Mailbox(bench, tmp_path)


def kill(bench: Bench) -> None:
    """Let a run's process die in the middle."""
    process = bench.start_hanging()
    process.kill()
    process.wait()
    wait_until(lambda: not list((bench.root / ".aiflow/guards").iterdir()))


@pytest.mark.spec("ERR-4")
def test_every_start_of_waiting_is_told_once_and_nothing_else_is(bench: Bench, mailbox: Mailbox) -> None:
    bench.agent.does("implementer", ASKS)
    first = bench.run(code=5)
    assert mailbox.notes == [
        {
            "version": "1.0",
            "kind": "waiting",
            "reason_code": "NEEDS_CLARIFICATION",
            "title": "RQ-1 asks a question",
            "text": "Red or green?",
            "command": 'aiflow resume RQ-1 --answer "…"',
            "request_id": "RQ-1",
            "run_id": first["run_id"],
            "link": None,
        }
    ]
    # What it tells of is settled: the request waits, and nobody holds a lock while the command runs.
    seen = mailbox.seen.read_text()
    assert ".lock.json" not in seen
    assert "status: blocked" in seen

    for again in (("resume", "RQ-1"), ("run", "RQ-1")):  # neither starts anything
        bench.aiflow.json(*again, code=5 if again[0] == "resume" else 4)
    for looking in ("show", "runs", "list", "doctor"):
        bench.aiflow(looking, *(["RQ-1"] if looking == "show" else []))
    assert len(mailbox.notes) == 1

    bench.aiflow.json("resume", "RQ-1", "--answer", "Red", code=5)  # it asks again: a new start of waiting
    assert mailbox.codes == ["NEEDS_CLARIFICATION"] * 2
    bench.agent.forget()
    bench.aiflow.json("resume", "RQ-1", "--answer", "Red")
    assert mailbox.codes == ["NEEDS_CLARIFICATION"] * 2 + ["AWAITING_ACCEPTANCE"]
    assert mailbox.notes[-1]["command"] == "aiflow accept RQ-1"
    bench.aiflow.json("resume", "RQ-1", code=4)
    assert len(mailbox.notes) == 3


@pytest.mark.spec("RUN-12")
def test_what_a_person_ended_themselves_is_not_told(bench: Bench, mailbox: Mailbox) -> None:
    process = bench.start_hanging()
    bench.aiflow("cancel", "RQ-1")
    process.wait()
    assert bench.stage()["error"]["reason_code"] == "CANCELLED"
    assert mailbox.notes == []
    bench.aiflow.json("resume", "RQ-1")
    assert mailbox.codes == ["AWAITING_ACCEPTANCE"]


@pytest.mark.spec("RUN-12", "DOC-2")
@pytest.mark.parametrize("command", [("cancel", "RQ-1"), ("doctor", "--full")])
def test_a_dead_run_that_a_person_puts_in_order_is_not_told(
    bench: Bench, mailbox: Mailbox, command: tuple[str, ...]
) -> None:
    kill(bench)
    bench.aiflow(*command)
    assert bench.stage()["state"] == "NEEDS_INPUT"
    assert mailbox.notes == []


@pytest.mark.spec("RUN-11")
def test_a_run_that_goes_on_after_a_crash_is_told_once_by_its_end(bench: Bench, mailbox: Mailbox) -> None:
    kill(bench)
    assert bench.run()["state"] == "DONE"
    assert mailbox.codes == ["AWAITING_ACCEPTANCE"]


@pytest.mark.spec("RUN-11", "REQ-5")
def test_a_run_whose_process_died_before_it_could_tell_is_told_by_the_next_start(
    bench: Bench, mailbox: Mailbox
) -> None:
    bench.agent.does("planner", ASKS)
    bench.run(code=5)
    path = bench.root / "requests/RQ-1.md"
    path.write_text(path.read_text().replace("status: blocked", "status: running"))  # as a kill before that leaves it
    mailbox.path.unlink()
    bench.run(code=5)
    assert bench.status() == "blocked"
    assert mailbox.codes == ["NEEDS_CLARIFICATION"]


AUTO = ("-c", "accept=auto")


@pytest.mark.spec("REQ-6")
def test_what_is_accepted_by_itself_is_not_told_and_what_cannot_be_is_told_once(bench: Bench, mailbox: Mailbox) -> None:
    assert bench.aiflow.json("run", "RQ-1", *AUTO)["accepted_as"]
    bench.add_request("RQ-2")
    theirs = "sh('echo theirs > app.txt && git commit -qm theirs app.txt', cwd=ROOT)"
    bench.agent.does("implementer", f"write('app.txt', 'ours'); {theirs}; done()")
    assert bench.aiflow.json("run", "RQ-2", *AUTO)["state"] == "DONE"
    assert [(note["request_id"], note["reason_code"]) for note in mailbox.notes] == [("RQ-2", "MERGE_CONFLICT")]
    assert mailbox.notes[0]["command"] == "aiflow resume RQ-2 --update"
    bench.aiflow("accept", "RQ-2", code=6)  # the person sees that themselves
    bench.aiflow("send-back", "RQ-2", "-m", "Again")
    assert len(mailbox.notes) == 1


@pytest.mark.spec("REQ-6", "RUN-11")
def test_a_run_whose_process_died_before_it_was_accepted_is_told_if_it_cannot_be(
    bench: Bench, mailbox: Mailbox
) -> None:
    bench.agent.does("implementer", "write('aiflow.toml', '[agent]\\nkind = \"demo\"\\n'); done()")
    bench.run()
    path = bench.root / "requests/RQ-1.md"
    path.write_text(path.read_text().replace("status: blocked", "status: running"))
    mailbox.path.unlink()
    bench.aiflow.json("run", "RQ-1", *AUTO)
    assert mailbox.codes == ["SETTINGS_CHANGED"]


@pytest.mark.spec("RUN-6")
def test_a_run_that_another_replaces_is_not_told_again(bench: Bench, mailbox: Mailbox) -> None:
    bench.configure(f'[notify]\ncommand = "cat >> {mailbox.path}"\n[tests]\nunit = "false"')
    bench.run(code=7)
    bench.aiflow.json("-c", "tests.unit=true", "replan", "RQ-1")
    assert mailbox.codes == ["RETRY_LIMIT_EXCEEDED", "AWAITING_ACCEPTANCE"]
    assert "UNIT_TEST_FAILED" in mailbox.notes[0]["text"]


@pytest.mark.spec("ERR-4", "SEC")
def test_a_note_that_cannot_be_sent_changes_nothing_else(bench: Bench, mailbox: Mailbox) -> None:
    mailbox.configure("echo 'could not resolve host' >&2; exit 6")
    done = bench.aiflow("run", "RQ-1", "--json")
    assert json.loads(done.stdout)["state"] == "DONE"
    assert done.stderr == "The notification was not sent (exit code 6: could not resolve host)\n"
    [entry] = [entry for entry in bench.journal() if entry["kind"] == "note_failed"]
    assert entry["data"] == {"note": "waiting", "problem": "exit code 6: could not resolve host"}
    assert (entry["request_id"], entry["run_id"]) == ("RQ-1", bench.run_ids()[0])
    assert bench.locks() == []
    assert bench.status() == "blocked"


def test_a_start_that_is_refused_tells_nobody(bench: Bench, mailbox: Mailbox) -> None:
    bench.add_request("RQ-2", status="draft")
    bench.run("RQ-2", code=4)
    (bench.root / "app.txt").write_text("mine\n")
    bench.run(code=6)
    assert mailbox.notes == []


def test_the_command_may_come_from_the_environment_to_try_it_out(bench: Bench, mailbox: Mailbox) -> None:
    bench.configure()
    command = f'printf "%s" "$AIFLOW_NOTE_TITLE" > {mailbox.path}'
    bench.run(env={"AIFLOW_NOTIFY_COMMAND": command, "AIFLOW_LANG": "ja"})
    assert mailbox.path.read_text() == "RQ-1 が完了し、受け入れを待っています"


@pytest.mark.spec("AUT-1")
def test_the_end_of_an_auto_run_is_told_once_behind_what_waits(bench: Bench, mailbox: Mailbox) -> None:
    bench.agent.does("implementer", ASKS)
    bench.aiflow.json("auto")
    assert [(note["kind"], note["reason_code"]) for note in mailbox.notes] == [
        ("waiting", "NEEDS_CLARIFICATION"),
        ("auto_ended", "AUTO_NOTHING_RUNNABLE"),
    ]
    assert "RQ-1: Red or green?" in mailbox.notes[-1]["text"]
    assert "queue.lock" not in mailbox.seen.read_text().rpartition("---")[2]
