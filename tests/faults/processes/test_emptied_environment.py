"""An agent that empties its environment is found though runner and guard are killed; a person beside it is not touched.

Here without a cgroup; with one: `test_call_cgroups.py`.
"""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiflow.adapters.processes import table
from aiflow.adapters.processes.launch import GuardedProcesses
from aiflow.adapters.processes.leftovers import end_leftovers
from aiflow.domain.programs import GUARD_MARK, RUN_MARK, End, Program
from waiting import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.spec("AGT-5", "LCK-4")]

ENVIRON = {"PATH": "/usr/bin:/bin", "TERM": "dumb"}
# Three that nothing marks: one in the worktree, its child in a session of its own, and a sibling, both elsewhere.
EVADER = """
note() { echo $1 >> "$0/evaders"; }
(cd /; exec sleep 1000) & note $!
(cd /; exec setsid sleep 1000) & note $!
note $$
: > "$0/ready"
exec sleep 1000
"""
# Nobody who carries the mark is their parent. There are two who carry it once this is ready.
AGENT = """
sleep 1000 &
(env -i PATH=/usr/bin:/bin setsid sh -c "$1" "$2" &)
until [ -e "$2/ready" ]; do sleep 0.01; done
echo ready
wait
"""

RUNNER = """
import os, sys
from aiflow.adapters.processes.launch import GuardedProcesses
from aiflow.domain.programs import Program
folder, cwd, run_id, *argv = sys.argv[1:]
program = Program(tuple(argv), cwd, {"PATH": "/usr/bin:/bin", "TERM": "dumb"}, run_id, 60, 60)
GuardedProcesses(folder, cgroup_for=lambda _: None).run(program, lambda chunk: os.write(1, chunk), lambda: False)
"""


class Stage:
    """A run's worktree, with an agent in it that leaves no trace in its environment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = str(root / ".aiflow/guards")
        self.run_id = f"RUN-{os.urandom(6).hex()}"
        self.worktree = root / "worktrees" / self.run_id
        self.worktree.mkdir(parents=True)
        self.agent = ("sh", "-c", AGENT, "sh", EVADER, str(root))

    def evaders(self) -> list[int]:
        return [int(line) for line in (self.root / "evaders").read_text().split()]

    def start_runner(self) -> subprocess.Popen[bytes]:
        runner = subprocess.Popen(
            [sys.executable, "-c", RUNNER, self.folder, str(self.worktree), self.run_id, *self.agent],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"ready\n"
        # The one that is to leave its session has done so.
        wait_until(lambda: len({os.getsid(pid) for pid in self.evaders()}) == 2)
        return runner

    def kill_together(self, runner: subprocess.Popen[bytes]) -> None:
        os.kill(runner.pid, signal.SIGSTOP)  # or it would sweep by itself
        [guard] = table.marked(GUARD_MARK, self.run_id)
        os.kill(guard, signal.SIGKILL)
        os.kill(runner.pid, signal.SIGKILL)
        assert runner.stdout is not None
        runner.stdout.close()
        runner.wait()


def is_alive(pid: int) -> bool:
    known = table.table().look(pid)
    return known is not None and not known.is_zombie


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Give a stage, and end what is left on it."""
    stage = Stage(tmp_path)
    yield stage
    left = [pid for pid in stage.evaders() if is_alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def sleeper(cwd: Path, environ: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["/bin/sleep", "1000"], cwd=cwd, env=environ, start_new_session=True)


def at_terminal(cwd: Path) -> tuple[int, int]:
    """Start something of a person's at a terminal, with nothing in its environment; return it and the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execve("/bin/sleep", ["sleep", "1000"], {})
    wait_until(lambda: b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes())
    return pid, terminal


def test_it_is_found_by_where_it_works_and_a_person_there_is_left_alone(stage: Stage) -> None:
    older = sleeper(stage.worktree, {})
    # Starts are told apart by hundredths of a second.
    wait_until(lambda: float(Path("/proc/uptime").read_text().split()[0]) > (table.started_at(older.pid) or 0) + 0.05)
    runner = stage.start_runner()
    window = sleeper(stage.worktree, {"DISPLAY": ":0"})
    background = sleeper(stage.worktree, {"TERM": "xterm-256color"})
    elsewhere = sleeper(stage.root, {})
    git = sleeper(stage.worktree, {"AIFLOW_GIT_OF": "RUN-other"})
    shell, terminal = at_terminal(stage.worktree)
    persons = [older.pid, window.pid, background.pid, elsewhere.pid, git.pid, shell]
    try:
        stage.kill_together(runner)
        assert [is_alive(pid) for pid in stage.evaders()] == [True] * 3
        # Those three, and what the mark finds: the agent and its sleep.
        assert end_leftovers(stage.folder, stage.run_id, None) == 5
        assert [is_alive(pid) for pid in stage.evaders()] == [False] * 3
        assert [is_alive(pid) for pid in persons] == [True] * 6
        assert os.listdir(stage.folder) == []
    finally:
        for pid in persons:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(shell, 0)
        os.close(terminal)
        for process in (older, window, background, elsewhere, git):
            process.wait()


def test_it_is_found_by_a_runner_that_lost_the_guard_alone(stage: Stage) -> None:
    said = b""

    def hear(chunk: bytes) -> None:
        nonlocal said
        was_ready, said = b"ready\n" in said, said + chunk
        if b"ready\n" in said and not was_ready:
            wait_until(lambda: len({os.getsid(pid) for pid in stage.evaders()}) == 2)
            [guard] = table.marked(GUARD_MARK, stage.run_id)
            os.kill(guard, signal.SIGKILL)

    program = Program(stage.agent, str(stage.worktree), ENVIRON, stage.run_id, 60, 60)
    ended = GuardedProcesses(stage.folder, cgroup_for=lambda _: None).run(program, hear, lambda: False)
    assert ended.end is End.GUARD_LOST
    assert ended.leftovers == 5
    assert [is_alive(pid) for pid in stage.evaders()] == [False] * 3
    assert table.marked(RUN_MARK, stage.run_id) == []


def test_what_was_noted_in_another_boot_or_container_ends_nobody(stage: Stage) -> None:
    runner = stage.start_runner()
    stage.kill_together(runner)
    [name] = os.listdir(stage.folder)
    note = Path(stage.folder, name)
    whole = note.read_text()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    first, _, rest = whole.partition("\n")
    for other in (whole.replace(boot, "another"), f"{first.rpartition(' ')[0]} 1\n{rest}", "", "1 x\n{", "1 1.0\n[]"):
        assert other != whole
        note.write_text(other)
        end_leftovers(stage.folder, stage.run_id, None)
        assert [is_alive(pid) for pid in stage.evaders()] == [True] * 3
    note.write_text(whole)
    assert end_leftovers(stage.folder, stage.run_id, None) == 3
