"""Every route of the server from outside (SEC): whatever is added later is walked, too."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute, Route

from aiflow.domain.server.guard import is_open, is_webhook
from server_yard import Answer, Served, served

pytestmark = pytest.mark.spec("SEC")

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
BAD_IDS = [
    "..",
    "%2e%2e",
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "a%00b",
    "%0d%0aX:%20y",
    "-x",
    ".git",
    "a" * 300,
    "a" * 10_000,
]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("walls")
    (root / ".git").mkdir()
    (root / "requests").mkdir()
    (root / "requests/RQ-1.md").write_text("---\nstatus: draft\n---\n# One\n")
    with served(root) as given:
        given.bearer  # noqa: B018 - the token is made before anything is compared
        yield given


def routes(up: Served) -> list[tuple[str, str]]:
    """Return every method and path that the application has; none may be hidden from this walk."""
    application = up.app.app
    assert isinstance(application, FastAPI)
    found = sorted({(method, path) for path, methods in _walk(application.routes) for method in methods})
    documented = {(method.upper(), path) for path, item in application.openapi()["paths"].items() for method in item}
    assert documented | {("POST", "/sign-in"), ("POST", "/api/requests/{request_id}/run")} <= set(found)
    return found


def _walk(routes: Iterable[BaseRoute]) -> Iterator[tuple[str, set[str]]]:
    for route in routes:
        inner = getattr(route, "original_router", route)
        if isinstance(inner, Route):
            yield inner.path, inner.methods or set()
        else:
            assert isinstance(inner, APIRouter), route  # of another kind (a mount, a WebSocket) nothing is known here
            yield from _walk(inner.routes)


def filled(path: str, with_: str = "RQ-1") -> str:
    return re.sub(r"\{[^}]+\}", with_, path)


def on_disk(root: Path) -> dict[str, tuple[int, int]]:
    """Return every file of a checkout as it is; what a worker said that was refused is no change."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file() and path.parent.name != "workers")
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in files}


@contextlib.contextmanager
def untouched(up: Served) -> Iterator[None]:
    """Nothing is changed on disk while the block lasts; who signed in before it, did so before."""
    before = on_disk(Path(up.server.record.root))
    yield
    assert on_disk(Path(up.server.record.root)) == before


STRANGERS: dict[str, Callable[[Served], dict[str, str]]] = {
    "nobody": lambda up: {"Origin": up.origin},
    "a wrong token": lambda up: {"Authorization": "Bearer wrong"},
    "an empty token": lambda up: {"Authorization": "Bearer "},
    "a wrong cookie": lambda up: {"Origin": up.origin, "Cookie": f"{up.server.cookie}=wrong"},
    "another server's cookie": lambda up: {
        "Origin": up.origin,
        "Cookie": up.cookie()["Cookie"].replace("aiflow_", "aiflow_1"),
    },
    "the token as a basic password": lambda up: {
        "Origin": up.origin,
        "Authorization": up.bearer["Authorization"].replace("Bearer", "Basic"),
    },
    "a wrong token beside a right cookie": lambda up: {"Authorization": "Bearer wrong", **up.cookie()},
}


@pytest.mark.parametrize("who", STRANGERS)
def test_nobody_gets_in_without_the_token_or_a_session(up: Served, who: str) -> None:
    sent = STRANGERS[who](up)
    assert len(routes(up)) > 5
    with untouched(up):
        for method, path in routes(up):
            if is_open(method, filled(path)):
                continue
            kind = {} if method in ("GET", "HEAD") else JSON if path.startswith("/api/") else FORM
            answer = up.call(method, filled(path), {**sent, **kind}, b"{}" if kind else b"")
            is_page = method == "GET" and not path.startswith(("/api/", "/metrics", "/openapi"))
            if is_page:
                assert (answer.status, answer.headers["location"]) == (303, "/sign-in"), path
            else:
                assert answer.status == 401, (method, path)
                assert answer.reason == "AUTH_REQUIRED" or method == "HEAD", (method, path)


