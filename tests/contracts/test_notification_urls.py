"""Notes by the addresses of a variable (`notify.urls_env`): the real apprise, a real receiver on loopback."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.notifications.notifier import ProgramNotifier
from aiflow.adapters.processes.launch import GuardedProcesses
from aiflow.adapters.secrets import Masker
from aiflow.domain.next_action import OPEN, ActionKind, NextAction
from aiflow.domain.notes import Note, NoteKind
from aiflow.settings import Source, settle

NOTE = Note(
    NoteKind.WAITING,
    "NEEDS_CLARIFICATION",
    "RQ-1 asks a question",
    "Which colour?\n赤 or green?",
    NextAction(ActionKind.ANSWER, "RQ-1", options=(("answer", OPEN),)),
    "RQ-1",
    "RUN-1",
)
PASSWORD = "s3cret-in-the-address"


class Receiver:
    """A service that takes notes."""

    def __init__(self) -> None:
        self.status, self.got = 200, list[dict[str, Any]]()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(outer.status)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"json://user:{PASSWORD}@127.0.0.1:{self.server.server_address[1]}/notes"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.02,))
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def notifier(root: Path, urls: str, page: str = "", command: str = "") -> ProgramNotifier:
    environ = {"PATH": os.environ["PATH"], "HOME": str(root), "MY_URLS": urls}
    settings = settle({Source.FILE: {"notify.urls_env": "MY_URLS", "notify.command": command}})
    processes = GuardedProcesses(str(root / ".aiflow/guards"), grace_seconds=0.2)
    return ProgramNotifier(str(root), environ, settings, processes, Masker(environ), lambda: page)


@pytest.mark.spec("RUN-10")
def test_a_note_has_the_question_the_command_and_a_link(tmp_path: Path, receiver: Receiver) -> None:
    assert notifier(tmp_path, receiver.url, "http://127.0.0.1:4310/").send(NOTE) is None
    [got] = receiver.got
    assert got["title"] == "RQ-1 asks a question"
    assert got["message"].splitlines() == [
        "Which colour?",
        "赤 or green?",
        'aiflow resume RQ-1 --answer "…"',
        "http://127.0.0.1:4310/requests/RQ-1/runs/RUN-1",
    ]


def test_without_a_page_there_is_no_link_and_each_address_gets_the_note(tmp_path: Path, receiver: Receiver) -> None:
    sender = notifier(tmp_path, f"{receiver.url} {receiver.url}", command="cat > note.json")
    assert sender.send(Note(NoteKind.AUTO_ENDED, "AUTO_RUNS_LIMIT", "Auto-run has ended", "3 done")) is None
    assert [got["message"] for got in receiver.got] == ["3 done", "3 done"]
    assert json.loads((tmp_path / "note.json").read_text())["link"] is None  # both ways at once


@pytest.mark.spec("SEC")
@pytest.mark.parametrize("status", [404, 500])
def test_an_address_that_refuses_is_said_and_never_shown(tmp_path: Path, receiver: Receiver, status: int) -> None:
    receiver.status = status
    problem = notifier(tmp_path, receiver.url).send(NOTE)
    assert problem is not None
    assert "not sent: JSON" in problem
    assert PASSWORD not in problem


@pytest.mark.spec("SEC")
@pytest.mark.parametrize("urls", ["", f"nosuchservice://{PASSWORD}@127.0.0.1/", "just words"])
def test_addresses_that_cannot_be_used_are_said_and_never_shown(tmp_path: Path, urls: str) -> None:
    problem = notifier(tmp_path, urls).send(NOTE)
    assert problem is not None
    assert "addresses cannot be used" in problem
    assert PASSWORD not in problem


def test_the_doctor_learns_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert notifier(tmp_path, " ").lack() == "unset"
    assert notifier(tmp_path, "json://127.0.0.1/").lack() is None
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert notifier(tmp_path, "json://127.0.0.1/").lack() == "missing"
