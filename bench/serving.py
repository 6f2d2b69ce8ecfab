"""PRF-7, PRF-8: pages of 10,000 requests; fifty open event streams while a log grows; what a call and a start cost.

The server is a real `aiflow up`. `python bench/serving.py read URL COUNT` reads so many streams at once, in a process
of its own, until they end, and prints how many events each of them had; `… empty` is a bare FastAPI application.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from backlog import make_backlog
from place import quiet_place

STREAMS = 50
LINES_A_SECOND = 1_000
SECONDS = 10.0
CALLS = 300
AIFLOW = str(Path(sys.executable).with_name("aiflow"))
REQUEST, RUN = "RQ-000001", "RUN-20260101-000000-00beef"
# The same request and run are in every backlog.
PAGES = {
    "morning": "/",
    "backlog": "/backlog",
    "request": "/requests/RQ-000000",
    "run": "/requests/RQ-000000/runs/RUN-20260101-000000-000000",
}


class Up:
    """A server at work for a checkout."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [AIFLOW, "up", "--json", "--no-open", "--no-runner", "--port", "0"],
            cwd=folder,
            env=environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        told: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.url, self.pid = str(told["url"]), int(told["pid"])
        self.token = Path(told["token_file"]).read_text().strip()
        parts = urlsplit(self.url)
        self.connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)

    def call(self, path: str) -> float:
        """Ask for something, and return how long that took."""
        began = time.perf_counter()
        self.connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        answer = self.connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body
        return time.perf_counter() - began

    def resident_bytes(self) -> int:
        """Return how much memory it holds now."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def busy_seconds(self) -> float:
        """Return the processor time that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> float:
        """Stop it, and return how long that took."""
        began = time.perf_counter()
        os.kill(self.pid, signal.SIGTERM)
        self.process.wait(60)
        self.connection.close()
        return time.perf_counter() - began


class Serving(NamedTuple):
    """What was measured; times in seconds, memory in bytes."""

    p95_idle: float
    p95_busy: float
    held_before: float
    held_after: float
    stop: float
    live: float
    idle_share: float
    list_small: float
    list_large: float
    pages: dict[str, tuple[float, float]]
    call: float
    in_process: float
    start: float
    empty_start: float


def measure(scratch: Path) -> Serving:
    """Measure everything about a server."""
    with quiet_place(scratch) as place:
        small, large = Path(place, "hundred"), Path(place, "ten-thousand")
        make_backlog(small, 100, 10)
        make_backlog(large, 10_000, 1_000)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("AIFLOW")}
        environ |= {f"XDG_{name}_HOME": f"{place}/{name.lower()}" for name in ("DATA", "STATE", "CACHE")}
        for folder in (small, large):
            subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
            subprocess.run([AIFLOW, "init"], cwd=folder, env=environ, stdout=subprocess.DEVNULL, check=True)
        lists = _lists(small, large, environ)
        start, empty_start = _starts(small, environ)
        return Serving(**_streams(small, environ), **lists, start=start, empty_start=empty_start)


def _lists(small: Path, large: Path, environ: dict[str, str]) -> dict[str, Any]:
    """Time the list and the pages of both backlogs, warm and in turn, and the same list without a server."""
    from aiflow.usecases.backlog.list import RequestFilter, list_requests, open_unless
    from aiflow.usecases.shapes.backlog import request_list
    from aiflow.wiring import project_at

    project, only = project_at(str(small), stays=True), RequestFilter(open_unless((), is_all=False))

    def in_process() -> float:
        began = time.perf_counter()
        json.dumps(request_list(list_requests(project.sources, _no_locks, only, limit=100)), default=str)
        return time.perf_counter() - began

    servers = {"small": Up(small, environ), "large": Up(large, environ)}
    asked = {"list": "/api/requests?limit=100", **PAGES}
    ways: dict[str, Callable[[], float]] = {
        f"{name}_{size}": partial(up.call, path) for name, path in asked.items() for size, up in servers.items()
    }
    ways["in_process"] = in_process
    time.sleep(1.5)  # what was made just now is read again for a second
    for way in ways.values():
        way()
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(30):
        for name, way in ways.items():
            taken[name].append(way())
    for up in servers.values():
        up.stop()
    found = {name: median(each) for name, each in taken.items()}
    pages = {name: (found[f"{name}_large"], found[f"{name}_small"]) for name in PAGES}
    rest = {name: found[name] for name in ("list_small", "list_large", "in_process")}
    return {**rest, "pages": pages, "call": found["list_small"]}


def _no_locks() -> Any:
    raise AssertionError("nothing runs there")


