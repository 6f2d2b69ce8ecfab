"""A proxy between us and a real DynamoDB, which does what networks and AWS do, and DynamoDB Local does not.

A test sets rules: at which call of which operation what goes wrong. What the store itself does is never simulated.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from faults.index_faults import IndexFaults

INDEX = "ready-index"


class Fault(StrEnum):
    """What may go wrong with one call."""

    LOST = "lost"  # done, but the connection ends without an answer
    REFUSED = "refused"  # the connection ends, and nothing was done
    DELAYED = "delayed"  # done and answered, after a while
    ERROR_BEFORE = "error before"  # an internal error, and nothing was done
    ERROR_AFTER = "error after"  # an internal error, though it was done
    THROTTLED = "throttled"  # too much at the moment, nothing was done


class Call(NamedTuple):
    """One call as it came by, and what was done to it."""

    operation: str
    table: str
    index_name: str
    fault: Fault | None
    body: dict[str, Any]


@dataclass
class Rule:
    """Do `fault` to the calls that fit: after the first `skip` of them, `count` times, with this chance each.

    Without an operation or a table, every one fits. `seconds` is how long a delay takes.
    """

    fault: Fault
    operation: str = ""
    table: str = ""
    skip: int = 0
    count: int = 1
    chance: float = 1.0
    seconds: float = 0.0

    def fits(self, operation: str, table: str) -> bool:
        """Whether it speaks of such a call at all."""
        return self.operation in ("", operation) and self.table in ("", table)


FOR_EVER = 1_000_000_000
_ERRORS = {
    Fault.ERROR_BEFORE: (500, "com.amazonaws.dynamodb.v20120810#InternalServerError"),
    Fault.ERROR_AFTER: (500, "com.amazonaws.dynamodb.v20120810#InternalServerError"),
    Fault.THROTTLED: (400, "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"),
}
_NOT_DONE = {Fault.REFUSED, Fault.ERROR_BEFORE, Fault.THROTTLED}
_UNANSWERED = {Fault.LOST, Fault.REFUSED}


@dataclass
class StoreProxy:
    """Stands before the store at `upstream`; `endpoint` is where to call it."""

    upstream: str
    seed: int = 0
    rules: list[Rule] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.index = IndexFaults(self.seed)
        self._chance = random.Random(self.seed)
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._timer: threading.Timer | None = None
        self._listener = _bound(0)
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._listen()

    def down(self, seconds: float | None = None) -> None:
        """End every connection and refuse new ones: for some time, or until `up`."""
        port = self._listener.getsockname()[1]
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()
        self._listener = _bound(port)  # bound, so that nobody else gets it, but not listening
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        if seconds is not None:
            self._timer = threading.Timer(seconds, self._listen)
            self._timer.start()

    def up(self) -> None:
        """Answer again."""
        self._listen()

    def close(self) -> None:
        """End everything that was begun."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        self.down()
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def done(self, fault: Fault) -> int:
        """Count how often something was done to a call."""
        return sum(1 for call in self.calls if call.fault is fault)

    def judge(self, operation: str, body: dict[str, Any]) -> Rule | None:
        """Say what happens to a call, and take note of it."""
        table = str(body.get("TableName", ""))
        with self._lock:
            rule = next((rule for rule in self.rules if self._is_hit(rule, operation, table)), None)
            index = str(body.get("IndexName", ""))
            self.calls.append(Call(operation, table, index, rule.fault if rule else None, body))
        return rule

    def _is_hit(self, rule: Rule, operation: str, table: str) -> bool:
        if not rule.fits(operation, table) or rule.count == 0 or self._chance.random() >= rule.chance:
            return False
        if rule.skip > 0:
            rule.skip -= 1
            return False
        rule.count -= 1
        return True

    def _listen(self) -> None:
        self._listener.listen(128)
        self._acceptor = threading.Thread(target=self._accept, args=(self._listener,), daemon=True)
        self._acceptor.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, address = listener.accept()
            except OSError:
                return
            with self._lock:
                self._connections.add(connection)
            thread = threading.Thread(target=self._serve, args=(connection, address), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket, address: Any) -> None:
        try:
            with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
                _Handler(connection, address, self)  # type: ignore[arg-type]
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()


@contextlib.contextmanager
def store_proxy(upstream: str, *rules: Rule, seed: int = 0) -> Iterator[StoreProxy]:
    """Give a proxy for as long as it is needed."""
    proxy = StoreProxy(upstream, seed, list(rules))
    try:
        yield proxy
    finally:
        proxy.close()


class _Handler(BaseHTTPRequestHandler):
    """One connection to us, and one of its own to the store."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body of an answer go out together

    def setup(self) -> None:
        super().setup()
        self.proxy: StoreProxy = self.server  # type: ignore[assignment]
        self.store = http.client.HTTPConnection(str(urlsplit(self.proxy.upstream).netloc), timeout=60)

    def finish(self) -> None:
        self.store.close()
        super().finish()

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        operation = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
        body = json.loads(data or b"{}")
        rule = self.proxy.judge(operation, body)
        fault = rule.fault if rule else None
        status, head, answer = (0, {}, b"") if fault in _NOT_DONE else self._forward(data)
        if rule and fault is Fault.DELAYED:
            time.sleep(rule.seconds)
        if fault in _UNANSWERED:
            self.close_connection = True
        elif fault in _ERRORS:
            status, name = _ERRORS[fault]
            self._answer(status, {}, json.dumps({"__type": name, "message": f"{fault}, by the test"}).encode())
        elif status == 200 and body.get("IndexName") == INDEX:
            self._answer(status, {}, json.dumps(self.proxy.index.change(body, json.loads(answer))).encode())
        else:
            self._answer(status, head, answer)

    def _forward(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        """Let the store do it."""
        names = ("X-Amz-Target", "Content-Type", "Authorization", "X-Amz-Date", "X-Amz-Security-Token")
        self.store.request("POST", "/", data, {name: self.headers[name] for name in names if self.headers[name]})
        answer = self.store.getresponse()
        kept = {name: value for name, value in answer.getheaders() if name.lower().startswith("x-amz")}
        return answer.status, kept, answer.read()

    def _answer(self, status: int, head: dict[str, str], data: bytes) -> None:
        self.send_response_only(status)
        for name, value in {"Content-Type": "application/x-amz-json-1.0", **head}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()


def _bound(port: int) -> socket.socket:
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind(("127.0.0.1", port))
    return found
