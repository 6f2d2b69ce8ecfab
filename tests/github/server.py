"""The API behind HTTP, on a port of this machine: `with served(api) as url`."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from aiflow.adapters.github_issues.transport import Ask, LostError, NotSentError, Transport


@contextlib.contextmanager
def served(api: Transport) -> Iterator[str]:
    """Serve the API for as long as the block lasts; its links point here unless they were told otherwise."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer in one piece
        disable_nagle_algorithm = True

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

        def handle_one_request(self) -> None:
            with contextlib.suppress(ConnectionError):
                super().handle_one_request()

        def _answer(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            data = self.rfile.read(size)
            url = urlsplit(self.path)
            body = json.loads(data) if data else None
            ask = Ask(self.command, url.path, tuple(parse_qsl(url.query)), body)
            try:
                answer = api.send(ask, dict(self.headers.items()))
            except (LostError, NotSentError):
                self.close_connection = True
                return
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            self.wfile.flush()

        do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _answer  # noqa: N815 - as http.server calls them

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
