"""The demo with its page (CLI `demo --serve`): auto-run here and on the page, up until Ctrl-C; `make demo` chooses."""

from __future__ import annotations

import contextlib
import http.client
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from waiting import PATIENCE_SECONDS, wait_until

ROOT = Path(__file__).parents[3]


class Shown:
    """A demo that is being served, and what it has written so far."""

    def __init__(self, folder: Path, *options: str, is_terminal: bool = False, **environ: str) -> None:
        home = folder / "home"
        home.mkdir()
        own = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(folder), "LANG": "C.UTF-8"}
        own |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        self.root = folder / "demo"
        ours, theirs = pty.openpty() if is_terminal else (None, subprocess.PIPE)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "aiflow", "-c", "server.port=0", "demo", "--serve", *options, str(self.root)],
            cwd=folder,
            env={**own, "GIT_CONFIG_NOSYSTEM": "1", **environ},
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            start_new_session=True,
        )
        if ours is not None:
            os.close(theirs)
        self._lines = self.process.stdout or open(ours or 0, encoding="utf-8")  # noqa: SIM115  it is read to its end
        self.text = ""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        with self._lines as lines, contextlib.suppress(OSError):  # which is how a terminal says that nobody writes
            for line in lines:
                self.text += line

    def __enter__(self) -> Shown:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.reader.join(PATIENCE_SECONDS)

    def until(self, words: str) -> str:
        wait_until(lambda: words in self.text or self.process.poll() is not None)
        assert words in self.text, self.text
        return self.text

    def signalled(self, number: int, *, is_from_terminal: bool) -> str:
        """Send a signal, as the terminal does to everybody in front or only to the process; return all it wrote."""
        if is_from_terminal:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)
        assert self.process.wait(PATIENCE_SECONDS) == 0, self.text
        self.reader.join(PATIENCE_SECONDS)
        return self.text

    def ask(self, path: str) -> tuple[int, str]:
        found = re.search(r"http://(127\.0\.0\.1:\d+)", self.text)
        assert found, self.text
        connection = http.client.HTTPConnection(found[1], timeout=PATIENCE_SECONDS)
        try:
            connection.request("GET", path)
            told = connection.getresponse()
            return told.status, told.read().decode()
        finally:
            connection.close()


@pytest.fixture
def shown(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shown]:
    with Shown(tmp_path, *getattr(request, "param", ())) as made:
        yield made


@pytest.mark.spec("CLI", "WEB-1")
def test_the_demo_is_worked_through_here_and_on_the_page_and_stays_until_ctrl_c(shown: Shown) -> None:
    text = shown.until("The page stays up at http://127.0.0.1:")
    assert text.index("/sign-in#code=") < text.index("Auto-run started.") < text.index("Done (4)")
    assert "Question: Which word shall mark what is overdue in the list?" in text
    assert "rm -rf" in text
    assert shown.ask("/api/health")[0] == 200
    assert (shown.root / ".aiflow/server/server.json").exists()
    assert "Stopped." in shown.signalled(signal.SIGINT, is_from_terminal=True)
    assert not (shown.root / ".aiflow/server/server.json").exists()


@pytest.mark.spec("CLI", "AUT-2")
@pytest.mark.parametrize(("number", "is_from_terminal"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_demo_that_is_ended_in_the_middle_leaves_nothing_at_work(
    tmp_path: Path, number: int, is_from_terminal: bool
) -> None:
    with Shown(tmp_path, AIFLOW_DEMO_SECONDS="2") as shown:
        shown.until("▶ TODO-6")
        text = shown.signalled(number, is_from_terminal=is_from_terminal)
        assert "Done (4)" not in text
        assert "stays up" not in text
        assert "rm -rf" in text
        with pytest.raises(ProcessLookupError):
            os.killpg(shown.process.pid, 0)


@pytest.mark.spec("CLI")
@pytest.mark.parametrize("shown", [("--no-run",)], indirect=True)
def test_a_demo_that_runs_nothing_leaves_the_start_to_the_page(shown: Shown) -> None:
    text = shown.until("The page stays up at http://127.0.0.1:")
    assert "Nothing runs yet." in text
    assert "Auto-run started." not in text
    shown.signalled(signal.SIGTERM, is_from_terminal=False)


@pytest.mark.spec("CLI")
def test_a_demo_that_is_served_at_a_terminal_opens_the_page_signed_in(tmp_path: Path) -> None:
    opened, stub = tmp_path / "opened", tmp_path / "browser"
    stub.write_text(f'#!/bin/sh\necho "$1" >"{opened}.new" && mv "{opened}.new" "{opened}"\n')
    stub.chmod(0o755)
    with Shown(tmp_path, "--no-run", is_terminal=True, BROWSER=str(stub), DISPLAY=":9") as shown:
        shown.until("The page stays up at http://127.0.0.1:")
        wait_until(opened.exists)
        leads = Path(opened.read_text().strip().removeprefix("file://")).read_text()
        assert re.search(r"http://127\.0\.0\.1:\d+/sign-in#code=\w", leads)
        shown.signalled(signal.SIGTERM, is_from_terminal=False)


@pytest.mark.spec("CLI")
@pytest.mark.parametrize(
    ("is_terminal", "environ", "command"),
    [(True, {}, "demo --serve"), (True, {"CI": "1"}, "demo"), (False, {}, "demo")],
)
def test_make_demo_serves_the_page_at_a_terminal_only(
    tmp_path: Path, is_terminal: bool, environ: dict[str, str], command: str
) -> None:
    program = tmp_path / "aiflow"
    program.write_text('#!/bin/sh\necho "called: $*"\n')
    program.chmod(0o755)
    make = ["make", "-s", "-C", str(ROOT), "-o", ".venv/.ready", "-o", ".venv/.page", "demo", f"BIN={tmp_path}"]
    own = {"PATH": os.environ["PATH"], **environ}
    ours, theirs = pty.openpty() if is_terminal else (None, subprocess.DEVNULL)
    try:
        done = subprocess.run(
            make, env=own, stdin=theirs, stdout=theirs if is_terminal else subprocess.PIPE, check=True, timeout=60
        )
        said = os.read(ours, 10_000) if ours is not None else done.stdout
    finally:
        for fd in (ours, theirs) if ours is not None else ():
            os.close(fd)
    assert said.decode().replace("\r", "").strip() == f"called: {command}"
