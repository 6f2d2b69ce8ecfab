"""Whatever a call started is found in its cgroup, wherever it works, though runner and guard are killed together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import without_landlock
from aiflow.adapters.processes import cgroups, table
from aiflow.adapters.processes.launch import GuardedProcesses
from aiflow.adapters.processes.leftovers import end_leftovers
from aiflow.domain.programs import GUARD_MARK, End, Program
from waiting import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.spec("AGT-5", "LCK-4")]

ENVIRON = {"PATH": "/usr/bin:/bin", "TERM": "dumb"}
# Neither mark nor folder nor session nor parent leads to it.
AGENT = """
cd /
sleep 1000 &
(env -i PATH=/usr/bin:/bin setsid sh -c 'echo $$ > "$0"; exec sleep 1000' "$1/evader" &)
until [ -s "$1/evader" ]; do sleep 0.01; done
echo ready
wait
"""
RUNNER = """
import os, sys
from aiflow.adapters.processes.launch import GuardedProcesses
from aiflow.domain.programs import Program
folder, cwd, run_id, *argv = sys.argv[1:]
program = Program(tuple(argv), cwd, {"PATH": "/usr/bin:/bin", "TERM": "dumb"}, run_id, 60, 60)
GuardedProcesses(folder).run(program, lambda chunk: os.write(1, chunk), lambda: False)
"""
# What the program's first line sees of itself, and then of its guard.
WHERE = ("sh", "-c", "cat /proc/self/cgroup; echo; cat /proc/$PPID/cgroup")
INSIDE = (
    "import sys; from aiflow.adapters.processes.cgroups import end_members; input(); print(end_members(sys.argv[1]))"
)

Start = Callable[..., "subprocess.Popen[str]"]


class Call:
    """A run's worktree, and an agent called in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = str(root / ".aiflow/guards")
        self.run_id = f"RUN-{os.urandom(6).hex()}"
        self.worktree = root / "worktrees" / self.run_id
        self.worktree.mkdir(parents=True)
        self.argv = ("sh", "-c", AGENT, "sh", str(root))
        self.runner: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.runner = subprocess.Popen(
            [sys.executable, "-c", RUNNER, self.folder, str(self.worktree), self.run_id, *self.argv],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.runner.stdout is not None
        assert self.runner.stdout.readline() == b"ready\n"

    def evader(self) -> int:
        return int((self.root / "evader").read_text())

    def note(self) -> Path:
        [name] = os.listdir(self.folder)
        return Path(self.folder, name)

    def cgroup(self) -> Path:
        return Path(json.loads(self.note().read_text().splitlines()[1])["cgroup"])

    def kill(self, *, with_guard: bool) -> None:
        assert self.runner is not None
        os.kill(self.runner.pid, signal.SIGSTOP)  # or it would sweep by itself
        if with_guard:
            os.kill(self.guard(), signal.SIGKILL)
        os.kill(self.runner.pid, signal.SIGKILL)
        self.runner.communicate()

    def guard(self) -> int:
        [guard] = table.marked(GUARD_MARK, self.run_id)
        return guard


def is_alive(pid: int) -> bool:
    known = table.table().look(pid)
    return known is not None and not known.is_zombie


def is_empty(cgroup: Path) -> bool:
    try:
        return "populated 0" in (cgroup / "cgroup.events").read_text()
    except OSError:  # removed already, by whoever starts beside us
        return True


@pytest.fixture
def start() -> Iterator[Start]:
    """Start programs that are ended with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*argv: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(argv, stdin=pipe, stdout=pipe, cwd="/", start_new_session=True, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def made(start: Start) -> Iterator[Path]:
    """Give a cgroup of a call, with a sleeper in it."""
    path = cgroups.cgroup_for(f"RUN-{os.urandom(6).hex()}.0")
    try:
        os.mkdir(path or "")
        Path(path or "", "cgroup.procs").write_text(str(start("sleep", "1000").pid))
    except OSError:
        cgroups.remove(path)
        pytest.skip("no cgroup v2 here in which we may make a child and move a process there")
    assert path is not None
    yield Path(path)
    cgroups.end_members(path)
    cgroups.remove(path)
    assert not os.path.exists(path)


@pytest.fixture
def call(tmp_path: Path, made: Path) -> Iterator[Call]:
    """Give a call, and end what is left of it."""
    assert made.exists()
    call = Call(tmp_path)
    yield call
    if is_alive(call.evader()):
        os.kill(call.evader(), signal.SIGKILL)
        pytest.fail("the evader was left running")


def test_it_is_found_though_nothing_but_its_cgroup_tells_whose_it_is(call: Call, start: Start, made: Path) -> None:
    beside = start("env", "-i", "/bin/sleep", "1000")
    others = cgroups.members(str(made))
    call.start()
    cgroup = call.cgroup()
    call.kill(with_guard=True)
    assert is_alive(call.evader())
    # The evader, the agent and its sleep.
    assert end_leftovers(call.folder, call.run_id, None) == 3
    assert not is_alive(call.evader())
    assert not cgroup.exists()
    assert os.listdir(call.folder) == []
    assert is_alive(beside.pid)
    assert cgroups.members(str(made)) == others != set()


def test_it_is_found_by_a_runner_that_lost_the_guard_alone(call: Call) -> None:
    seen: list[Path] = []

    def hear(chunk: bytes) -> None:
        if b"ready\n" in chunk:
            seen.append(call.cgroup())
            os.kill(call.guard(), signal.SIGKILL)

    ended = GuardedProcesses(call.folder).run(
        Program(call.argv, str(call.worktree), ENVIRON, call.run_id, 60, 60), hear, lambda: False
    )
    assert (ended.end, ended.leftovers) == (End.GUARD_LOST, 3)
    assert not is_alive(call.evader())
    assert [cgroup.exists() for cgroup in seen] == [False]


def test_a_note_ends_nobody_in_another_boot_or_in_a_cgroup_that_is_not_its_own(call: Call, made: Path) -> None:
    others = cgroups.members(str(made))
    call.start()
    call.kill(with_guard=True)
    note, cgroup = call.note(), call.cgroup()
    whole = note.read_text()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert f'"{boot}"' in whole
    own = f'"{cgroup}"'
    for other in (
        whole.replace(f'"{boot}"', '"another"'),
        whole.replace(f'"{boot}"', "null"),
        *(whole.replace(own, json.dumps(path)) for path in (str(made), f"{made}/../{cgroup.name}")),
        *(whole.replace(own, odd) for odd in ("17", "null", '"\\u0000"', f'"{call.root}/{cgroup.name}"')),
    ):
        assert other != whole
        note.write_text(other)
        end_leftovers(call.folder, call.run_id, None)
        assert is_alive(call.evader())
        assert cgroups.members(str(made)) == others
    note.write_text(whole)
    assert end_leftovers(call.folder, call.run_id, None) == 1  # the mark had found the agent


def test_the_empty_cgroup_of_a_killed_runner_is_removed_by_the_next_start(call: Call) -> None:
    call.start()
    cgroup = call.cgroup()
    guard = call.guard()
    (cgroup / "inner").mkdir()
    call.kill(with_guard=False)  # the guard ends everything, and its own note
    wait_until(lambda: not is_alive(guard) and is_empty(cgroup))
    assert end_leftovers(call.folder, call.run_id, None) == 0
    assert not cgroup.exists()


def test_a_normal_end_removes_the_cgroup_with_those_that_the_program_made_in_it(call: Call) -> None:
    seen: list[Path] = []

    def hear(_: bytes) -> None:
        seen.append(call.cgroup())
        (seen[0] / "inner").mkdir()
        os.kill(call.evader(), signal.SIGTERM)

    argv = ("sh", "-c", 'echo $$ > "$0/evader"; echo ready; exec sleep 1000', str(call.root))
    ended = GuardedProcesses(call.folder).run(
        Program(argv, str(call.worktree), ENVIRON, call.run_id, 60, 60), hear, lambda: False
    )
    assert (ended.end, ended.leftovers) == (End.EXITED, 0)
    assert [cgroup.exists() for cgroup in seen] == [False]


def test_a_cgroup_that_somebody_is_in_is_neither_removed_nor_a_reason_to_fail(made: Path) -> None:
    others = cgroups.members(str(made))
    cgroups.remove(str(made), 0.01)
    cgroups.remove_empty()
    assert cgroups.members(str(made)) == others != set()


def test_who_ends_the_others_from_inside_ends_neither_itself_nor_whoever_started_it(made: Path, start: Start) -> None:
    [sleeper] = cgroups.members(str(made))
    (made / "inner").mkdir()
    inner = start("sleep", "1000")
    starter = start("sh", "-c", '"$@"; echo "and $?"', "sh", sys.executable, "-c", INSIDE, str(made))
    (made / "cgroup.procs").write_text(str(starter.pid))
    for pid in table.below(table.everything(), [starter.pid]):
        (made / "cgroup.procs").write_text(str(pid))
    (made / "inner/cgroup.procs").write_text(str(inner.pid))
    assert starter.communicate("\n")[0] == "2\nand 0\n"
    assert [is_alive(pid) for pid in (sleeper, inner.pid)] == [False, False]


def test_a_guard_on_its_way_out_is_not_counted_with_what_it_left(made: Path, start: Start) -> None:
    guard = start("sleep", "1000")
    (made / "cgroup.procs").write_text(str(guard.pid))
    assert cgroups.end_members(str(made), guard.pid) == 1
    assert not is_alive(guard.pid)


def test_without_the_kernels_way_processes_of_a_cgroup_are_killed_one_by_one(made: Path, start: Start) -> None:
    [sleeper] = cgroups.members(str(made))
    outside = start("sleep", "1000")
    cgroups.kill_each(str(made), {sleeper, outside.pid, 2**22 + 1})
    wait_until(lambda: cgroups.members(str(made)) == set())
    assert is_alive(outside.pid)


def cgroups_seen(call: Call, before: str, *, confined: bool) -> list[str]:
    """Return the cgroups of version 2 that a program is in from its first line on, and its guard."""
    script = (
        f"import sys\nsys.path.append({os.path.dirname(without_landlock.__file__)!r})\n{before}\n"
        "from aiflow.adapters.processes.launch import GuardedProcesses\n"
        "from aiflow.domain.programs import End, Program\n"
        f"writable = ({str(call.worktree)!r},) if {confined!r} else None\n"
        f"program = Program({WHERE!r}, {str(call.worktree)!r}, {ENVIRON!r}, {call.run_id!r}, 60, 60, writable=writable)\n"
        f"ended = GuardedProcesses({call.folder!r}).run(program, sys.stdout.buffer.write, lambda: False)\n"
        "assert (ended.end, ended.exit_code, ended.leftovers) == (End.EXITED, 0, 0), ended\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.removeprefix("0::") for line in done.stdout.splitlines() if line.startswith("0::")]


@pytest.mark.parametrize("confined", [False, True])
def test_a_program_is_born_in_its_cgroup_and_its_guard_is_not_moved(
    made: Path, tmp_path: Path, *, confined: bool
) -> None:
    assert made.exists()
    call = Call(tmp_path)
    program, guard = cgroups_seen(call, "", confined=confined)
    own = Path("/proc/self/cgroup").read_text().partition("0::")[2].strip()
    assert os.path.basename(program).startswith(f"aiflow-{call.run_id}.")
    assert (os.path.dirname(program), guard) == (own, own)


@pytest.mark.parametrize("confined", [False, True])
def test_where_none_can_be_born_in_a_cgroup_the_guard_goes_there_first(
    made: Path, tmp_path: Path, *, confined: bool
) -> None:
    assert made.exists()
    call = Call(tmp_path)
    seen = cgroups_seen(call, "import without_landlock; without_landlock.give_up_clone3()", confined=confined)
    assert os.path.basename(seen[0]).startswith(f"aiflow-{call.run_id}.")
    assert seen == [seen[0]] * 2
    assert list(made.parent.glob(f"aiflow-{call.run_id}.*")) == []
