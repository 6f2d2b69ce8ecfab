"""aiflow and its git killed together at any instant of an acceptance, in a checkout of many files (GIT-3)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.bench import Bench
from forms import rounds
from waiting import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.spec("GIT-3", "REQ-6")]

COUNT = 1500
OWN = "M own.txt\n?? untracked.txt"
ELSEWHERE = (":!requests", ":!aiflow.toml")


def name(number: int) -> str:
    return f"d{number % 30:02}/f{number:04}.txt"


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Iterator[Bench]:
    """Give a checkout of many files, and a finished run that changed, added and removed most of them."""
    bench = Bench(repository, tmp_path)
    for number in range(COUNT):
        (bench.root / name(number)).parent.mkdir(exist_ok=True)
        (bench.root / name(number)).write_text(f"old {number}\n" * 50)
    (bench.root / "own.txt").write_text("committed\n")
    bench.configure("[limits]\nstep_files = 100000\nstep_lines = 10000000")
    bench.commit()
    bench.agent.does(
        "implementer",
        "for n in range(1500):\n"
        "    path = pathlib.Path(f'd{n % 30:02}/f{n:04}.txt')\n"
        "    path.unlink() if n % 7 == 0 else write(str(path), f'new {n}\\n' * 50)\n"
        "    n % 5 or write(f'n{n % 9}/g{n}.txt', 'added\\n' * 50)\n"
        "done()",
    )
    assert bench.run()["state"] == "DONE"
    (bench.root / "own.txt").write_text("mine\n")
    (bench.root / "untracked.txt").write_text("mine, too\n")
    yield bench
    bench.close()


def kill_all(process: subprocess.Popen[str]) -> None:
    """Stop aiflow and what it started first, so that none sees the other die; then end all of them."""
    below = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        pids = [process.pid, *map(int, below.read_text().split())]
    except OSError:
        pids = [process.pid]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
    process.wait()


def test_whenever_the_power_goes_nothing_is_lost_and_the_next_accept_ends_it(
    bench: Bench, chance: random.Random
) -> None:
    names = bench.git("ls-files", "-z").split("\0")[:-1]
    before = {path: (bench.root / path).read_bytes() for path in names}
    written = sorted(name(number) for number in range(COUNT) if number % 7)  # in the order in which git writes
    for _ in range(rounds(3, 24)):
        last = bench.root / chance.choice(written[: COUNT // 2])
        process = bench.start("accept", "RQ-1", "--json")
        wait_until(lambda: process.poll() is not None or _is_new(last))  # noqa: B023
        kill_all(process)
        was_cut_off = (bench.root / ".git/aiflow-fast-forward.json").exists()
        has_moved = "Merge RQ-1" in bench.git("log", "-1", "--format=%s", "main")
        assert was_cut_off or has_moved
        bench.aiflow("doctor", "--full", code=6)
        if has_moved:
            break
        assert {path: (bench.root / path).read_bytes() for path in names} == before
        assert bench.git("status", "--porcelain", "--", *ELSEWHERE) == OWN
    assert bench.aiflow.json("accept", "RQ-1")["accepted_as"] == bench.git("rev-parse", "main")
    assert bench.git("status", "--porcelain", "--", *ELSEWHERE) == OWN
    assert bench.git("rev-list", "--count", "--first-parent", "main") == "3"
    assert (bench.status(), list(bench.root.glob(".git/**/*.lock"))) == ("done", [])


def _is_new(path: Path) -> bool:
    try:
        return path.read_bytes()[:1] == b"n"
    except FileNotFoundError:
        return True
