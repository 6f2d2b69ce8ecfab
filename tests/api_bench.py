"""A server inside the test's own process: the real application on a real checkout, its workers real processes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.testclient import TestClient

from aiflow import __version__
from aiflow.api.app import make_app
from aiflow.api.context import Server
from aiflow.api.guard import AccessGuard
from aiflow.domain.server.guard import addresses
from aiflow.ports.server import ServerRecord
from aiflow.wiring.live import LivePorts
from aiflow.wiring.server import door_of, server_records, watch_of, work_starter
from e2e.bench import Bench
from waiting import wait_until

PORT = 4310
JSON = {"Content-Type": "application/json"}
ORIGIN = f"http://127.0.0.1:{PORT}"


class ApiBench:
    """A checkout with a server, called by a program that has the token."""

    def __init__(
        self, bench: Bench, patch: pytest.MonkeyPatch, make: Callable[[Server], AccessGuard] = make_app
    ) -> None:
        self.bench = bench
        for name in [*os.environ]:
            if name not in bench.aiflow.environ:
                patch.delenv(name)
        for name, value in bench.aiflow.environ.items():
            patch.setenv(name, value)
        root = str(bench.root)
        live, door = LivePorts(root), door_of(root, 30)
        self.token = door.access.token()
        record = ServerRecord("0123456789abcdef", ORIGIN, os.getpid(), root, datetime.now(UTC), __version__)
        self.server = Server(
            live=live,
            sign_in=door,
            work=work_starter(root, live),
            record=record,
            records=server_records(root),
            addresses=addresses("127.0.0.1", PORT),
            is_unguarded=False,
            port=PORT,
            language="en",
            now=lambda: datetime.now(UTC),
            watch=watch_of(root, live),
        )
        self.app = make(self.server)
        self.client = self.new_client()

    def new_client(self, **headers: str) -> TestClient:
        """Give a client with the token, as a program on this machine has it."""
        known = {"Authorization": f"Bearer {self.token}", **headers}
        return TestClient(self.app, base_url=ORIGIN, headers=known, raise_server_exceptions=False)

    def get(self, path: str, status: int = 200, **more: Any) -> Any:
        """Ask something."""
        told = self.client.get(path, **more)
        assert told.status_code == status, told.text
        return told.json()

    def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        """Have something done."""
        return self.send("POST", path, body, status)

    def send(self, method: str, path: str, body: Any, status: int) -> Any:
        """Send a body as it is, be it text that is none."""
        sent: dict[str, Any] = {} if body is None else {"content": json.dumps(body), "headers": JSON}
        told = self.client.request(method, path, **sent)
        assert told.status_code == status, told.text
        return told.json()

    def until_idle(self) -> None:
        """Wait until no worker is at work any more."""
        worker = self.server.work.current
        wait_until(lambda: worker is None or self.server.work.workers.exit_code(worker) is not None)

    def close(self) -> None:
        """End what was started."""
        worker = self.server.work.current
        if worker is not None and self.server.work.workers.exit_code(worker) is None:
            os.kill(worker.pid, signal.SIGTERM)
        self.until_idle()
