"""`aiflow open` and `aiflow sessions` (SEC): a link to sign in with, who is signed in, and ending that."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from aiflow.adapters.server.access_files import AccessFiles
from aiflow.adapters.server.record_files import RecordFiles
from aiflow.domain.server.sessions import Session
from aiflow.ports.server import ServerRecord
from builders import NOW
from e2e.bench import Bench
from e2e.up import Up

pytestmark = pytest.mark.spec("API-1")
CODE = {"code": "ABCDE-FGHJK", "expires_at": "2026-01-02T03:05:05+00:00"}


@contextlib.contextmanager
def standing_in(bench: Bench, answer: dict[str, Any], status: int = 200) -> Iterator[list[tuple[str, str]]]:
    """Be the server of the checkout for a while; gives the calls that came, each with its Authorization."""
    calls: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def _answer(self, shape: dict[str, Any], code: int = 200) -> None:
            data = json.dumps(shape).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self._answer({"instance_id": "me", "version": "0"})

        def do_POST(self) -> None:
            calls.append((self.path, self.headers["Authorization"]))
            self._answer(answer, status)

        def log_message(self, *_args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        records = RecordFiles(bench.root, bench.aiflow.environ)
        records.write(ServerRecord("me", url, 1, str(bench.root), NOW, "0"))
        try:
            yield calls
        finally:
            server.shutdown()
            records.remove("me")


def test_open_asks_for_a_link_with_the_token_and_prints_it(bench: Bench) -> None:
    with standing_in(bench, CODE) as calls:
        told = bench.aiflow("open").stdout
        shape = bench.aiflow.json("open")
    token = AccessFiles(bench.root, bench.aiflow.environ).token()
    assert calls == [("/api/sessions/code", f"Bearer {token}")] * 2
    assert f"{shape['url']}/sign-in#code={CODE['code']}" == shape["sign_in_url"]
    assert "/sign-in#code=ABCDE-FGHJK" in told
    assert token not in told


@pytest.mark.parametrize("hosts", ["", "laptop"])
def test_open_shows_a_qr_code_where_a_phone_can_follow_it(bench: Bench, hosts: str) -> None:
    ours, theirs = pty.openpty()
    environ = {**bench.aiflow.environ, "TERM": "xterm", "COLUMNS": "100"}
    environ.pop("NO_COLOR", None)
    with standing_in(bench, CODE), open(ours, encoding="utf-8") as shown:
        argv = [sys.executable, "-m", "aiflow", "-c", f"server.hosts={hosts}", "open", "--no-browser"]
        with subprocess.Popen(argv, cwd=bench.root, env=environ, stdout=theirs) as process:
            os.close(theirs)
            text = ""
            with contextlib.suppress(OSError):  # how a terminal says that nobody writes any more
                for line in shown:
                    text += line
        assert process.returncode == 0
    assert "/sign-in#code=ABCDE-FGHJK" in text
    assert ("\u2580" in text) is bool(hosts)


def test_open_says_when_no_server_is_there(bench: Bench) -> None:
    assert bench.aiflow.json("open", code=3)["error"]["reason_code"] == "SERVER_NOT_RUNNING"
    with standing_in(bench, CODE):
        kept = (bench.root / ".aiflow/server/server.json").read_text()
    (bench.root / ".aiflow/server/server.json").write_text(kept)
    assert bench.aiflow.json("open", code=3)["error"]["reason_code"] == "SERVER_NOT_RUNNING", "it is long gone"


def test_open_says_what_the_server_refuses(bench: Bench) -> None:
    with standing_in(bench, {"error": {"message": "no, thank you"}}, 401):
        assert "no, thank you" in bench.aiflow("open", code=3).stderr


def sign_in(bench: Bench, *names: str) -> list[str]:
    """Let people be signed in; returns the ids of their sessions."""
    access = AccessFiles(bench.root, bench.aiflow.environ)
    from datetime import UTC, datetime

    now = datetime.now(UTC)
    made = [
        Session(f"id{number}", f"key{number}", name, now, now + timedelta(days=1), now, "Firefox")
        for number, name in enumerate(names)
    ]
    access.change(lambda _before: tuple(made))
    return [each.session_id for each in made]


@pytest.mark.parametrize("has_server", [False, True])
def test_sessions_are_listed_and_ended_with_and_without_a_server(bench: Bench, *, has_server: bool) -> None:
    assert "Nobody" in bench.aiflow("sessions").stdout
    up = Up(bench) if has_server else None
    first, second, third = sign_in(bench, "Ada", "Grace", "日本")
    shape = bench.aiflow.json("sessions")["sessions"]
    assert {each["session_id"] for each in shape} == {first, second, third}
    assert "key" not in json.dumps(shape)
    told = bench.aiflow("sessions").stdout
    assert all(word in told for word in ("Ada", "日本", "Firefox"))
    assert bench.aiflow.json("sessions", "revoke", first) == {"revoked": 1}
    assert bench.aiflow.json("sessions", "revoke", first, code=2)["error"]["reason_code"] == "SESSION_NOT_FOUND"
    for wrong in (("revoke",), ("--all",), ("revoke", second, "--all")):
        assert bench.aiflow.json("sessions", *wrong, code=2)["error"]["reason_code"] == "INPUT_INVALID"
    assert "2" in bench.aiflow("sessions", "revoke", "--all").stdout
    assert bench.aiflow.json("sessions") == {"sessions": []}
    if up is not None:
        up.end()


def test_what_leads_a_browser_to_the_sign_in_is_the_users_alone(tmp_path: Path) -> None:
    from aiflow.adapters.server.door_page import remove_door_page, write_door_page

    assert write_door_page(tmp_path, "http://127.0.0.1:1/sign-in#code=A").startswith("file://")
    path = tmp_path / ".aiflow/server/open.html"
    assert path.stat().st_mode & 0o777 == 0o600
    assert "http://127.0.0.1:1/sign-in#code=A" in path.read_text()
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    write_door_page(tmp_path, "http://x")
    assert not (tmp_path / "elsewhere").exists()
    remove_door_page(tmp_path)
    remove_door_page(tmp_path)
    assert not path.exists()
