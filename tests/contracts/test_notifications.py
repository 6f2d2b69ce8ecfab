"""Notes through a command of the user's own (`notify.command`): real shells, real processes."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.notifications.notifier import MAX_LINE, MAX_TEXT, ProgramNotifier
from aiflow.adapters.processes import table
from aiflow.adapters.processes.launch import GuardedProcesses
from aiflow.adapters.secrets import Masker
from aiflow.domain.next_action import OPEN, ActionKind, NextAction, shell
from aiflow.domain.notes import Note, NoteKind
from aiflow.errors import EnvironmentProblemError
from aiflow.ports import Notifier, Processes
from aiflow.settings import Source, settle
from doc_examples import fenced
from waiting import wait_until

NOTE = Note(
    NoteKind.WAITING,
    "NEEDS_CLARIFICATION",
    "RQ-1 asks a question",
    "Which colour?\n赤 or green?",
    NextAction(ActionKind.ANSWER, "RQ-1", options=(("answer", OPEN),)),
    "RQ-1",
    "RUN-1",
)
SECRET = "tr0ub4dor-and-3"
RECORD = 'cat > note.json; printf "%s\\0" "$AIFLOW_NOTE_TITLE" "$AIFLOW_NOTE_TEXT" "$AIFLOW_NOTE_COMMAND" > words'


class Place:
    """A checkout and a user with an environment of their own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ = {"PATH": os.environ["PATH"], "DISPLAY": ":7", "SLACK_TOKEN": SECRET}
        self.processes: Processes = GuardedProcesses(str(root / ".aiflow/guards"), grace_seconds=0.2)

    def notifier(self, command: str, timeout: int = 30) -> ProgramNotifier:
        settings = settle({Source.FILE: {"notify.command": command, "notify.timeout_seconds": timeout}})
        return ProgramNotifier(str(self.root), self.environ, settings, self.processes, Masker(self.environ))

    def send(self, command: str, note: Note = NOTE, timeout: int = 30) -> str | None:
        notifier: Notifier = self.notifier(command, timeout)
        return notifier.send(note)

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.root / "note.json").read_bytes())
        return document

    def words(self) -> list[str]:
        return (self.root / "words").read_bytes().decode().split("\0")[:-1]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def described(*, command: str | None = None, **changes: str) -> Note:
    fields: Mapping[str, Any] = {"kind": NoteKind.WAITING, "reason_code": "X", "title": "t", "text": "x", **changes}
    return Note(**fields, action=shell(command) if command else None)


@pytest.mark.spec("ERR-4")
def test_the_command_gets_the_note_on_its_standard_input_and_as_variables(place: Place) -> None:
    assert place.send(f"{RECORD}; env > env; pwd > pwd") is None
    assert place.document() == {
        "version": "1.0",
        "kind": "waiting",
        "reason_code": "NEEDS_CLARIFICATION",
        "title": "RQ-1 asks a question",
        "text": "Which colour?\n赤 or green?",
        "command": 'aiflow resume RQ-1 --answer "…"',
        "request_id": "RQ-1",
        "run_id": "RUN-1",
        "link": None,
    }
    assert place.words() == [NOTE.title, NOTE.text, 'aiflow resume RQ-1 --answer "…"']
    variables = dict(line.split("=", 1) for line in (place.root / "env").read_text().splitlines() if "=" in line)
    assert variables["AIFLOW_NOTE_KIND"] == "waiting"
    assert variables["AIFLOW_NOTE_REQUEST_ID"] == "RQ-1"
    assert variables["AIFLOW_NOTE_RUN_ID"] == "RUN-1"
    assert variables["AIFLOW_NOTE_REASON_CODE"] == "NEEDS_CLARIFICATION"
    assert (place.root / "pwd").read_text().strip() == str(place.root)


def test_the_command_gets_the_users_whole_environment(place: Place) -> None:
    place.environ["AIFLOW_NOTE_TITLE"] = "somebody else's"
    assert place.send('printf %s "$DISPLAY $SLACK_TOKEN $AIFLOW_NOTE_TITLE" > out') is None
    assert (place.root / "out").read_text() == f":7 {SECRET} {NOTE.title}"


def test_a_note_about_no_request_leaves_its_variables_empty(place: Place) -> None:
    note = Note(NoteKind.AUTO_ENDED, "AUTO_RUNS_LIMIT", "Auto-run has ended", "")
    assert place.send('cat > note.json; [ -z "${AIFLOW_NOTE_RUN_ID?}${AIFLOW_NOTE_COMMAND?}" ]', note) is None
    assert place.document()["request_id"] is None
    assert place.document()["kind"] == "auto_ended"