def _starts(folder: Path, environ: dict[str, str]) -> tuple[float, float]:
    """Time the start until the first line: of `up`, and of an application that can do nothing; the best of a few."""
    ours, empty = [], []
    for _ in range(5):
        began = time.perf_counter()
        up = Up(folder, environ)
        ours.append(time.perf_counter() - began)
        up.stop()
        began = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, __file__, "empty"], stdout=subprocess.PIPE, text=True, env=environ
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            empty.append(time.perf_counter() - began)
            process.terminate()
    return min(ours), min(empty)


def _streams(folder: Path, environ: dict[str, str]) -> dict[str, Any]:
    """Have a log grow while fifty read the event stream and somebody calls."""
    from aiflow.adapters.locks.taking import LockTaking
    from aiflow.domain.request import RequestId

    log = folder / f"runs/{REQUEST}/{RUN}/logs/step-0.log"
    log.parent.mkdir(parents=True)
    (log.parents[1] / "stage.json").write_text(json.dumps({"request_id": REQUEST, "run_id": RUN, "state": "PLANNING"}))
    LockTaking(str(folder), 1800).acquire_request(RequestId(REQUEST), RUN)
    up = Up(folder, environ)
    up.call("/api/status")
    idle = _p95(up.call("/api/status") for _ in range(CALLS))
    busy_before, began = up.busy_seconds(), time.perf_counter()
    time.sleep(3)
    idle_share = (up.busy_seconds() - busy_before) / (time.perf_counter() - began)
    with subprocess.Popen(
        [sys.executable, __file__, "read", up.url, str(STREAMS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as readers:
        assert readers.stdin is not None
        assert readers.stdout is not None
        readers.stdin.write(f"{up.token}\n")
        readers.stdin.flush()
        readers.stdout.readline()  # all are there
        with _growing(log):
            for _ in range(20):
                up.call("/api/status")
                time.sleep(0.05)
            before = up.resident_bytes()
            until, took = time.perf_counter() + SECONDS, []
            while time.perf_counter() < until:
                took.append(up.call("/api/status"))
                time.sleep(0.01)
            after = up.resident_bytes()
            stop = up.stop()
        counts = json.loads(readers.stdout.readline())
    assert len(took) > 50
    live = sum(count >= max(counts) * 0.9 and count >= SECONDS * 4 for count in counts)
    busy = {"p95_idle": idle, "p95_busy": _p95(took), "held_before": before, "held_after": after}
    return {**busy, "stop": stop, "live": live, "idle_share": idle_share}


def _p95(taken: Any) -> float:
    ordered = sorted(taken)
    return float(ordered[int(len(ordered) * 0.95)])


@contextlib.contextmanager
def _growing(log: Path) -> Iterator[None]:
    """Have a log grow while the block lasts, in a process of its own."""
    script = (
        "import sys, time\nlog, rate = open(sys.argv[1], 'ab', 0), int(sys.argv[2])\nbegan, written = time.time(), 0\n"
        "while True:\n    due = int((time.time() - began) * rate)\n"
        "    log.write(b''.join(b'line %d of a log that grows\\n' % n for n in range(written, due)))\n"
        "    written = due\n    time.sleep(0.02)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(log), str(LINES_A_SECOND)]) as writer:
        try:
            yield
        finally:
            writer.terminate()


def read(url: str, count: int) -> None:
    """Read so many streams until they end, and print how many logs' events each had."""
    parts, chosen = urlsplit(url), selectors.DefaultSelector()
    events: dict[socket.socket, int] = {}
    token = sys.stdin.readline().strip()
    call = f"GET /api/events HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n\r\n"
    for _ in range(count):
        opened = socket.create_connection((parts.hostname or "", parts.port or 80))
        opened.sendall(call.encode())
        assert b"hello" in opened.recv(65536) + opened.recv(65536)
        chosen.register(opened, selectors.EVENT_READ)
        events[opened] = 0
    print("ready", flush=True)
    open_ones = count
    while open_ones:
        for key, _ in chosen.select():
            opened = key.fileobj  # type: ignore[assignment]
            data = opened.recv(65536)
            events[opened] += data.count(b"event: log")
            if not data:
                chosen.unregister(opened)
                open_ones -= 1
    print(json.dumps(list(events.values())), flush=True)


def empty() -> None:
    """Be an application that can do nothing, and say when it answers."""
    import asyncio

    import uvicorn
    from fastapi import FastAPI

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            print("ready", flush=True)

    asyncio.run(Server(uvicorn.Config(FastAPI(), port=0, log_config=None)).serve())


if __name__ == "__main__":
    if sys.argv[1] == "empty":
        empty()
    else:
        read(sys.argv[2], int(sys.argv[3]))