FOREIGN: dict[str, tuple[dict[str, str], str, int]] = {
    "a foreign page": ({"Origin": "http://evil.example"}, "ORIGIN_REFUSED", 403),
    "no page that has a name": ({"Origin": "null"}, "ORIGIN_REFUSED", 403),
    "a page of another port": ({"Origin": "http://127.0.0.1:1"}, "ORIGIN_REFUSED", 403),
    "a page over TLS": ({"Origin": "https://127.0.0.1:{port}"}, "ORIGIN_REFUSED", 403),
    "a longer name": ({"Origin": "http://127.0.0.1:{port}.evil.example"}, "ORIGIN_REFUSED", 403),
    "a rebound name": ({"Host": "evil.example:{port}"}, "HOST_REFUSED", 421),
    "a rebound name without a port": ({"Host": "evil.example"}, "HOST_REFUSED", 421),
    "no port": ({"Host": "127.0.0.1"}, "HOST_REFUSED", 421),
}


@pytest.mark.parametrize("how", FOREIGN)
@pytest.mark.parametrize("key", ["token", "session"])
def test_a_foreign_page_gets_nowhere_even_with_a_key(up: Served, how: str, key: str) -> None:
    headers, reason, status = FOREIGN[how]
    sent = {name: value.format(port=up.port) for name, value in headers.items()}
    own = up.bearer if key == "token" else up.cookie()
    with untouched(up):
        for method, path in routes(up):
            if reason == "ORIGIN_REFUSED" and is_webhook(method, path):  # whoever sends it, its signature is all
                continue
            answer = up.call(method, filled(path), {**JSON, **own, **sent}, b"{}")
            assert (answer.status, answer.reason) == (status, reason) if method != "HEAD" else answer.status == status


def test_a_session_alone_changes_nothing_without_its_page(up: Served) -> None:
    cookie = up.cookie()
    with untouched(up):
        for method, path in routes(up):
            if method not in ("GET", "HEAD") and not is_webhook(method, path):
                kind = JSON if path.startswith("/api/") else FORM
                answer = up.call(method, filled(path), {**kind, **cookie}, b"{}")
                assert (answer.status, answer.reason) == (403, "ORIGIN_REFUSED"), (method, path)


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"])
def test_what_a_form_can_post_is_no_call_of_the_api(up: Served, kind: str) -> None:
    headers = {**up.cookie(), "Origin": up.origin, "Content-Type": kind}
    with untouched(up):
        for method, path in routes(up):
            if method not in ("GET", "HEAD") and path.startswith("/api/"):
                answer = up.call(method, filled(path), headers, b'{"a":1}')
                assert (answer.status, answer.reason) == (415, "CONTENT_TYPE_REFUSED"), (method, path)


@pytest.mark.parametrize("bad", BAD_IDS, ids=lambda each: each[:12])
def test_an_id_is_never_a_path(up: Served, bad: str) -> None:
    own = {**up.bearer, "Origin": up.origin}
    with untouched(up):
        for method, path in routes(up):
            if "{" not in path or "events" in path:
                continue
            kind = {} if method in ("GET", "HEAD") else JSON
            answer = up.call(method, filled(path, bad), {**own, **kind}, b"{}" if kind else b"")
            # Without a store nothing of the queue can be looked up; that is said, and none is started.
            is_away = answer.status == 503 and answer.reason in ("STORE_UNREACHABLE", "STORE_NOT_INSTALLED")
            assert 400 <= answer.status < 500 or is_away, (method, path, answer.body[:300])
            assert answer.reason or method == "HEAD", (method, path)
            assert b"Traceback" not in answer.body
            assert "x" not in answer.headers


TRICKS = [
    "/api//status", "//api/status", "/api/./status", "/api/../api/status", "/static/../api/status",
    "/static/..%2fapi%2fstatus", "/static/%2e%2e/api/status", "/%2e%2e/api/status", "/api%2fstatus", "/API/STATUS",
    "/api/status/", "/sign-in/../api/status", "/sign-in%2f..%2fapi/status", "/api/health/../status", "/api/status%00",
    "/api/health/", "/api/health%20", "/static", "/static/", "/api/status;x", "/api/status%23", "/.", "/..;/api/status",
]  # fmt: skip


@pytest.mark.parametrize("path", TRICKS)
def test_no_trick_with_a_path_gets_past(up: Served, path: str) -> None:
    answer = up.call("GET", path)
    assert answer.status in (303, 401, 404)
    assert b"requests" not in answer.body


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"])
def test_no_other_method_is_answered(up: Served, method: str) -> None:
    preflight = {"Access-Control-Request-Method": "POST", **up.bearer}
    for path in ("/api/status", "/sign-in", "/static/page.css"):
        answer = up.call(method, path, preflight)
        assert 400 <= answer.status < 500
        assert not [name for name in answer.headers if name.startswith("access-control")]