@pytest.mark.parametrize("command", ["", "  \n"])
def test_no_command_is_no_trouble_and_starts_nothing(place: Place, command: str) -> None:
    assert place.send(command) is None
    assert list(place.root.iterdir()) == []


@pytest.mark.spec("SEC")
def test_what_a_note_says_is_never_part_of_the_command(place: Place) -> None:
    hostile = "$(touch owned) `touch owned` '; touch owned; \" && touch owned #"
    note = described(title=hostile, text=f"{hostile}\n-n --help", command=hostile)
    assert place.send(RECORD, note) is None
    assert place.words() == [hostile, f"{hostile}\n-n --help", hostile]
    assert not (place.root / "owned").exists()


@pytest.mark.spec("SEC")
def test_a_note_commands_no_terminal(place: Place) -> None:
    note = described(title="a\x1b]0;owned\x07\nb\tc", text="one\r\n\x1b[2Jtwo\0\u202ethree\ud800\n\n", command="x\ny")
    assert place.send(RECORD, note) is None
    assert place.words() == ["a\ufffd]0;owned\ufffd b c", "one\n\ufffd[2Jtwo\ufffd\ufffdthree\\ud800", "x y"]
    assert place.document()["text"] == place.words()[1]


@pytest.mark.spec("SEC", "AGT-4")
def test_secrets_are_masked_also_in_what_the_command_says(place: Place) -> None:
    token = "ghp_" + "a" * 30
    note = described(title=f"key {SECRET}", text=f"use {token}", command=f"x {SECRET}")
    assert place.send(RECORD, note) is None
    assert place.words() == ["key ***", "use ***", "x ***"]
    cut_in_two = 'printf "%s%20000s" "$SLACK_TOKEN" x; exit 1'
    assert SECRET[-4:] not in (place.send(cut_in_two) or "")
    assert place.send(f'echo "$SLACK_TOKEN is wrong, so is {token}"; exit 3') == "exit code 3: *** is wrong, so is ***"


def test_a_huge_note_is_cut_and_still_arrives(place: Place) -> None:
    # Longer than one variable may be, and a secret where it is cut.
    text = "字" * (MAX_TEXT - 10) + f" {SECRET} " + "x" * 2_000_000
    assert place.send(RECORD, described(title="t" * 100_000, text=text, command="c" * 100_000)) is None
    title, shown, command = place.words()
    assert (len(title), len(shown), len(command)) == (MAX_LINE, MAX_TEXT, MAX_LINE)
    assert shown.endswith("…")
    assert "字 *** x" in shown
    assert place.document()["text"] == shown


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("exit 1", "exit code 1"),
        ("echo first; echo last >&2; exit 22", "exit code 22: last"),
        ("kill -9 $$", "exit code -9"),
        ("printf '\\033[31mred\\n\\n'; exit 1", "exit code 1: \ufffd[31mred"),
        ("head -c 3000000 /dev/zero | tr '\\0' z; exit 1", None),
        ("if", None),
        ("no-such-program-here --now", None),
    ],
)
def test_what_went_wrong_is_said(place: Place, command: str, problem: str | None) -> None:
    said = place.send(command)
    assert said is not None
    assert said.startswith("exit code") if problem is None else said == problem
    assert "\n" not in said
    assert len(said) < 600
    if command.startswith("no-such"):
        assert said.startswith("exit code 127: ")
        assert "not found" in said


def test_a_command_that_reads_nothing_is_no_trouble(place: Place) -> None:
    assert place.send("exec 0<&-; true", described(text="x" * 3000)) is None


@pytest.mark.spec("AGT-5")
def test_a_command_that_hangs_is_ended_with_its_children_at_its_limit(place: Place) -> None:
    began = time.monotonic()
    script = "trap '' TERM; (trap '' TERM; echo $$ > shell; sleep 61) & (setsid sleep 62 &) ; sleep 63"
    assert place.send(script, timeout=1) == "it took longer than 1 s"
    assert time.monotonic() - began >= 1
    assert list((place.root / ".aiflow/guards").iterdir()) == []
    assert not _left_running(place)


@pytest.mark.spec("AGT-5")
def test_a_command_that_sends_in_the_background_is_told_that_it_was_ended(place: Place) -> None:
    assert place.send("sleep 60 >/dev/null 2>&1 &") == "it left processes running, which were ended"
    assert not _left_running(place)


