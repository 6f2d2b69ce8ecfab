"""Running external programs (AGT-4, AGT-5) and looking at processes (LCK-4): real processes, real signals."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aiflow.adapters.processes import guard, guard_notes, leftovers, machine, table, with_ps
from aiflow.adapters.processes.launch import GuardedProcesses
from aiflow.adapters.processes.table import KnownProcess, ProcTable, PsutilTable, Table
from aiflow.domain.process import Liveness, Process, liveness
from aiflow.domain.programs import GIT_MARK, GUARD_MARK, RUN_MARK, End, Ended, Program
from aiflow.errors import EnvironmentProblemError
from waiting import wait_until

PYTHON = (sys.executable, "-I", "-S", "-c")
ENVIRON = {"PATH": "/usr/bin:/bin", "GREETING": "日本 = hello"}


class Stage:
    """A place to run programs in, with a run of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".aiflow/guards"
        self.run_id = f"RUN-{os.urandom(6).hex()}"
        self.processes = GuardedProcesses(str(self.folder), grace_seconds=0.5)
        self.said = b""

    def program(self, *argv: str, timeout: float = 30, idle: float = 30, stdin: bytes = b"") -> Program:
        return Program(argv, str(self.root), ENVIRON, self.run_id, timeout, idle, stdin)

    def run(self, program: Program, should_stop: Callable[[], bool] = lambda: False) -> Ended:
        self.said = b""

        def hear(chunk: bytes) -> None:
            self.said += chunk

        return self.processes.run(program, hear, should_stop)

    def shell(self, script: str, timeout: float = 30, idle: float = 30) -> Ended:
        return self.run(self.program("sh", "-c", script, timeout=timeout, idle=idle))

    def python(self, script: str, timeout: float = 30) -> Ended:
        return self.run(self.program(*PYTHON, script, timeout=timeout))

    @staticmethod
    def never(chunk: bytes) -> None:
        raise AssertionError(chunk)

    def has_said(self, word: bytes) -> Callable[[], bool]:
        return lambda: word in self.said

    def in_background(self, program: Program) -> tuple[threading.Thread, list[Ended]]:
        ends: list[Ended] = []
        thread = threading.Thread(target=lambda: ends.append(self.run(program)))
        thread.start()
        return thread, ends

    def guard_pid(self) -> int:
        [pid] = table.marked(GUARD_MARK, self.run_id)
        return pid

    def files(self) -> list[str]:
        return os.listdir(self.folder) if self.folder.exists() else []


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Give a stage, and check that nothing is left on it."""
    before = set(os.listdir("/proc/self/fd"))
    stage = Stage(tmp_path)
    yield stage
    left = {mark: table.marked(mark, stage.run_id) for mark in (RUN_MARK, GUARD_MARK, GIT_MARK)}
    leftovers.sweep(RUN_MARK, stage.run_id, None)
    assert left == {RUN_MARK: [], GUARD_MARK: [], GIT_MARK: []}
    assert stage.files() == []
    assert set(os.listdir("/proc/self/fd")) == before


# How it ends


@pytest.mark.spec("AGT-5")
def test_the_exit_code_is_the_programs_whoever_ends_beside_it(stage: Stage) -> None:
    # Four that end at the same time, forty times: a code of theirs has more chances to be taken for its own than by
    # one of them a hundred times, and the guard's start is what costs.
    script = "(exit 3) & (exit 4) & (exit 5) & (exit 6) & exit 7"
    ended = [stage.shell(script) for _ in range(40)]
    # On a busy machine one of the four may still be there at the end: then it is ended as what was left behind.
    assert [(each.end, each.exit_code) for each in ended] == [(End.EXITED, 7)] * 40


@pytest.mark.parametrize("code", [0, 1, 127, 255])
def test_an_exit_code_is_told(stage: Stage, code: int) -> None:
    assert stage.shell(f"exit {code}") == Ended(End.EXITED, code)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGHUP, signal.SIGPIPE])
def test_a_signal_is_told_as_a_negative_exit_code(stage: Stage, number: int) -> None:
    assert stage.shell(f"kill -{number:d} $$") == Ended(End.EXITED, -number)


def test_a_program_starts_with_the_usual_signals(stage: Stage) -> None:
    # Whatever the runner ignores (it was started with nohup, say) or blocks, and though the guard ignores some.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        stage.run(stage.program("grep", "-hE", "Sig(Ign|Blk)", "/proc/self/status"))
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
        signal.signal(signal.SIGHUP, before)
    _, blocked, _, ignored = stage.said.split()
    assert (int(blocked, 16), int(ignored, 16) & 0x7FFFFFFF) == (0, 0)  # glibc itself ignores two above these


def test_a_program_that_does_not_exist_is_not_found(stage: Stage) -> None:
    assert stage.run(stage.program("no-such-program")) == Ended(End.NOT_FOUND)
    assert stage.run(stage.program("/no/such/program")) == Ended(End.NOT_FOUND)
    assert stage.run(stage.program("")) == Ended(End.NOT_FOUND)


def test_a_program_that_cannot_be_executed_is_told_apart(stage: Stage) -> None:
    for name, text, mode in (
        ("plain", "#!/bin/sh\n", 0o644),
        ("orphan", "#!/no/such/interpreter\n", 0o755),
        ("noise", "\x7f", 0o755),
    ):
        (stage.root / name).write_text(text)
        (stage.root / name).chmod(mode)
        assert stage.run(stage.program(f"./{name}")) == Ended(End.NOT_EXECUTABLE), name
    assert stage.run(stage.program(str(stage.root))) == Ended(End.NOT_EXECUTABLE)


def test_a_program_is_looked_for_in_its_own_path(stage: Stage) -> None:
    for folder, mode in (("a", 0o644), ("b", 0o755)):
        (stage.root / folder).mkdir()
        (stage.root / folder / "tool").write_text(f"#!/bin/sh\necho {folder}\n")
        (stage.root / folder / "tool").chmod(mode)
    environ = {"PATH": f"{stage.root}/no::{stage.root}/a:{stage.root}/b"}
    assert stage.run(Program(("tool",), str(stage.root), environ, stage.run_id, 9, 9)) == Ended(End.EXITED, 0)
    assert stage.said == b"b\n"


def test_a_missing_folder_is_not_a_missing_program(stage: Stage) -> None:
    program = Program(("true",), str(stage.root / "gone"), ENVIRON, stage.run_id, 9, 9)
    with pytest.raises(EnvironmentProblemError) as caught:
        stage.run(program)
    assert caught.value.context == {"path": program.cwd, "problem": os.strerror(errno.ENOENT)}


@pytest.mark.parametrize(
    ("argv", "environ"), [((), {}), (("a\0b",), {}), (("true",), {"A=B": "C"}), (("true",), {"": ""})]
)
def test_what_no_system_can_start_is_a_problem(stage: Stage, argv: tuple[str, ...], environ: dict[str, str]) -> None:
    with pytest.raises(EnvironmentProblemError):
        stage.run(Program(argv, str(stage.root), environ, stage.run_id, 9, 9))


def test_too_long_an_argument_is_a_problem_that_names_the_program(stage: Stage) -> None:
    with pytest.raises(EnvironmentProblemError) as caught:
        stage.run(stage.program("true", "x" * 3_000_000))
    assert caught.value.context == {"path": "true", "problem": os.strerror(errno.E2BIG)}


def test_a_guard_that_cannot_be_started_is_a_problem(stage: Stage) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 2, hard))
    try:
        with pytest.raises(EnvironmentProblemError) as caught:
            stage.run(stage.program("true"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert caught.value.reason_code == "IO_ERROR"


# What it gets


def test_a_program_gets_its_arguments_and_its_environment_and_nothing_else(stage: Stage) -> None:
    odd = ["", " ", "a\nb", "日本", os.fsdecode(b"\xff\xfe"), "x" * 100_000]
    script = "import os, sys; print(ascii((sys.argv[1:], dict(os.environ), os.getcwd())))"
    stage.run(stage.program(*PYTHON, script, *odd))
    expected = (odd, {**ENVIRON, RUN_MARK: stage.run_id}, str(stage.root))
    said = eval(stage.said)
    said[1].pop("LC_CTYPE", None)  # Python's own doing
    assert said == expected


@pytest.mark.spec("AGT-5")
def test_nothing_of_the_runner_is_open_in_a_program(stage: Stage) -> None:
    stage.shell("ls /proc/$$/fd")
    assert stage.said.split() == [b"0", b"1", b"2"]


@pytest.mark.spec("AGT-4")
def test_a_program_has_no_terminal(stage: Stage) -> None:
    # The runner itself has one: it is started under a pseudo terminal as its controlling one.
    script = (
        "import os, sys\n"
        "pid, terminal = os.forkpty()\n"
        "if pid: \n"
        "    said = b''\n"
        "    try:\n"
        "        while chunk := os.read(terminal, 9999): said += chunk\n"
        "    except OSError: pass\n"
        "    os.waitpid(pid, 0)\n"
        "    sys.exit(said.decode())\n"
        "from aiflow.adapters.processes.launch import GuardedProcesses\n"
        "from aiflow.domain.programs import Program\n"
        f"agent = {PRINT_TERMINAL!r}\n"
        f"program = Program((*{PYTHON!r}, agent), '/', {{}}, {stage.run_id!r}, 9, 9)\n"
        "print(os.isatty(0), os.tcgetpgrp(0) > 0, flush=True)\n"
        f"GuardedProcesses({str(stage.folder)!r}).run(program, lambda b: os.write(1, b), lambda: False)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=30)
    assert done.stderr.split() == ["True", "True", "False", "False", "False", "none", "leader"]


PRINT_TERMINAL = """
import os
print(*map(os.isatty, (0, 1, 2)))
try:
    os.open('/dev/tty', os.O_RDWR)
    print('terminal')
