"""The terminal of an auto-run is closed in the middle of the night: it stops in order, and the next one finishes all."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.bench import Bench, is_alive
from waiting import wait_until

# The implementer writes half of its work, says which request it is at, and waits until it is let go.
HELD = (
    "name = call['request']['id']\n"
    "write(f'{name}.txt', 'half\\n')\n"
    "(HERE / f'at.{name}').touch()\n"
    "while not (HERE / 'go').exists(): time.sleep(0.02)\n"
    "write(f'{name}.txt', 'done\\n'); done()"
)
# Takes its standard input as the terminal that it is ended with, and becomes the program.
LAUNCH = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
AUTO = (sys.executable, "-m", "aiflow", "auto")
SHELL = ("/bin/sh", "-c", f"{' '.join(AUTO)}; true")


class Terminal:
    """A window with a program in it, which its closing ends as it ends a person's."""

    def __init__(self, bench: Bench, argv: tuple[str, ...]) -> None:
        self._main, side = pty.openpty()
        os.set_blocking(self._main, False)
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *argv],
            cwd=bench.root,
            env={**bench.aiflow.environ, "TERM": "xterm-256color"},
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
        )
        os.close(side)
        self.shown = ""

    def look(self) -> None:
        """Read what is on it, so that nobody has to wait for a reader."""
        with contextlib.suppress(OSError):
            while chunk := os.read(self._main, 65536):
                self.shown += chunk.decode("utf-8", "replace")

    def close(self) -> None:
        """Close the window."""
        if self._main >= 0:
            os.close(self._main)
        self._main = -1


@contextlib.contextmanager
def night(bench: Bench, argv: tuple[str, ...]) -> Iterator[Terminal]:
    """An auto-run in a window, at work on RQ-1."""
    terminal = Terminal(bench, argv)
    try:

        def is_at_work() -> bool:
            terminal.look()
            return (bench.agent.folder / "at.RQ-1").exists() or terminal.process.poll() is not None

        wait_until(is_at_work)
        assert terminal.process.poll() is None, terminal.shown
        yield terminal
    finally:
        terminal.close()
        terminal.process.kill()
        terminal.process.wait()


@pytest.fixture
def backlog(bench: Bench) -> Path:
    """Three requests, each built on the one before, accepted automatically; returns auto-run's lock."""
    path = bench.root / "aiflow.toml"
    path.write_text(f'accept = "auto"\n{path.read_text()}')
    for number in (2, 3):
        bench.add_request(f"RQ-{number}", depends_on=f"[RQ-{number - 1}]")
    bench.commit()
    bench.agent.does("implementer", HELD)
    return bench.root / ".aiflow/locks/queue.lock.json"


@pytest.mark.spec("AUT-4", "AUT-1", "LCK-6", "RUN-14")
@pytest.mark.parametrize("argv", [AUTO, SHELL], ids=["alone", "in a shell"])
def test_a_closed_terminal_stops_a_night_in_order_and_the_next_one_finishes_it(
    bench: Bench, backlog: Path, argv: tuple[str, ...]
) -> None:
    with night(bench, argv) as terminal:
        pid = json.loads(backlog.read_text())["pid"]
        terminal.close()
        wait_until(lambda: not is_alive(pid))
    # It stopped clearly: nobody holds anything, and what was half done is kept.
    assert bench.locks() == []
    assert bench.stage()["state"] == "NEEDS_INPUT"
    assert bench.errors()["reason_code"] == "AUTO_CUT_OFF"
    assert [path.read_text().count("+half") for path in bench.folder().glob("*.patch")] == [1]
    last = bench.aiflow.json("auto", "--last")
    assert (last["state"], last["reason_code"]) == ("stopped", "AUTO_CUT_OFF")
    assert "the next auto-run continues it" in bench.report()
    # Nobody says that it waits for a person.
    assert "the next auto-run or `aiflow up` continues it automatically" in bench.aiflow("why", "RQ-1").stdout
    assert "the next auto-run continues it" in bench.aiflow("list").stdout
    assert (bench.aiflow.json("status")["waiting"], bench.aiflow.json("status")["continued"][0]["request_id"]) == (
        [],
        "RQ-1",
    )
    told = "".join(bench.aiflow(*words).stdout for words in (("why", "RQ-1"), ("list",), ("next",)))
    assert "waits for" not in told.replace("waits for RQ", "")
    assert "Waiting for you" not in told
    # The next one continues the same run, then all that waited for it.
    (bench.agent.folder / "go").touch()
    shape = bench.aiflow.json("auto")
    assert [(each["request_id"], each["outcome"]) for each in shape["results"]] == [
        (f"RQ-{number}", "accepted") for number in (1, 2, 3)
    ]
    assert len(bench.run_ids()) == 1
    assert [bench.status(f"RQ-{number}") for number in (1, 2, 3)] == ["done"] * 3
    assert [bench.git("show", f"main:RQ-{number}.txt") for number in (1, 2, 3)] == ["done"] * 3
    assert bench.locks() == []


@pytest.mark.spec("AUT-4", "RUN-14")
def test_a_night_that_is_cut_off_again_and_again_is_left_to_a_person(bench: Bench, backlog: Path) -> None:
    for _ in range(2):
        (bench.agent.folder / "at.RQ-1").unlink(missing_ok=True)
        with night(bench, AUTO) as terminal:
            pid = json.loads(backlog.read_text())["pid"]
            terminal.close()
            wait_until(lambda: not is_alive(pid))  # noqa: B023 - asked at once
    (bench.agent.folder / "go").touch()
    bench.aiflow.json("auto")
    assert (bench.errors()["reason_code"], bench.errors()["cause"]) == ("RETRY_LIMIT_EXCEEDED", "AUTO_CUT_OFF")
    assert bench.aiflow.json("resume", "RQ-1")["state"] == "DONE"


@pytest.mark.spec("AUT-3", "RUN-12")
def test_a_person_who_pressed_ctrl_c_twice_cancelled_the_run_whatever_became_of_the_window(
    bench: Bench, backlog: Path
) -> None:
    with night(bench, AUTO) as terminal:
        pid = json.loads(backlog.read_text())["pid"]
        os.kill(pid, signal.SIGINT)
        record = bench.root / ".aiflow/auto.json"
        wait_until(lambda: json.loads(record.read_text())["stop_request"] == "after_run")
        os.kill(pid, signal.SIGINT)
        wait_until(lambda: json.loads(record.read_text())["stop_request"] != "after_run")
        terminal.close()
        wait_until(lambda: not is_alive(pid))
    assert bench.errors()["reason_code"] == "CANCELLED"
    assert bench.aiflow.json("auto")["results"] == []
