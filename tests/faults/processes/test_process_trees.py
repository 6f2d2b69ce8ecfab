"""A wild tree of processes, and whoever watches it killed: nothing of it is left (AGT-5, LCK-4, RUN-12)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.adapters.processes import table
from aiflow.adapters.processes.launch import GuardedProcesses
from aiflow.adapters.processes.leftovers import end_leftovers, sweep
from aiflow.domain.programs import GIT_MARK, GUARD_MARK, RUN_MARK, End, Ended, Program
from waiting import wait_until

pytestmark = [pytest.mark.faults]

ENVIRON = {"PATH": "/usr/bin:/bin"}

# Fifty children of five kinds, each of which writes down its number once it is what it shall be; then all is ready.
TREE = """
import os, signal, sys, time
fd = os.open("pids", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for n in range(50):
    if os.fork(): continue
    if n % 5 in (1, 3): os.setsid()
    if n % 5 in (2, 3): signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if n % 5 == 3 and os.fork(): os._exit(0)
    os.write(fd, b"%d\\n" % os.getpid())
    if n % 5 == 4: os.kill(os.getpid(), signal.SIGSTOP)
    while True: time.sleep(1000)
while os.fstat(fd).st_size == 0 or len(open("pids").read().split()) < 50: time.sleep(0.01)
print("ready", flush=True)
if sys.argv[1] == "stay": time.sleep(1000)
"""

RUNNER = """
import os, sys
from aiflow.adapters.processes.launch import GuardedProcesses
from aiflow.domain.programs import Program
folder, cwd, run_id, *argv = sys.argv[1:]
program = Program(tuple(argv), cwd, {"PATH": "/usr/bin:/bin"}, run_id, 60, 60)
GuardedProcesses(folder).run(program, lambda chunk: None if os.write(1, chunk) else None, lambda: False)
"""

# The same with every call that opens, makes, writes or starts something counted, and itself killed at the chosen one.
DEADLY = """
import fcntl, os, signal, subprocess, sys
turn, count = int(sys.argv.pop(1)), 0
def deadly(real):
    def call(*args, **kwargs):
        global count
        result = real(*args, **kwargs)
        count += 1
        if count == turn: os.kill(os.getpid(), signal.SIGKILL)
        return result
    return call
import aiflow.adapters.processes.launch
for module, *names in (os, "open", "pipe", "mkdir", "write", "close", "read", "replace"), (fcntl, "flock"), (subprocess, "_fork_exec"):
    for name in names: setattr(module, name, deadly(getattr(module, name)))
""" + RUNNER.strip()


class Stage:
    """A place with a run of its own, and a wild tree to plant there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = str(root / ".aiflow/guards")
        self.run_id = f"RUN-{os.urandom(6).hex()}"
        self.born: dict[int, float] = {}

    def tree(self, what_then: str = "stay") -> tuple[str, ...]:
        return (sys.executable, "-I", "-S", "-c", TREE, what_then)

    def program(self, *argv: str) -> Program:
        return Program(argv, str(self.root), ENVIRON, self.run_id, 60, 60)

    def note(self) -> None:
        """Remember who lives now."""
        pids = [int(line) for line in (self.root / "pids").read_text().split()]
        self.born = {pid: born for pid in pids if (born := table.started_at(pid)) is not None}

    def living(self) -> list[int]:
        """Return who of them still lives."""
        looked = ((pid, table.table().look(pid)) for pid in self.born)
        return [pid for pid, known in looked if known and not known.is_zombie and known.started_at == self.born[pid]]

    def start_runner(self, *argv: str) -> subprocess.Popen[bytes]:
        """Start a runner as a process of its own, and return when its program is ready."""
        runner = subprocess.Popen(
            [sys.executable, "-c", RUNNER, self.folder, str(self.root), self.run_id, *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"ready\n"
        return runner

    def start_tree(self) -> subprocess.Popen[bytes]:
        runner = self.start_runner(*self.tree())
        self.note()
        assert len(self.living()) == 50
        return runner

    def guard_pid(self) -> int:
        [pid] = table.marked(GUARD_MARK, self.run_id)
        return pid

    def is_tidy(self) -> bool:
        return not self.living() and not os.listdir(self.folder) and not table.marked(GUARD_MARK, self.run_id)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Give a stage, and check that nothing is left on it."""
    stage = Stage(tmp_path)
    yield stage
    left = {mark: table.marked(mark, stage.run_id) for mark in (RUN_MARK, GUARD_MARK, GIT_MARK)}
    for mark in left:
        sweep(mark, stage.run_id, None)
    assert left == {RUN_MARK: [], GUARD_MARK: [], GIT_MARK: []}
    assert not os.path.exists(stage.folder) or os.listdir(stage.folder) == []


def end(runner: subprocess.Popen[bytes], number: int = signal.SIGKILL) -> None:
    os.kill(runner.pid, number)
    assert runner.stdout is not None
    runner.stdout.close()
    runner.wait()


@pytest.mark.spec("AGT-5", "RUN-12")
def test_a_cancelled_tree_is_gone_when_the_call_returns(stage: Stage) -> None:
    program = stage.program(*stage.tree())
    ended = GuardedProcesses(stage.folder).run(program, lambda _: stage.note(), lambda: bool(stage.born))
    assert (ended.end, len(stage.born), stage.living()) == (End.STOPPED, 50, [])


@pytest.mark.spec("AGT-5")
def test_a_program_that_ends_takes_its_tree_along(stage: Stage) -> None:
    program = stage.program(*stage.tree("leave"))
    ended = GuardedProcesses(stage.folder).run(program, lambda _: stage.note(), lambda: False)
    assert (ended, len(stage.born), stage.living()) == (Ended(End.EXITED, 0, leftovers=50), 50, [])


@pytest.mark.spec("AGT-5")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_runner_that_is_killed_takes_the_tree_along(stage: Stage, number: int) -> None:
    runner = stage.start_tree()
    end(runner, number)
    wait_until(stage.is_tidy)
    assert end_leftovers(stage.folder, stage.run_id, None) == 0


@pytest.mark.spec("AGT-5", "LCK-4")
def test_a_runner_killed_at_every_step_leaves_nothing(stage: Stage) -> None:
    agent = "setsid sleep 60 & echo x >> started; echo ready"
    codes = []
    for turn in range(1, 200):
        arguments = [stage.folder, str(stage.root), stage.run_id, "sh", "-c", agent]
        done = subprocess.run(
            [sys.executable, "-c", DEADLY, str(turn), *arguments], stdout=subprocess.DEVNULL, check=False
        )
        end_leftovers(stage.folder, stage.run_id, None)
        for _ in range(3):  # nor does anything start later
            assert table.marked(RUN_MARK, stage.run_id) == [], turn
            assert table.marked(GUARD_MARK, stage.run_id) == [], turn
            time.sleep(0.02)
        assert not os.path.exists(stage.folder) or os.listdir(stage.folder) == [], turn
        codes.append(done.returncode)
        if done.returncode != -signal.SIGKILL:
            break
    started = len((stage.root / "started").read_text().split())
    print(f"killed at each of {len(codes) - 1} steps; the program had started in {started} of the runs")
    assert codes == [-signal.SIGKILL] * (len(codes) - 1) + [0]
    assert 1 < started < len(codes)


@pytest.mark.spec("AGT-5", "LCK-4")
def test_runner_and_guard_killed_the_next_start_sweeps(stage: Stage) -> None:
    runner = stage.start_tree()
    since = table.started_at(runner.pid)
    # Stopped first, or it would sweep by itself.
    os.kill(runner.pid, signal.SIGSTOP)
    os.kill(stage.guard_pid(), signal.SIGKILL)
    end(runner)
    assert len(stage.living()) == 50
    assert end_leftovers(stage.folder, stage.run_id, since) == 51
    assert (stage.living(), os.listdir(stage.folder)) == ([], [])


@pytest.mark.spec("AGT-5", "LCK-4")
def test_a_stopped_guard_is_ended_before_a_takeover(stage: Stage) -> None:
    runner = stage.start_tree()
    pid = stage.guard_pid()
    os.kill(pid, signal.SIGSTOP)
    end(runner)
    began = time.monotonic()
    assert end_leftovers(stage.folder, stage.run_id, None) == 51
    assert stage.is_tidy()
    assert time.monotonic() - began > 7.5


@pytest.mark.spec("AGT-5", "LCK-4")
def test_a_guard_at_work_is_waited_for_before_a_takeover(stage: Stage) -> None:
    runner = stage.start_tree()
    end(runner)
    # TERM is ignored by some: the guard takes its grace, and the one who takes over waits for it.
    assert end_leftovers(stage.folder, stage.run_id, None) == 0
    assert stage.is_tidy()


@pytest.mark.spec("AGT-5")
def test_a_stopped_guard_does_not_hold_up_its_runner(stage: Stage) -> None:
    def should_stop() -> bool:
        if stage.born:
            os.kill(stage.guard_pid(), signal.SIGSTOP)
        return bool(stage.born)

    processes = GuardedProcesses(stage.folder, grace_seconds=0)
    ended = processes.run(stage.program(*stage.tree()), lambda _: stage.note(), should_stop)
    assert (ended.end, ended.leftovers, stage.living()) == (End.STOPPED, 51, [])


@pytest.mark.spec("LCK-4")
def test_git_that_never_ends_is_ended(stage: Stage) -> None:
    git = subprocess.Popen(["sleep", "600"], env={GIT_MARK: stage.run_id})
    began = time.monotonic()
    assert end_leftovers(stage.folder, stage.run_id, None) == 1
    assert time.monotonic() - began > 9.5
    assert git.wait() == -signal.SIGKILL


@pytest.mark.spec("AGT-5")
def test_processes_that_multiply_without_end_are_ended(stage: Stage) -> None:
    # Each lives for a moment and leaves another one, in a session of its own, that does the same; a hundred at a time.
    script = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for _ in range(100):\n"
        "    if os.fork() == 0:\n"
        "        while True:\n"
        "            time.sleep(0.02)\n"
        "            if os.fork(): os._exit(0)\n"
        "            os.setsid()\n"
        "print('ready', flush=True)\n"
        "time.sleep(1000)\n"
    )
    said: list[bytes] = []
    program = stage.program(sys.executable, "-I", "-S", "-c", script)
    assert GuardedProcesses(stage.folder).run(program, said.append, lambda: bool(said)).end is End.STOPPED
