"""Callers that are too slow, or too many (SEC): they are cut, and everybody else is answered meanwhile."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.api.connection import CallerLimits
from server_yard import Served, served
from waiting import wait_until

pytestmark = pytest.mark.spec("SEC")

HURRIED = CallerLimits(header_seconds=0.3, body_seconds=0.3, write_seconds=0.5, connections=20)


@pytest.fixture
def up(repository: Path) -> Iterator[Served]:
    with served(repository, patience=HURRIED) as given:
        yield given


def heard_until_the_end(opened: socket.socket) -> bytes:
    """Read what the server says until it ends the connection; one that it does not end fails the test."""
    heard = b""
    try:
        while data := opened.recv(65536):
            heard += data
    except ConnectionResetError:
        pass
    return heard


def is_answering(up: Served) -> bool:
    return up.call("GET", "/api/health").status == 200


@pytest.mark.parametrize("sent", [b"", b"GET /api/health HTTP/1.1\r\nHost: x\r\n", b"GET"])
def test_headers_that_never_end_are_not_waited_for(up: Served, sent: bytes) -> None:
    opened = up.raw(sent)
    assert is_answering(up)
    assert heard_until_the_end(opened) == b""


def test_headers_that_trickle_in_are_not_waited_for(up: Served) -> None:
    opened = up.raw(b"GET /api/health HTTP/1.1\r\n")
    stop = threading.Event()

    def trickle() -> None:
        try:
            while not stop.wait(0.05):
                opened.sendall(b"X: y\r\n")
        except OSError:
            stop.set()

    writer = threading.Thread(target=trickle)
    writer.start()
    try:
        assert heard_until_the_end(opened) == b""
        assert is_answering(up)
    finally:
        stop.set()
        writer.join()


def test_the_headers_of_a_second_call_are_not_waited_for_either(up: Served) -> None:
    call = f"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1:{up.port}\r\n"
    opened = up.raw(f"{call}\r\n".encode())
    assert opened.recv(65536).startswith(b"HTTP/1.1 200")
    opened.sendall(call.encode())
    assert heard_until_the_end(opened).count(b"HTTP/1.1") == 0


def test_a_body_that_trickles_in_is_not_waited_for(up: Served) -> None:
    head = f"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1:{up.port}\r\nOrigin: {up.origin}\r\n"
    head += "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\ncode="
    heard = heard_until_the_end(up.raw(head.encode()))
    assert heard.startswith(b"HTTP/1.1 408")
    assert b"BODY_TOO_SLOW" in heard


def test_an_answer_that_nobody_reads_is_given_up(up: Served) -> None:
    (Path(up.server.record.root) / "requests/RQ-1.md").write_text("# One\n\n" + "word " * 180_000)
    opened = socket.socket()
    up.opened.callback(opened.close)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.connect(("127.0.0.1", up.port))
    call = f"GET /api/requests/RQ-1 HTTP/1.1\r\nHost: 127.0.0.1:{up.port}\r\n"
    call += f"Authorization: {up.bearer['Authorization']}\r\n\r\n"
    opened.sendall(call.encode() * 12)  # one after the other, more than all buffers hold
    wait_until(lambda: not up.http.server_state.connections)
    assert is_answering(up)


def test_more_connections_than_there_may_be_are_ended_at_once(up: Served) -> None:
    idle = [up.raw(b"GET / HTTP/1.1\r\n") for _ in range(60)]
    ended = [heard_until_the_end(opened) for opened in idle]
    assert ended == [b""] * 60
    wait_until(lambda: is_answering(up))


def test_a_hundred_slow_callers_keep_nobody_else_waiting(repository: Path) -> None:
    with served(repository, patience=CallerLimits(header_seconds=3600)) as up:
        for _ in range(100):
            up.raw(b"GET /api/status HTTP/1.1\r\nHost: ")
        assert all(is_answering(up) for _ in range(20))
