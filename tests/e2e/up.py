"""A server in front of a test: `aiflow up` as a real process, called over HTTP with the user's token."""

from __future__ import annotations

import http.client
import json
import os
import signal
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from e2e.bench import Bench, is_alive
from waiting import wait_until

# The implementer says that it is at work and waits until it is let go.
HELD = (
    "(HERE / ('at.' + call['request']['id'])).touch()\n"
    "while not (HERE / 'go').exists(): time.sleep(0.02)\n"
    "write(call['request']['id'] + '.txt', call['run_id']); done()"
)


class Answer(NamedTuple):
    """What the server answered."""

    status: int
    shape: Any


class Up:
    """One `aiflow up --json`, on a port of its own."""

    def __init__(self, bench: Bench, *args: str, **env: str) -> None:
        self.bench = bench
        given = args if "--port" in args else ("--port", "0", *args)
        self.process = bench.start("up", "--json", *given, env=env)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()
        self.ready = json.loads(line)
        self.url: str = self.ready["url"]

    def call(self, method: str, path: str, body: object = None) -> Answer:
        """Call the API as a script does."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        token = Path(self.ready["token_file"]).read_text().strip()
        headers = {"Authorization": f"Bearer {token}"} | ({"Content-Type": "application/json"} if body else {})
        try:
            connection.request(method, path, json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        return Answer(answer.status, json.loads(data) if data else None)

    def run(self, request_id: str = "RQ-1") -> str:
        """Start a run from outside, held by its implementer; returns the run's id."""
        answer = self.call("POST", f"/api/requests/{request_id}/run")
        assert answer.status == 202, answer
        self.held(request_id)
        return str(answer.shape["run_id"])

    def held(self, request_id: str = "RQ-1") -> None:
        """Wait until the implementer is at a request."""
        wait_until((self.bench.agent.folder / f"at.{request_id}").exists)

    def asks(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.process.pid, number)

    def end(self, number: signal.Signals | None = signal.SIGINT, code: int = 0) -> str:
        """End it, or wait for its end; returns what it said, and checks that nothing of it is left."""
        if number is not None:
            self.asks(number)
        out, err = self.process.communicate(timeout=120)
        assert self.process.returncode == code, out + err
        assert "Traceback" not in err
        assert out == "", "with --json one line is all"
        assert not (self.bench.root / ".aiflow/server/server.json").exists()
        assert list(Path(self.bench.aiflow.environ["XDG_DATA_HOME"]).glob("aiflow/servers/*.json")) == []
        return err

    def kill(self) -> None:
        """Kill the server, and nothing else."""
        self.process.kill()
        self.process.communicate()


def hold(bench: Bench) -> None:
    """Let the implementer wait until it is let go."""
    bench.agent.does("implementer", HELD)


def let_go(bench: Bench) -> None:
    """Let the implementer end its work."""
    (bench.agent.folder / "go").touch()


def holder_of(bench: Bench, name: str = "request.RQ-1") -> int:
    """Return the process that holds a lock."""
    return int(json.loads((bench.root / f".aiflow/locks/{name}.lock.json").read_text())["pid"])


def wait_for_state(bench: Bench, state: str, request_id: str = "RQ-1") -> None:
    """Wait until a request's newest run has a state, and nobody is at work any more."""
    wait_until(lambda: bench.run_ids(request_id) and bench.stage(request_id)["state"] == state and not bench.locks())


def end_leftovers(bench: Bench) -> None:
    """End workers that a failed test left: they outlive their server, as they should."""
    let_go(bench)
    for lock in bench.locks():
        pid = holder_of(bench, lock.removesuffix(".lock.json"))
        if pid and is_alive(pid):
            os.kill(pid, signal.SIGKILL)