except OSError:
    print('none')
print('leader' if os.getsid(0) == os.getpid() else 'follower')
"""


@pytest.mark.spec("AGT-2")
def test_five_megabytes_on_stdin_arrive_whole_and_end(stage: Stage) -> None:
    data = os.urandom(5_000_000)
    stage.run(stage.program("sha256sum", stdin=data))
    import hashlib

    assert stage.said.split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_stdin_that_nobody_reads_blocks_nobody(stage: Stage) -> None:
    assert stage.run(stage.program("true", stdin=b"x" * 5_000_000)) == Ended(End.EXITED, 0)


def test_without_stdin_there_is_an_end_at_once(stage: Stage) -> None:
    assert stage.run(stage.program("cat")) == Ended(End.EXITED, 0)


@pytest.mark.spec("AGT-5")
def test_secrets_are_on_no_command_line_and_not_with_the_guard(stage: Stage) -> None:
    secret = "s3cr3t-" + os.urandom(4).hex()
    environ = {**ENVIRON, "TOKEN": secret}
    program = Program(
        ("sh", "-c", "echo ready; sleep 30", secret), str(stage.root), environ, stage.run_id, 30, 30, secret.encode()
    )
    thread, _ = stage.in_background(program)
    wait_until(stage.has_said(b"ready"))
    pid = stage.guard_pid()
    assert secret not in Path(f"/proc/{pid}/cmdline").read_text()
    assert secret not in Path(f"/proc/{pid}/environ").read_text()
    assert not ProcTable().carries(pid, RUN_MARK, stage.run_id)
    os.kill(pid, signal.SIGTERM)
    thread.join()


# What it says


@pytest.mark.spec("AGT-2")
def test_output_comes_as_it_is_written_errors_among_it(stage: Stage) -> None:
    thread, ends = stage.in_background(stage.program("sh", "-c", "echo one; echo two >&2; read x < fifo; echo three"))
    os.mkfifo(stage.root / "fifo")
    wait_until(stage.has_said(b"one\ntwo\n"))
    assert not ends
    (stage.root / "fifo").write_text("go\n")
    thread.join()
    assert (stage.said, ends) == (b"one\ntwo\nthree\n", [Ended(End.EXITED, 0)])


@pytest.mark.spec("AGT-4")
def test_errors_come_apart_from_the_output_where_they_are_asked_for(stage: Stage) -> None:
    # An event of a megabyte, with words on standard error in the middle of it.
    script = (
        "import os\n"
        "for _ in range(64):\n"
        "    rest = b'e' * 16384\n"
        "    while rest: rest = rest[os.write(1, rest):]\n"
        "    os.write(2, b'trouble\\n')\n"
        "os.write(1, b'\\n')\n"
    )
    said, complained = bytearray(), bytearray()
    program = stage.program(*PYTHON, script)
    ended = stage.processes.run(program, said.extend, lambda: False, complained.extend)
    assert ended == Ended(End.EXITED, 0)
    assert bytes(said) == b"e" * (1 << 20) + b"\n"
    assert bytes(complained) == b"trouble\n" * 64


@pytest.mark.spec("AGT-4")
def test_errors_of_their_own_are_a_sign_of_life_and_heard_to_the_last_word(stage: Stage) -> None:
    complained = bytearray()
    program = stage.program("sh", "-c", "for i in 1 2 3 4; do sleep 0.2; echo $i >&2; done; exec >&-; exit 3", idle=0.5)
    assert stage.processes.run(program, stage.never, lambda: False, complained.extend) == Ended(End.EXITED, 3)
    assert bytes(complained) == b"1\n2\n3\n4\n"
    program = stage.program("sh", "-c", "head -c 300000 /dev/zero >&2; sleep 30", idle=0.4)
    complained.clear()
    ended = stage.processes.run(program, stage.never, lambda: False, complained.extend)
    assert (ended.end, len(complained)) == (End.SILENT, 300_000)


@pytest.mark.spec("AGT-5")
def test_an_exception_where_errors_are_heard_ends_everything_too(stage: Stage) -> None:
    def fail(_: bytes) -> None:
        raise KeyboardInterrupt

    program = stage.program("sh", "-c", "setsid sleep 30 & echo trouble >&2; yes")
    with pytest.raises(KeyboardInterrupt):
        stage.processes.run(program, lambda _: None, lambda: False, fail)
    assert table.marked(RUN_MARK, stage.run_id) == []


@pytest.mark.spec("RUN-12", "AGT-5")
def test_who_hangs_after_the_last_word_is_ended_in_time_whatever_it_ignores(stage: Stage) -> None:
    # As `claude` may behind its closing event; the caller has all it needs, and says so by `should_stop`.
    script = (
        "trap '' TERM INT HUP; (setsid sh -c 'trap \"\" TERM; sleep 600' &); echo closing; while :; do sleep 1; done"
    )
    processes = GuardedProcesses(str(stage.folder))  # the grace of every day
    said = bytearray()
    ended = processes.run(
        stage.program("sh", "-c", script, timeout=600, idle=600), said.extend, lambda: b"closing" in said, said.extend
    )
    assert (ended.end, bytes(said)) == (End.STOPPED, b"closing\n")
    assert table.marked(RUN_MARK, stage.run_id) == []


def test_a_hundred_megabytes_flow_through_without_being_kept(stage: Stage) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sizes: list[int] = []
    program = stage.program("head", "-c", "100000000", "/dev/zero")
    assert stage.processes.run(program, lambda chunk: sizes.append(len(chunk)), lambda: False) == Ended(End.EXITED, 0)
    assert sum(sizes) == 100_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


def test_the_last_words_are_heard(stage: Stage) -> None:
    # The tail of a pipeline writes after the program itself has ended, and is left alone for that moment.
    assert stage.shell("{ sleep 0.05; echo last; } & exit 0") == Ended(End.EXITED, 0)
    assert stage.said == b"last\n"
    stage.shell("head -c 300000 /dev/zero | tr '\\0' x")
    assert len(stage.said) == 300_000


def test_what_is_still_in_the_pipe_when_all_is_over_is_heard(stage: Stage) -> None:
    enlarge = 1031  # F_SETPIPE_SZ: a program may have the pipe hold more than is read at once
    script = f"import fcntl, os; os.write(1, b'x'); fcntl.fcntl(1, {enlarge}, 1 << 20); os.write(1, b'y' * 900_000)"
    sizes: list[int] = []

    def hear(chunk: bytes) -> None:
        if not sizes:
            time.sleep(0.5)
        sizes.append(len(chunk))

    assert stage.processes.run(stage.program(*PYTHON, script), hear, lambda: False) == Ended(End.EXITED, 0)
    assert sum(sizes) == 900_001


def test_a_program_that_closes_its_output_is_still_waited_for(stage: Stage) -> None:
    began = time.monotonic()
    assert stage.shell("exec >/dev/null 2>&1; sleep 0.4; exit 5") == Ended(End.EXITED, 5)
    assert time.monotonic() - began > 0.35


# Limits


@pytest.mark.spec("AGT-4")
def test_the_time_limit_ends_a_program_that_talks(stage: Stage) -> None:
    began = time.monotonic()
    ended = stage.shell("while :; do echo x; sleep 0.05; done", timeout=1.2, idle=1.1)
    assert ended == Ended(End.TIMED_OUT, -signal.SIGTERM)
    assert time.monotonic() - began >= 1.2


@pytest.mark.spec("AGT-4")
def test_the_idle_limit_ends_a_program_that_is_silent(stage: Stage) -> None:
    began = time.monotonic()
    ended = stage.shell("for i in 1 2 3 4; do sleep 0.2; echo $i; done; sleep 600", timeout=600, idle=0.7)
    assert (ended, stage.said) == (Ended(End.SILENT, -signal.SIGTERM), b"1\n2\n3\n4\n")
    assert time.monotonic() - began >= 1.5


@pytest.mark.timing
@pytest.mark.spec("RUN-12")
def test_a_program_is_stopped_when_asked_and_not_before(stage: Stage, allowed: Callable[[float], float]) -> None:
    asked: list[float] = []

    def should_stop() -> bool:
        asked.append(time.monotonic())
        return len(asked) == 4

    # Also while it talks all the time.
    ended = stage.run(stage.program("yes"), should_stop)
    assert ended.end is End.STOPPED
    gaps = [later - earlier for earlier, later in itertools.pairwise(asked)]
    most = allowed(0.4)
    assert all(0.19 < gap < most for gap in gaps), gaps


@pytest.mark.spec("RUN-12")
def test_a_program_may_tidy_up_before_it_is_killed(stage: Stage) -> None:
    ended = stage.shell("trap 'echo tidy; exit 3' TERM; echo ready; while :; do sleep 0.01; done", timeout=0.3)
    assert (ended, b"tidy" in stage.said) == (Ended(End.TIMED_OUT, 3), True)
    began = time.monotonic()
    ended = stage.shell("trap '' TERM; while :; do sleep 0.01; done", timeout=0.3)
    assert ended == Ended(End.TIMED_OUT, -signal.SIGKILL)
    assert time.monotonic() - began >= 0.8


@pytest.mark.spec("RUN-12")
def test_a_stopped_program_hears_term_too(stage: Stage) -> None:
    ended = stage.shell("trap 'echo tidy; exit 3' TERM; kill -STOP $$; sleep 30", timeout=0.3)
    assert (ended, stage.said) == (Ended(End.TIMED_OUT, 3), b"tidy\n")


@pytest.mark.spec("AGT-5")
@pytest.mark.parametrize("where", ["output", "should_stop"])
def test_an_exception_ends_everything_before_it_is_seen(stage: Stage, where: str) -> None:
    def fail(*_: object) -> bool:
        if where == "should_stop" and not stage.said:
            return False
        raise KeyboardInterrupt(where)

    def hear(chunk: bytes) -> None:
        stage.said += chunk
        if where == "output":
            fail()

    program = stage.program("sh", "-c", "setsid sleep 30 & echo ready; yes")
    with pytest.raises(KeyboardInterrupt, match=where):
        stage.processes.run(program, hear, fail)
    assert table.marked(RUN_MARK, stage.run_id) == []


@pytest.mark.spec("AGT-5")
def test_an_exception_ends_everything_though_the_guard_is_lost(stage: Stage) -> None:
    def hear(_: bytes) -> None:
        os.kill(stage.guard_pid(), signal.SIGKILL)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stage.processes.run(stage.program("sh", "-c", "setsid sleep 30 & echo ready; sleep 30"), hear, lambda: False)
    assert table.marked(RUN_MARK, stage.run_id) == []


@pytest.mark.spec("AGT-5")
def test_a_guard_whose_runner_died_before_it_began_starts_nothing(tmp_path: Path) -> None:
    parts = [b"2", b"-1", os.fsencode(tmp_path), b"touch", b"started", b"PATH=/usr/bin:/bin"]
    control, tell = os.pipe()
    status, report = os.pipe()
    os.write(tell, b"\0".join(parts))
    os.close(tell)
    with open(tmp_path / "alive", "wb") as alive:
        fds = (control, report, alive.fileno())
        rest = (*fds, tmp_path / "alive", 0.5, len(b"\0".join(parts)), tmp_path, "")
        subprocess.run(
            [sys.executable, "-I", "-S", guard.__file__, *map(str, rest)], pass_fds=fds, check=True, timeout=9
        )
    os.close(report)
    assert os.read(status, 999) == b""
    os.close(status)
    os.close(control)
    assert os.listdir(tmp_path) == []


# What it leaves


@pytest.mark.spec("AGT-5")
def test_what_a_program_leaves_behind_is_ended_and_counted(stage: Stage) -> None:
    (stage.root / "leave").write_text("echo x >> started; exec sleep 30")
    script = (
        "sh leave & setsid sh leave & (setsid sh -c 'sh leave & sh leave; :' &)\n"
        "while [ $(cat started | wc -l) -lt 4 ]; do sleep 0.01; done 2>/dev/null\n"
        "echo done; exit 4"
    )
    assert stage.shell(script) == Ended(End.EXITED, 4, leftovers=5)
    assert stage.said == b"done\n"


@pytest.mark.spec("AGT-5")
def test_a_process_whose_first_thread_is_gone_is_ended_too(stage: Stage) -> None:
    script = (
        "import ctypes, os, signal, threading, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if os.fork(): time.sleep(0.3); os._exit(0)\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    assert stage.python(script).exit_code == 0
    assert table.marked(RUN_MARK, stage.run_id) == []


@pytest.mark.spec("AGT-5")
def test_who_forks_away_all_the_time_is_caught(stage: Stage) -> None:
    script = (
        "import os, signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "while True:\n"
        "    if os.fork(): os._exit(0)\n"
        "    os.setsid()\n"
    )
    assert stage.python(script).exit_code == 0
    assert table.marked(RUN_MARK, stage.run_id) == []


@pytest.mark.spec("AGT-5")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_guard_that_is_killed_loses_the_program_but_leaves_nothing(stage: Stage, number: int) -> None:
    # One of them without its mark, and in a session of its own: known only by who started it.
    script = (
        "setsid sleep 30 & (setsid sh -c \"trap '' TERM; sleep 30\" &); env -i setsid sleep 31 & echo ready; sleep 30"
    )
    thread, ends = stage.in_background(stage.program("sh", "-c", script))
    wait_until(stage.has_said(b"ready"))
    wait_until(lambda: len(table.below(table.everything(), [stage.guard_pid()])) == 6)
    time.sleep(0.2)
    below = table.below(table.everything(), [stage.guard_pid()])
    os.kill(stage.guard_pid(), number)
    thread.join(60)
    assert [ended.end for ended in ends] == [End.GUARD_LOST]
    assert [pid for pid in below if is_alive(pid)] == []


@pytest.mark.spec("AGT-5")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_guard_does_not_care_for_the_terminal(stage: Stage, number: int) -> None:
    thread, ends = stage.in_background(stage.program("sh", "-c", "echo ready; sleep 0.5"))
    wait_until(stage.has_said(b"ready"))
    pid = stage.guard_pid()
    assert os.getsid(pid) == pid
    os.kill(pid, number)
    thread.join(60)
    assert ends == [Ended(End.EXITED, 0)]


@pytest.mark.spec("AGT-5")
def test_a_guard_holds_its_liveness_file_and_nobody_else_does(stage: Stage) -> None:
    thread, _ = stage.in_background(stage.program("sh", "-c", "setsid sleep 30 & echo ready; sleep 30"))
    wait_until(stage.has_said(b"ready"))
    [path] = guard_notes.liveness_files(str(stage.folder), stage.run_id)
    assert guard_notes.liveness_files(str(stage.folder), stage.run_id[:-1]) == []
    pid, started_at, where = Path(path).read_text().splitlines()[0].split()
    assert (int(pid), float(started_at)) == (stage.guard_pid(), table.started_at(stage.guard_pid()))
    assert where == machine.pid_namespace()
    inode = str(os.stat(path).st_ino)
    holders = [line.split()[4] for line in Path("/proc/locks").read_text().splitlines() if f":{inode} " in line]
    assert len(holders) == 1
    others = [each for each in table.everything() if str(each) != pid and opens(each, path)]
    assert others == []
    assert (stage.root / ".aiflow/.gitignore").read_text() == "*\n"
    os.kill(int(pid), signal.SIGTERM)
    thread.join()


def opens(pid: int, path: str) -> bool:
    with contextlib.suppress(OSError):
        return any(os.readlink(f"/proc/{pid}/fd/{fd}") == path for fd in os.listdir(f"/proc/{pid}/fd"))
    return False


def is_alive(pid: int) -> bool:
    known = table.table().look(pid)
    return known is not None and not known.is_zombie


def test_two_programs_at_once_do_not_disturb_each_other(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = Stage(tmp_path_factory.mktemp("other"))
    slow, slow_ends = stage.in_background(stage.program("sh", "-c", "echo ready; sleep 1; exit 2"))
    wait_until(stage.has_said(b"ready"))
    assert other.shell("sleep 30", timeout=0.2).end is End.TIMED_OUT
    assert slow.is_alive()
    slow.join()
    assert slow_ends == [Ended(End.EXITED, 2)]


def test_a_guard_imports_nothing_that_costs_time() -> None:
    script = "import sys; before = {*sys.modules}; import guard; print(*{*sys.modules} - before)"
    argv = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import sys; sys.path[:0] = [{os.path.dirname(guard.__file__)!r}]; {script}",
    ]
    imported = set(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split())
    # `os` and what it is made of comes with almost every Python; the rest is compiled.
    own = {"guard", "__future__", "_ctypes", "_signal", "errno", "select", "time"}
    pythons = {"os", "os.path", "posixpath", "genericpath", "stat", "_stat", "_collections_abc", "abc", "_abc"}
    assert "guard" in imported
    assert imported - pythons <= own


# Before a takeover


def start_marked(mark: str, run_id: str, script: str = "sleep 30") -> subprocess.Popen[bytes]:
    process = subprocess.Popen(["sh", "-c", f"echo ready; {script}"], env={mark: run_id}, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.stdout.close()
    return process


@pytest.mark.spec("LCK-4", "AGT-5")
def test_marked_processes_are_ended_those_of_other_runs_are_not(stage: Stage) -> None:
    ours = [start_marked(RUN_MARK, stage.run_id, "exec sleep 30") for _ in range(3)]
    other = start_marked(RUN_MARK, stage.run_id + "0", "exec sleep 30")
    try:
        assert leftovers.end_leftovers(str(stage.folder), stage.run_id, None) == 3
        assert [process.wait(60) for process in ours] == [-signal.SIGKILL] * 3
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.spec("LCK-4", "AGT-5")
def test_what_started_before_the_dead_runner_is_not_its_own(stage: Stage) -> None:
    older = start_marked(RUN_MARK, stage.run_id, "exec sleep 30")
    try:
        since = (table.started_at(older.pid) or 0) + 0.02
        time.sleep(0.05)
        newer = start_marked(RUN_MARK, stage.run_id, "exec sleep 30")
        assert leftovers.end_leftovers(str(stage.folder), stage.run_id, since) == 1
        assert newer.wait(60) == -signal.SIGKILL
        assert older.poll() is None
    finally:
        older.kill()
        older.wait()


@pytest.mark.spec("LCK-4")
def test_git_is_waited_for(stage: Stage) -> None:
    git = start_marked(GIT_MARK, stage.run_id, "sleep 0.7; exit 3")
    began = time.monotonic()
    assert leftovers.end_leftovers(str(stage.folder), stage.run_id, None) == 0
    assert time.monotonic() - began > 0.5
    assert git.wait() == 3


@pytest.mark.timing
@pytest.mark.spec("LCK-4")
def test_where_nothing_is_left_nothing_is_waited_for(stage: Stage, allowed: Callable[[float], float]) -> None:
    stage.folder.mkdir(parents=True)
    ours = stage.folder / f"{stage.run_id}.0123.guard"
    ours.write_text("1 0.0\n")  # the process of that number is another one
    other = stage.folder / f"{stage.run_id}x.0123.guard"
    other.write_text("")
    began = time.monotonic()
    assert leftovers.end_leftovers(str(stage.folder), stage.run_id, None) == 0
    assert time.monotonic() - began < allowed(2)
    assert (ours.exists(), other.exists()) == (False, True)
    other.unlink()


# The table of processes


@pytest.fixture(params=[ProcTable, PsutilTable])
def source(request: pytest.FixtureRequest) -> Table:
    """Give both ways to look at processes."""
    kind: type[Table] = request.param
    return kind()


@pytest.mark.spec("LCK-4")
def test_a_process_is_known_until_it_is_collected(source: Table) -> None:
    with subprocess.Popen(["sleep", "30"], start_new_session=True) as process:
        known = source.look(process.pid)
        assert known == source.look(process.pid)
        assert known is not None
        assert (known.parent, known.group, known.is_zombie) == (os.getpid(), process.pid, False)
        assert process.pid in source.pids()
        process.kill()
        wait_until(lambda: bool((one := source.look(process.pid)) and one.is_zombie))
    assert source.look(process.pid) is None


@pytest.mark.spec("LCK-4")
def test_who_starts_later_has_a_later_start(source: Table) -> None:
    with subprocess.Popen(["sleep", "0.2"]) as first:
        time.sleep(0.05)
        with subprocess.Popen(["sleep", "0.2"]) as second:
            one, two = source.look(first.pid), source.look(second.pid)
            own = source.look(os.getpid())
    assert one is not None
    assert two is not None
    assert own is not None
    assert own.started_at < one.started_at < two.started_at < one.started_at + 0.5


@pytest.mark.parametrize("name", ["a b", "a) Z (b", ") Z 1 1 1", "日本)\n(", "()"])
def test_a_program_may_be_called_anything(source: Table, tmp_path: Path, name: str) -> None:
    shutil.copy("/bin/sleep", tmp_path / name)
    with subprocess.Popen([tmp_path / name, "30"], start_new_session=True) as process:
        wait_until(lambda: name[:3].encode() in Path(f"/proc/{process.pid}/comm").read_bytes())
        known = source.look(process.pid)
        by_guard = guard.look()[process.pid]
        process.kill()
    assert known is not None
    assert known[:2] == (os.getpid(), process.pid)
    assert by_guard == (os.getpid(), process.pid, False)


@pytest.mark.spec("AGT-5")
def test_a_mark_is_found_on_whoever_inherited_it(source: Table) -> None:
    run_id = f"RUN-{os.urandom(6).hex()}"
    process = start_marked(RUN_MARK, run_id, "sleep 30 & exec sleep 30")
    wait_until(lambda: len(table.marked(RUN_MARK, run_id, source)) == 2)
    assert process.pid in table.marked(RUN_MARK, run_id, source)
    assert table.marked(RUN_MARK, run_id[:-1], source) == []
    assert table.marked(GIT_MARK, run_id, source) == []
    leftovers.sweep(RUN_MARK, run_id, None)
    wait_until(lambda: (source.look(process.pid) or KnownProcess(0, 0, 0, is_zombie=False)).is_zombie)
    assert table.marked(RUN_MARK, run_id, source) == []  # one is a zombie still
    process.wait()


@pytest.mark.spec("AGT-5")
def test_nobody_sweeps_itself_or_who_started_it() -> None:
    run_id = f"RUN-{os.urandom(6).hex()}"
    script = (
        "import sys\nfrom aiflow.adapters.processes import leftovers, table\n"
        f"print(table.marked({RUN_MARK!r}, {run_id!r}), table.marked({RUN_MARK!r}, {run_id!r}, table.PsutilTable()))\n"
        f"print(leftovers.sweep({RUN_MARK!r}, {run_id!r}, None))\n"
    )
    done = subprocess.run(
        ["sh", "-c", f'{sys.executable} -c "$SCRIPT"; echo alive'],
        env={**os.environ, RUN_MARK: run_id, "SCRIPT": script},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.stdout.splitlines() == ["[] []", "0", "alive"], done.stderr


@pytest.mark.spec("LCK-4")
def test_facts_tell_a_living_holder_from_a_dead_one() -> None:
    with subprocess.Popen(["sleep", "30"]) as process:
        facts = table.facts_of(process.pid)
        assert facts.host == machine.host_name()
        assert facts.boot_id == machine.boot_id()
        assert facts.pid_namespace == machine.pid_namespace() == os.readlink("/proc/self/ns/pid")[5:-1]
        named = Process(facts.host, process.pid, facts.boot_id, facts.pid_namespace, facts.process_started_at)
        assert liveness(named, table.facts_of(process.pid)) is Liveness.ALIVE
        assert liveness(named, table.facts_of(os.getpid())) is Liveness.DEAD  # the number is somebody else's
        process.kill()
        wait_until(lambda: table.facts_of(process.pid).is_zombie)
        assert liveness(named, table.facts_of(process.pid)) is Liveness.DEAD
    assert table.facts_of(process.pid).process_started_at is None
    assert table.started_at(process.pid) is None


def test_a_start_is_counted_from_the_boot_so_that_setting_the_clock_changes_nothing() -> None:
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    with subprocess.Popen(["sleep", "0.1"]) as process:
        assert abs((table.started_at(process.pid) or 0) - uptime) < 1
    assert len(machine.boot_id() or "") == 36


@pytest.mark.spec("AGT-5")
def test_a_guard_sees_the_same_with_and_without_proc() -> None:
    with subprocess.Popen(["sh", "-c", "setsid sleep 30 & sleep 30"], start_new_session=True) as process:
        wait_until(lambda: len(guard.below(guard.look(), {process.pid})) == 2)
        family = guard.below(guard.look(), {process.pid})
        time.sleep(0.1)
        by_proc, by_ps = guard.look(), with_ps.look()
        assert {pid: by_proc[pid] for pid in family} == {pid: by_ps[pid] for pid in family}
        assert guard.below(by_ps, {process.pid}) == family
        for pid in (*family, process.pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.spec("AGT-5")
def test_without_subreaper_and_proc_nothing_is_left_either(stage: Stage) -> None:
    # Another system, acted on this one: the guard has no subreaper and asks `ps`, the runner sweeps with psutil.
    acted = stage.root / "acted_guard.py"
    acted.write_text(
        f"import runpy, sys\nsys.platform = 'darwin'\nrunpy.run_path({guard.__file__!r}, run_name='__main__')"
    )
    script = (
        "import json, sys, subprocess, tempfile, psutil\n"
        "from aiflow.adapters.processes import launch\n"
        "from aiflow.domain.programs import Program\n"
        f"sys.platform, launch.GUARD = 'darwin', {str(acted)!r}\n"
        "agent = 'sleep 30 & setsid sleep 30 & (setsid sleep 30 &); sleep 0.3; exit 4'\n"
        f"program = Program(('sh', '-c', agent), '/', {ENVIRON!r}, {stage.run_id!r}, 30, 30)\n"
        f"ended = launch.GuardedProcesses({str(stage.folder)!r}).run(program, lambda b: None, lambda: False)\n"
        "print(json.dumps([ended.end, ended.exit_code, ended.leftovers]))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    end, code, count = json.loads(done.stdout)
    assert (end, code) == ("exited", 4)
    assert count >= 1
    assert table.marked(RUN_MARK, stage.run_id) == []
