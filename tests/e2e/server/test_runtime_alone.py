"""`aiflow up` with nothing but what `requirements/runtime.lock` installs: what only the tests have is not missed (API-1)."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest

from e2e.bench import Bench
from waiting import PATIENCE_SECONDS, wait_until

pytestmark = [pytest.mark.contract, pytest.mark.spec("API-1")]

SOURCE = Path(__file__).parents[3]
# As it was before the tests got folders of their own: packages that were fetched once are not fetched again.
OUTSIDE = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


class Answer(NamedTuple):
    """What the server answered."""

    status: int
    headers: http.client.HTTPMessage
    text: str


class Browser:
    """Calls a server as a browser does: with an Origin, and the cookie that it was given."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._at = urlsplit(url)
        self._headers = {"Origin": url}

    def call(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
        """Call it once."""
        connection = http.client.HTTPConnection(self._at.hostname or "", self._at.port, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, path, body, self._headers | headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read().decode())
        finally:
            connection.close()

    def sign_in(self, code: str) -> None:
        """Post the form of the sign-in page."""
        form = urlencode({"code": code, "name": "Ann"})
        answer = self.call("POST", "/sign-in", form, **{"Content-Type": "application/x-www-form-urlencoded"})
        assert (answer.status, answer.headers["Location"]) == (303, "/"), answer
        self._headers["Cookie"] = answer.headers["Set-Cookie"].partition(";")[0]

    def json(self, path: str) -> Any:
        """Ask the API."""
        answer = self.call("GET", path)
        assert answer.status == 200, answer
        return json.loads(answer.text)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Install the program into a venv as `make setup` does, and return where it is."""
    venv = tmp_path_factory.mktemp("runtime") / "venv"
    uv, python = f"{Path(sys.executable).parent}/uv", f"{venv}/bin/python"
    install = [uv, "pip", "install", "--quiet", "--python", python]
    for argv in (
        [uv, "venv", "--quiet", "--python", sys.executable, str(venv)],
        [*install, "--require-hashes", "-r", "requirements/runtime.lock"],
        [*install, "--no-deps", "--no-build-isolation", "."],  # as a wheel: with the files that it has, and no others
    ):
        done = subprocess.run(argv, cwd=SOURCE, env=OUTSIDE, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{argv}: {done.stderr}"
    return f"{venv}/bin/aiflow"


@pytest.fixture
def up(bench: Bench, program: str) -> Iterator[subprocess.Popen[str]]:
    """Start `aiflow up` of that installation."""
    bench.aiflow.environ.pop("PYTHONPATH", None)
    process = bench.start(argv=[program, "-c", "agent.kind=demo", "up", "--json", "--no-open", "--port", "0"])
    yield process
    if process.poll() is None:
        process.kill()


def test_up_needs_only_what_the_runtime_lock_has(bench: Bench, up: subprocess.Popen[str]) -> None:
    assert up.stdout is not None
    line = up.stdout.readline()
    assert '"url"' in line, (line, up.communicate())
    ready = json.loads(line)
    page = Browser(ready["url"])
    token = {"Authorization": f"Bearer {Path(ready['token_file']).read_text().strip()}"}
    page.sign_in(json.loads(page.call("POST", "/api/sessions/code", **token).text)["code"])

    assert "RQ-1" in page.call("GET", "/").text
    for path in ("/static/app.css", "/static/page.js", "/static/vendor/htmx.min.js"):
        assert page.call("GET", path).status == 200, path
    for path in (
        "/backlog",
        "/backlog/graph",
        "/requests/RQ-1",
        "/doctor",
        "/activity",
        "/queue",
        "/settings",
        "/agents",
    ):
        assert page.call("GET", path).status == 200, path
    assert page.json("/api/health")["instance_id"] == ready["instance_id"]
    assert page.json("/api/status")["running"] == []
    assert page.json("/openapi.json")["info"]["title"] == "aiflow"
    assert 'aiflow_requests{status="ready"} 1.0' in page.call("GET", "/metrics").text

    begun = page.call("POST", "/api/requests/RQ-1/run")
    assert begun.status == 202, begun
    wait_until(lambda: page.json(json.loads(begun.text)["api_url"])["state"] == "DONE")
    os.kill(up.pid, signal.SIGTERM)
    _, said = up.communicate(timeout=PATIENCE_SECONDS)
    assert up.returncode == 0, said
    assert "Traceback" not in said + "".join(
        path.read_text() for path in (bench.root / ".aiflow").glob("workers/*.err")
    )