def _left_running(place: Place) -> list[int]:
    """Whoever was started in this checkout."""
    processes = table.ProcTable()
    return [pid for pid in processes.pids() if _cwd(pid) == str(place.root) and pid != os.getpid()]


def _cwd(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return None


def test_a_signal_while_the_command_runs_ends_it(place: Place) -> None:
    came = threading.Event()
    notifier = place.notifier("touch started; sleep 60")
    said: list[str | None] = []
    thread = threading.Thread(target=lambda: said.append(notifier.send(NOTE, came.is_set)))
    thread.start()
    wait_until((place.root / "started").exists)
    came.set()
    thread.join(60)
    assert said == ["it was stopped"]


def test_a_signal_that_came_before_does_not_keep_the_note_back(place: Place) -> None:
    assert place.notifier("sleep 0.5; touch sent").send(NOTE, lambda: True) is None
    assert (place.root / "sent").exists()


class Broken:
    """Can start nothing."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def run(self, program: object, output: object, should_stop: object, errors: object = None) -> Any:
        raise self.error

    def confinement(self) -> None:
        return None


@pytest.mark.spec("ERR-3")
@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (EnvironmentProblemError(reason_code="DISK_FULL", path="x", problem="no room"), "DISK_FULL: no room"),
        (OSError(24, "Too many open files"), "[Errno 24] Too many open files"),
        (ValueError("odd"), "odd"),
    ],
)
def test_nothing_is_ever_raised(place: Place, error: Exception, problem: str) -> None:
    place.processes = Broken(error)
    assert place.send("true") == problem


@pytest.mark.spec("ERR-3")
def test_a_checkout_that_is_gone_and_an_odd_environment_are_no_traceback(place: Place) -> None:
    place.environ["A=B"] = "x"
    assert place.send("true") == "IO_ERROR: Invalid argument"
    del place.environ["A=B"]
    place.processes = GuardedProcesses(str(place.root.parent / "guards"))
    shutil.rmtree(place.root)
    assert place.send("true") == "IO_ERROR: No such file or directory"
    place.root.mkdir()


# --- the commands of the guide --------------------------------------------------------------------------------------

GUIDE = Path(__file__).parents[2] / "docs/guides/notifications.md"
HOSTILE = described(title='RQ-1 "asks" $(touch owned)', text="-d @/etc/passwd <!channel> & 'x'\n`touch owned`")


def command_with(program: str) -> str:
    """The guide's command that starts a program."""
    found = (tomllib.loads(block).get("notify", {}).get("command", "") for block in fenced(GUIDE.read_text(), "toml"))
    return next(str(command) for command in found if program in command)


def put_in_place(place: Place, program: str) -> None:
    """Let a program only write down what it was called with."""
    path = place.root / "bin" / program
    path.parent.mkdir()
    path.write_text(
        f'#!/bin/sh\nprintf "%s\\0" "$@" > {place.root}/argv\n[ {program} != curl ] || cat > {place.root}/sent\n'
    )
    path.chmod(0o755)
    place.environ["PATH"] = f"{path.parent}:{place.environ['PATH']}"


@pytest.mark.spec("SEC")
@pytest.mark.parametrize("program", ["notify-send", "osascript"])
def test_a_desktop_gets_a_hostile_note_as_it_is(place: Place, program: str) -> None:
    put_in_place(place, program)
    assert place.send(command_with(program), HOSTILE) is None
    argv = (place.root / "argv").read_text().split("\0")[:-1]
    assert argv[-2:] == [HOSTILE.title, HOSTILE.text]
    assert not (place.root / "owned").exists()


@pytest.mark.spec("SEC")
@pytest.mark.skipif(shutil.which("jq") is None, reason="the guide's command needs jq")
def test_a_chat_gets_a_hostile_note_as_text_that_mentions_nobody(place: Place) -> None:
    put_in_place(place, "curl")
    place.environ["SLACK_WEBHOOK_URL"] = "http://127.0.0.1/hook"
    assert place.send(command_with("curl"), HOSTILE) is None
    escaped = HOSTILE.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert json.loads((place.root / "sent").read_text()) == {"text": f"{HOSTILE.title}\n{escaped}"}
    assert (place.root / "argv").read_text().endswith("@-\0http://127.0.0.1/hook\0")
    assert not (place.root / "owned").exists()