def first_line(up: Served, data: bytes) -> bytes:
    """Send bytes as they are and return the answer's first line."""
    opened = up.raw(data)
    with opened.makefile("rb") as file:
        return file.readline()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /api/status HTTP/1.0\r\n", b"421"),
        ("GET /api/status HTTP/1.1\r\n", b"400"),
        ("GET http://127.0.0.1:{port}/api/status HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n", b"404"),
        ("GET http://evil.example/api/status HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n", b"404"),
        ("OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n", b"404"),
        ("GET /api/status HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n", b"400"),
        ("GET /api/status HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer a\r\n", b"422"),
        ("POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: {own}\r\nOrigin: http://evil\r\n", b"403"),
        ("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n", b"303"),
        ("GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n", b"401"),
        ("POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 1\r\nContent-Length: 2\r\n", b"400"),
        ("GET /api/status HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX: {long}\r\n", b"400"),
        ("\x16\x03\x01\r\n", b"400"),
    ],
)  # fmt: skip
def test_what_no_browser_sends_is_harmless(up: Served, head: str, status: bytes) -> None:
    text = head.format(port=up.port, own=up.origin, long="x" * 200_000)
    if "Authorization" in head:  # the right one beside a wrong one
        text += f"Authorization: {up.bearer['Authorization']}\r\n"
    with untouched(up), contextlib.suppress(ConnectionResetError):
        assert first_line(up, text.encode("latin-1") + b"\r\n").split(b" ")[1:2] == [status]


def test_a_body_of_fifty_megabytes_is_not_read(up: Served) -> None:
    before = resident_bytes()
    for method, path in routes(up):
        if method in ("GET", "HEAD"):
            continue
        kind = "application/json" if path.startswith("/api/") else "application/x-www-form-urlencoded"
        head = f"{method} {filled(path)} HTTP/1.1\r\nHost: 127.0.0.1:{up.port}\r\nContent-Type: {kind}\r\n"
        head += f"Authorization: {up.bearer['Authorization']}\r\n"
        assert first_line(up, (head + "Content-Length: 50000000\r\n\r\n").encode()).split()[1] == b"413"
    opened = up.raw((head + "Transfer-Encoding: chunked\r\n\r\n").encode())  # its length is not told
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for _ in range(800):
            opened.sendall(chunk)
        raise AssertionError("all of it was read")
    assert resident_bytes() - before < 30_000_000


def test_who_pastes_too_much_into_a_form_is_told_so(up: Served) -> None:
    head = f"POST /requests HTTP/1.1\r\nHost: 127.0.0.1:{up.port}\r\nAuthorization: {up.bearer['Authorization']}\r\n"
    head += f"Origin: {up.origin}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9000000\r\n\r\n"
    opened = up.raw(head.encode())
    for _ in range(90):  # a browser sends all of it before it looks for an answer
        opened.sendall(b"x" * 100_000)
    assert b"413" in opened.recv(65_536).splitlines()[0]


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_every_answer_tells_browsers_to_be_careful(up: Served) -> None:
    answers = [
        up.call("GET", path, up.bearer) for path in ("/", "/sign-in", "/static/page.css", "/api/status", "/nowhere")
    ]
    answers += [up.call("GET", "/api/status"), up.call("POST", "/api/runs", {"Host": "evil"}), up.call("GET", "/")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "cache-control" in answer.headers
        assert "server" not in answer.headers
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_the_pages_obey_the_policy(up: Served) -> None:
    for path in ("/", "/sign-in"):
        page = up.call("GET", path, up.bearer).body.decode()
        assert not re.search(r"\sstyle=|\son\w+=|javascript:|<style|<script(?![^>]*\ssrc=)|https?://", page)


def test_an_error_says_nothing_that_is_secret(up: Served) -> None:
    secret = up.bearer["Authorization"].split()[1]
    cookie = up.cookie()
    answers: list[Answer] = []
    for method, path in routes(up):
        if method != "HEAD" and "events" not in path:
            sent = {**up.bearer, **cookie, "Origin": "null"}
            answers.append(up.call(method, filled(path), sent, b""))
            answers.append(up.call("GET", filled(path, "nothing"), {**up.bearer, **cookie}))
    text = b" ".join(answer.body + json.dumps(dict(answer.headers)).encode() for answer in answers).decode()
    assert secret not in text
    assert cookie["Cookie"].partition("=")[2] not in text
