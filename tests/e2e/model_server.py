"""A model on loopback that answers real coding agents as a test says: Messages, Responses and Chat Completions.

    with ModelServer(whole_run()) as models:
        ...                                   # a program that talks to models.url
        assert [asked.role for asked in models.turns] == ["planner", "implementer", "implementer", "qa"]

See `model_turns` for what it may answer, and `real_agents` for programs that ask.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import Any, Self, cast

from e2e.model_turns import Asked, Cut, Garble, Hang, Refuse, Reply, Say, Script, Slow
from e2e.model_wires import WIRES, Wire
from e2e.model_words import Usage, encode

_KEYS = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"})
_GARBAGE = (b"data: {this is no event\n\n", b"event: \xff\xfe\ndata: \x00\xff\n\n", b"neither is this\n\n")


class ModelServer:
    """Answers by a script, and writes down everything it is asked."""

    def __init__(self, script: Script | None = None, usage: Usage | None = None) -> None:
        self.script = script or (lambda _: Say())
        self.usage = usage or Usage()
        self.asked: list[Asked] = []
        self.closing = threading.Event()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def port(self) -> int:
        """The port it listens on, on 127.0.0.1."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Its address, without the APIs' own paths."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def turns(self) -> list[Asked]:
        """What it was asked as a turn of the work, oldest first: no titles, no counting of tokens."""
        return [asked for asked in self.asked if not asked.is_aside]

    @property
    def prompts(self) -> list[str]:
        """Everything that was said to it in the user's name, each once, in order."""
        return list(dict.fromkeys(asked.prompt for asked in self.turns))

    def close(self) -> None:
        """End it, and every answer that hangs."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: ModelServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        """Say nothing: the programs that ask are killed in the middle of it."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Without this every answer takes 44 ms.
    disable_nagle_algorithm = True

    @property
    def model(self) -> ModelServer:
        return cast("_Server", self.server).model

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_GET(self) -> None:
        models = [{"id": "stub-model", "object": "model", "slug": "stub-model"}]
        self._json(200, {"object": "list", "data": models if "/models" in self.path else [], "models": []})

    def do_POST(self) -> None:
        body = self._body()
        path = self.path.partition("?")[0]
        wire = next((wire for wire in WIRES if path.endswith(wire.path)), None)
        if wire is None:
            self._json(200, {"input_tokens": 1} if path.endswith("/count_tokens") else {})
            return
        heard = wire.hear(body)
        headers = {name.lower(): value for name, value in self.headers.items()}
        keys = frozenset(headers) & _KEYS
        kept = {name: value for name, value in headers.items() if name not in _KEYS}
        asked = Asked(path, body, kept, keys, str(body.get("model", "")), *heard)
        self.model.asked.append(asked)
        reply = Say("A title") if asked.is_aside else self.model.script(asked)
        self._reply(wire, asked, reply)

    def _body(self) -> Mapping[str, Any]:
        length = self.headers.get("content-length")
        data = self.rfile.read(int(length)) if length else b"".join(iter(self._chunk, b""))
        with contextlib.suppress(ValueError):
            value = json.loads(data)
            return value if isinstance(value, dict) else {}
        return {}

    def _chunk(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return b""
        size = int(self.rfile.readline().split(b";")[0] or b"0", 16)
        data = self.rfile.read(size)
        self.rfile.readline()
        return data

    def _reply(self, wire: Wire, asked: Asked, reply: Reply) -> None:
        match reply:
            case Refuse(in_stream=in_stream) if not (in_stream and asked.body.get("stream")):
                status, headers, body = wire.refusal(reply)
                self._json(status, body, headers)
            case Slow(inner, seconds):
                self.model.closing.wait(seconds)
                self._reply(wire, asked, inner)
            case Hang(inner):
                if inner is not None:
                    self._half(self._parts(wire, asked, inner))
                self.model.closing.wait()
                self.close_connection = True
            case Cut(inner):
                self._half(self._parts(wire, asked, inner))
                self.close_connection = True
            case Garble(inner):
                parts = self._parts(wire, asked, inner)
                mixed = [part for pair in itertools.zip_longest(_GARBAGE, parts, fillvalue=b"") for part in pair]
                self._send(b"".join(mixed), _type_of(asked))
            case _:
                self._send(b"".join(self._parts(wire, asked, reply)), _type_of(asked))

    def _parts(self, wire: Wire, asked: Asked, reply: Reply) -> list[bytes]:
        """Write an answer as the program wants it: as events, or (claude, when a stream has failed) as one document."""
        if isinstance(reply, Refuse):
            return [encode(event) for event in wire.failure(reply)]
        assert not isinstance(reply, (Hang, Cut, Garble, Slow)), "these do not go into one another"
        call = wire.call_of(reply, asked)
        if asked.body.get("stream"):
            return [encode(event) for event in wire.events(call, asked.model, self.model.usage)]
        return [json.dumps(wire.whole(call, asked.model, self.model.usage)).encode()]

    def _half(self, parts: list[bytes]) -> None:
        """Begin an answer, and stop in the middle of an event."""
        data = b"".join(parts)
        self._head(200, len(data), "text/event-stream", {})
        self.wfile.write(data[: len(data) // 2])
        self.wfile.flush()

    def _json(self, status: int, value: object, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self._head(status, len(data), "application/json", headers or {})
        self.wfile.write(data)

    def _send(self, data: bytes, content_type: str) -> None:
        self._head(200, len(data), content_type, {})
        self.wfile.write(data)

    def _head(self, status: int, length: int, content_type: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-type": content_type, "content-length": str(length), **headers}.items():
            self.send_header(name, value)
        self.end_headers()


def _type_of(asked: Asked) -> str:
    return "text/event-stream" if asked.body.get("stream") else "application/json"
