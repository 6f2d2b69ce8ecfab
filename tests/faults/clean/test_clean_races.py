"""`aiflow clean` against everybody at once (GIT-5): runs start, go on and are accepted while it works, or it is killed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clean_yard import Yard
from e2e.bench import Bench
from forms import rounds

pytestmark = [pytest.mark.faults, pytest.mark.spec("GIT-5")]

ROUNDS = rounds(3, 5)
# Cleans again and again until it is told to stop; whatever is not well goes into a file.
CLEANER = """
import os, subprocess, sys
world = sys.argv[1]
while not os.path.exists(world + "/stop"):
    done = subprocess.run([sys.executable, "-m", "aiflow", "clean", "--now", "--unmerged", "--json"],
                          capture_output=True, text=True)
    if done.returncode or '"failed": []' not in done.stdout:
        with open(world + "/trouble", "a") as file:
            file.write(done.stdout + done.stderr)
"""


@pytest.fixture
def bench(repository: Path, tmp_path: Path) -> Iterator[Bench]:
    """Give a repository that runs can be started in."""
    made = Bench(repository, tmp_path)
    yield made
    made.close()


@contextmanager
def cleaning(bench: Bench, folder: Path) -> Iterator[None]:
    """Let two cleaners work all the while."""
    command = [sys.executable, "-c", CLEANER, str(folder)]
    cleaners = [subprocess.Popen(command, cwd=bench.root, env=bench.aiflow.environ) for _ in range(2)]
    try:
        yield
    finally:
        (folder / "stop").touch()
        for cleaner in cleaners:
            cleaner.wait(timeout=60)
        (folder / "stop").unlink()
    assert not (folder / "trouble").exists(), (folder / "trouble").read_text()


def test_runs_start_stop_go_on_and_are_accepted_while_two_clean(bench: Bench, tmp_path: Path) -> None:
    bench.agent.plans("S01", "S02")
    bench.configure('[tests]\nunit = "test ! -e half.txt || test -e green.txt"')
    bench.agent.does("implementer", "write(f'{step}.txt', call['request']['id']); done()", "S01")
    fails = "write('half.txt', call['request']['id']); done()"
    mends = (
        "assert (HERE / 'anew').exists() or pathlib.Path('half.txt').exists(); "
        "write('half.txt', ''); write('green.txt', 'g'); done()"
    )
    with cleaning(bench, tmp_path):
        for number in range(ROUNDS):
            name = f"RQ-{number + 1}"
            bench.add_request(name)
            (bench.agent.folder / "anew").unlink(missing_ok=True)
            bench.agent.does("implementer", fails, "S02")
            stopped = bench.run(name, code=7)
            time.sleep(0.1 * number)
            bench.agent.does("implementer", mends, "S02")
            if number % 3 == 2:
                (bench.agent.folder / "anew").touch()
                done = bench.aiflow.json("retry-step", name, "S01", code=0)
            else:
                done = bench.aiflow.json("resume", name)
            assert (done["state"], done["run_id"]) == ("DONE", stopped["run_id"])
            bench.aiflow("accept", name)
            assert bench.git("show", "main:S01.txt") == name
            assert bench.status(name) == "done"
            bench.git("rm", "-q", "--", "S01.txt", "half.txt", "green.txt")
            bench.git("commit", "-qm", "back")
    bench.aiflow("clean", "--now")
    assert bench.git("for-each-ref", "refs/heads/aiflow", "refs/aiflow") == ""
    assert list(bench.state.glob("aiflow/*/worktrees/*")) == []
    bench.git("fsck", "--connectivity-only")


def test_killed_at_any_time_nothing_is_lost_and_the_rest_goes(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chance: random.Random
) -> None:
    yard = Yard(repository, tmp_path, monkeypatch)
    command = [sys.executable, "-m", "aiflow", "clean"]
    for turn in range(rounds(4, 12)):
        merged = [yard.run(f"RQ-{turn}-{number}") for number in range(2)]
        waits, not_merged = yard.run(f"RQ-{turn}-w", status="blocked"), yard.run(f"RQ-{turn}-n", merged=False)
        mine = Path(yard.run(f"RQ-{turn}-m").place.path, "mine.txt")
        mine.write_text("mine\n")
        process = subprocess.Popen(command, cwd=repository, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.1, 1.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        cleaned = yard.clean()
        assert cleaned.failed == []
        left = set(yard.git("branch", "--list", "--format=%(refname:short)", "aiflow/*").splitlines())
        assert not left & {run.place.branch for run in merged}
        assert {waits.place.branch, not_merged.place.branch} <= left
        assert mine.read_text() == "mine\n"
        trees = {path.name for path in yard.trees.iterdir()}
        assert not trees & {run.run_id for run in (*merged, waits, not_merged)}
        assert not any(name.endswith(".gone") for name in trees)
    yard.git("fsck", "--connectivity-only")
