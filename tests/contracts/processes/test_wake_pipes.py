"""Waking the runners of this machine (PRF-4): heard at once, by those of the namespace only, never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.adapters.processes.wake_pipes import WakePipes, count_listeners

pytestmark = pytest.mark.spec("PRF-4")


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[WakePipes]:
    """Give a runner that listens."""
    made = WakePipes(str(tmp_path), "app", "r1")
    yield made
    made.close()


def test_a_runner_that_waits_hears_of_a_task_at_once(tmp_path: Path, runner: WakePipes) -> None:
    def tell() -> None:
        time.sleep(0.1)
        WakePipes(str(tmp_path)).poke("app", "TASK-1")

    thread = threading.Thread(target=tell)
    thread.start()
    assert runner.wait(3600) == ("TASK-1",)  # or it waits for longer than a test may
    thread.join()


def test_what_was_told_while_it_worked_is_heard_at_the_next_wait_once(tmp_path: Path, runner: WakePipes) -> None:
    others = WakePipes(str(tmp_path))
    assert [others.poke("app", name) for name in ("TASK-1", "TASK-2", "TASK-1")] == [1, 1, 1]
    assert runner.wait(0) == ("TASK-1", "TASK-2")
    assert runner.wait(0) == ()


def test_every_runner_of_the_namespace_hears_and_no_other(tmp_path: Path, runner: WakePipes) -> None:
    same, other = WakePipes(str(tmp_path), "app", "r2"), WakePipes(str(tmp_path), "web", "r3")
    assert runner.poke("app", "TASK-1") == 2
    assert (runner.wait(0), same.wait(0), other.wait(0)) == (("TASK-1",), ("TASK-1",), ())
    for each in (same, other):
        each.close()


def test_whoever_closed_is_told_nothing_more(tmp_path: Path, runner: WakePipes) -> None:
    runner.close()
    runner.close()
    assert WakePipes(str(tmp_path)).poke("app", "TASK-1") == 0
    assert os.listdir(tmp_path / "app") == []
    began = time.monotonic()
    assert runner.wait(0.05) == ()
    assert time.monotonic() - began >= 0.05


def test_the_pipe_of_a_killed_runner_is_taken_away(tmp_path: Path) -> None:
    script = "import sys, time\nfrom aiflow.adapters.processes.wake_pipes import WakePipes\n"
    script += "listening = WakePipes(sys.argv[1], 'app', 'r1')\nprint(flush=True)\ntime.sleep(60)\n"
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    assert WakePipes(str(tmp_path)).poke("app", "TASK-1") == 1
    process.kill()
    process.communicate()
    assert WakePipes(str(tmp_path)).poke("app", "TASK-1") == 0
    assert os.listdir(tmp_path / "app") == []


def test_a_runner_that_hears_nothing_is_in_nobodys_way(tmp_path: Path, runner: WakePipes) -> None:
    others = WakePipes(str(tmp_path))
    assert {others.poke("app", f"TASK-{number:0100}") for number in range(2000)} == {1}
    assert len(runner.wait(0)) > 100


def test_where_no_pipe_can_be_made_the_poll_has_to_do(tmp_path: Path) -> None:
    (tmp_path / "app").write_text("in the way")
    deaf = WakePipes(str(tmp_path), "app", "r1")
    assert deaf.wait(0.01) == ()
    assert deaf.poke("app", "TASK-1") == 0
    deaf.close()


def test_something_else_in_the_folder_is_left_alone(tmp_path: Path, runner: WakePipes) -> None:
    (tmp_path / "app/link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text("")
    runner.poke("app", "TASK-1")
    assert (tmp_path / "elsewhere").read_text() == ""
    assert (tmp_path / "app/link").is_symlink()


def test_those_that_listen_are_counted_in_every_namespace_and_hear_nothing_of_it(
    tmp_path: Path, runner: WakePipes
) -> None:
    other = WakePipes(str(tmp_path), "other", "r2")
    os.mkfifo(tmp_path / "app/killed")
    assert (count_listeners(str(tmp_path)), runner.wait(0)) == (2, ())
    other.close()
    assert (count_listeners(str(tmp_path)), count_listeners(str(tmp_path / "none"))) == (1, 0)


def test_a_pipe_that_was_taken_away_is_made_again(tmp_path: Path, runner: WakePipes) -> None:
    """Who pokes before the runner has opened its pipe takes it away; so does whoever cleans the folder up."""
    for _ in range(2):
        (tmp_path / "app/r1").unlink()
        assert runner.poke("app", "TASK-1") == 0
        assert runner.wait(0) == ()
        assert runner.poke("app", "TASK-2") == 1
        assert runner.wait(0) == ("TASK-2",)
    (tmp_path / "app/r1").unlink()
    (tmp_path / "app").rmdir()
    assert runner.wait(0) == ()
    assert runner.poke("app", "TASK-3") == 1
    open_files = os.listdir("/proc/self/fd")
    assert runner.wait(0) == ("TASK-3",)
    assert len(os.listdir("/proc/self/fd")) == len(open_files)


def test_a_pipe_that_another_runner_of_its_name_has_made_is_not_ours(tmp_path: Path, runner: WakePipes) -> None:
    (tmp_path / "app/r1").unlink()
    os.mkfifo(tmp_path / "app/r1")
    assert runner.wait(0) == ()
    assert runner.poke("app", "TASK-1") == 1
    assert runner.wait(0) == ("TASK-1",)


def test_pokers_and_a_runner_that_begins_to_listen_come_together(tmp_path: Path) -> None:
    is_over = threading.Event()

    def poke() -> None:
        while not is_over.is_set():
            WakePipes(str(tmp_path)).poke("app", "TASK-1")

    poking = threading.Thread(target=poke)
    poking.start()
    try:
        for number in range(200):
            runner = WakePipes(str(tmp_path), "app", f"r{number}")
            assert any(runner.wait(0.25) for _ in range(20))
            runner.close()
    finally:
        is_over.set()
        poking.join()
