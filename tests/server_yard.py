"""A server of a checkout inside the test's own process: on a real socket, with a token, sessions and event streams."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiflow import __version__
from aiflow.api.connection import CallerLimits
from aiflow.api.context import Server
from aiflow.api.guard import AccessGuard
from aiflow.api.serve import HttpServer, listen
from aiflow.domain.server.guard import addresses
from aiflow.ports.server import ServerRecord
from aiflow.web.app import make_app
from aiflow.wiring import now
from aiflow.wiring.live import LivePorts
from aiflow.wiring.server import door_of, new_instance_id, server_records, watch_of, work_starter
from waiting import PATIENCE_SECONDS, wait_until


def server_at(
    root: Path, port: int, *, auth: str = "token", hosts: tuple[str, ...] = (), patience: CallerLimits | None = None
) -> Server:
    """Put a server together as `aiflow up` does."""
    (root / "requests").mkdir(exist_ok=True)
    live = LivePorts(str(root), ("agent.kind=demo",))
    record = ServerRecord(new_instance_id(), f"http://127.0.0.1:{port}", 1, str(root), now(), __version__)
    return Server(
        live=live,
        sign_in=door_of(str(root), 30),
        work=work_starter(str(root), live),
        record=record,
        records=server_records(str(root)),
        addresses=addresses("127.0.0.1", port, hosts),
        is_unguarded=auth == "none",
        port=port,
        language="en",
        now=now,
        watch=watch_of(str(root), live),
        patience=patience or CallerLimits(),
    )


@dataclass
class Answer:
    """What the server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def reason(self) -> str | None:
        """The reason code of a refusal."""
        try:
            return str(self.json["error"]["reason_code"])
        except (ValueError, KeyError, TypeError):
            on_page = re.search(rb'class="rc">(\w+)<', self.body)
            return on_page[1].decode() if on_page else None


@dataclass
class Served:
    """A server that answers on a port of its own."""

    server: Server
    app: AccessGuard
    http: HttpServer
    port: int
    thread: threading.Thread = field(repr=False)
    opened: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, repr=False)

    @property
    def origin(self) -> str:
        """The address that a browser names."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def bearer(self) -> dict[str, str]:
        """The header of a program with the token."""
        return {"Authorization": f"Bearer {self.server.sign_in.access.token()}"}

    def cookie(self, name: str = "Ann") -> dict[str, str]:
        """Sign a browser in, and return its cookie's header."""
        secret, _ = self.server.sign_in.sign_in(self.server.sign_in.make_code()[0], name)
        return {"Cookie": f"{self.server.cookie}={secret}"}

    def call(self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Answer:
        """Call it once, with these headers and no others that matter."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            sent = {"Host": f"127.0.0.1:{self.port}", **(headers or {})}
            if body or method in ("POST", "PUT", "PATCH"):
                sent.setdefault("Content-Length", str(len(body)))
            for name, value in sent.items():
                connection.putheader(name, value)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it answers before all of it is sent
                connection.endheaders(body or None)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def raw(self, data: bytes = b"") -> socket.socket:
        """Open a connection and send bytes as they are."""
        opened = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_SECONDS)
        self.opened.callback(opened.close)
        opened.sendall(data)
        return opened

    def stream(self, headers: Mapping[str, str] | None = None, after: str | None = None) -> Stream:
        """Open an event stream."""
        return Stream(self, {**self.bearer, **(headers or {})}, after)

    def stop(self) -> None:
        """Ask it to stop, and wait until it has."""
        self.http.should_exit = True
        self.thread.join(PATIENCE_SECONDS)
        assert not self.thread.is_alive()


class Event(dict[str, Any]):
    """One event: its facts, its kind and its id."""

    kind: str = ""
    id: str | None = None


class Stream:
    """An event stream, read line by line."""

    def __init__(self, served: Served, headers: Mapping[str, str], after: str | None = None) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE_SECONDS)
        last = {"Last-Event-ID": after} if after else {}
        served.opened.callback(self.close)
        self.connection.request("GET", "/api/events", headers={**headers, **last})
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def events(self) -> Iterator[Event]:
        """Yield what comes until the server ends the stream."""
        event = Event()
        for line in self.answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                event.kind = value
            elif name == "id":
                event.id = value
            elif name == "data":
                event.update(json.loads(value))
            elif not name and event.kind:
                yield event
                event = Event()

    def until(self, kind: str, **ids: object) -> list[Event]:
        """Read until an event of a kind with these facts comes; return all up to it."""
        seen = []
        for event in self.events():
            if event.kind == "still" != kind:  # comes whenever nothing else does for a moment
                continue
            seen.append(event)
            if event.kind == kind and all(event.get(name) == value for name, value in ids.items()):
                return seen
        raise AssertionError(f"the stream ended without {kind} {ids}: {seen}")

    def close(self) -> None:
        """Go away."""
        self.connection.close()
        self.answer.close()


@contextlib.contextmanager
def served(
    root: Path, *, auth: str = "token", hosts: tuple[str, ...] = (), patience: CallerLimits | None = None
) -> Iterator[Served]:
    """Serve a checkout while the block lasts."""
    listening = listen("127.0.0.1", 0, is_ours=lambda _host, _port: False)
    port = int(listening.getsockname()[1])
    server = server_at(root, port, auth=auth, hosts=hosts, patience=patience)
    app, ready = make_app(server), threading.Event()
    http_server = HttpServer(app, ready.set, server.events.stop, server.patience)
    thread = threading.Thread(target=http_server.work, args=(listening,), name="server")
    thread.start()
    given = Served(server, app, http_server, port, thread)
    try:
        wait_until(ready.is_set)
        yield given
    finally:
        given.opened.close()
        http_server.should_exit = True
        thread.join(PATIENCE_SECONDS)
        listening.close()
