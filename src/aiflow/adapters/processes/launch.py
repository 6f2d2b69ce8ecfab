"""Running external programs, each under a guard of its own (AGT-4, AGT-5).

The guard owns the program and everything it starts; here the output is read, the limits are watched, and the guard is
told to end everything. If we die, the end of the control pipe tells it the same.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from aiflow.adapters.atomic_files import STATE_DIR, state_dir, translated
from aiflow.adapters.processes import table
from aiflow.adapters.processes.compiled import ready_to_run
from aiflow.adapters.processes.leftovers import SUFFIX, sweep
from aiflow.domain.markers import GUARD_MARK, RUN_MARK
from aiflow.domain.programs import End, Ended
from aiflow.errors import as_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiflow.domain.programs import Program

GUARD = str(Path(__file__).with_name("guard.py"))
GRACE_SECONDS = 2.0
# A guard that has not come to its end so long after the grace is stopped or stuck, and is ended itself.
PATIENCE_SECONDS = 8.0
ASK_SECONDS = 0.2
CHUNK = 1 << 16
NOT_EXECUTABLE = frozenset({errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ETXTBSY, errno.ELOOP, errno.EISDIR})


class GuardedProcesses:
    """Runs programs so that nothing of them outlives the call."""

    def __init__(self, guards_folder: str, grace_seconds: float = GRACE_SECONDS) -> None:
        self._folder = Path(guards_folder).absolute()
        self._grace_seconds = grace_seconds

    def run(self, program: Program, output: Callable[[bytes], None], should_stop: Callable[[], bool]) -> Ended:
        """Run a program to its end, its output handed over as it comes; `should_stop` is asked every 0.2 s."""
        description = _describe(program)
        with translated(self._folder):
            guard = self._start_guard(program, len(description))
        try:
            watch = _Watch(program, guard, output, should_stop)
            try:
                guard.write(description)
                watch.until_the_end()
            except BaseException:
                watch.give_up()
                raise
            return watch.ended()
        finally:
            guard.close()

    def _start_guard(self, program: Program, length: int) -> _Guard:
        """Start a guard that waits to be told what to run."""
        with contextlib.ExitStack() as given, contextlib.ExitStack() as kept:
            control, tell = _pipe(given, kept)
            status, report = _pipe(kept, given)
            output, written = _pipe(kept, given)
            stdin = given.enter_context(_as_file(program.stdin))
            liveness = self._make_folder() / f"{program.run_id}.{os.urandom(6).hex()}{SUFFIX}"
            alive = _make_held(liveness)
            given.callback(os.close, alive)
            kept.callback(liveness.unlink, missing_ok=True)
            passed = (control, report, alive)
            rest = (*passed, liveness, self._grace_seconds, length)
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", ready_to_run(GUARD), *map(str, rest)],
                env=_guard_environ(program.run_id),
                cwd="/",
                stdin=stdin,
                stdout=written,
                stderr=written,
                pass_fds=passed,
                start_new_session=True,
            )
            kept.pop_all()
            started_at = table.started_at(process.pid)
            with contextlib.suppress(OSError):  # on a full disk the guard is still known by its mark
                os.write(alive, f"{process.pid} {started_at!r}\n".encode())
        patience = self._grace_seconds + PATIENCE_SECONDS
        return _Guard(process, tell, status, output, liveness, started_at, patience)

    def _make_folder(self) -> Path:
        """Make the guards' folder, hidden from git where it is part of a checkout's state."""
        if self._folder.parent.name == STATE_DIR:
            return state_dir(self._folder.parent.parent, self._folder.name)
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder


@dataclass(frozen=True, slots=True)
class _Guard:
    """A guard at work, and our ends of what leads to it."""

    process: subprocess.Popen[bytes]
    tell: int
    status: int
    output: int
    liveness: Path
    started_at: float | None
    patience_seconds: float

    def write(self, data: bytes) -> None:
        """Tell it something; if it died meanwhile, the end of its status says so."""
        with contextlib.suppress(BrokenPipeError):
            while data:
                data = data[os.write(self.tell, data) :]

    def close(self) -> None:
        """Let go of it: if it is still there, that makes it end everything."""
        for fd in (self.tell, self.status, self.output):
            os.close(fd)
        self.process.wait()
        self.liveness.unlink(missing_ok=True)


class _Watch:
    """One run of a program, watched until its guard has come to its end."""

    def __init__(
        self, program: Program, guard: _Guard, output: Callable[[bytes], None], should_stop: Callable[[], bool]
    ) -> None:
        self.program = program
        self.guard = guard
        self.output = output
        self.should_stop = should_stop
        self.started = self.last_output = self.next_ask = time.monotonic()
        self.deadline: float | None = None
        self.asked: End | None = None
        self.told = b""
        self.facts: dict[str, int] = {}
        self.has_guard = True
        self.swept = 0
        self.poller = select.poll()
        self.poller.register(guard.output, select.POLLIN)
        self.poller.register(guard.status, select.POLLIN)

    def until_the_end(self) -> None:
        """Hand over output and watch the limits until the guard is gone, and everything with it."""
        while self.has_guard:
            for fd, _ in self.poller.poll(self._pause_seconds() * 1000):
                if fd == self.guard.status:
                    self._read_status()
                else:
                    self._read_output()
            self._check(time.monotonic())
        # Without a subreaper, who forks twice gets away from the guard; without a guard everybody does.
        if self._is_lost or sys.platform != "linux":
            self.swept += sweep(RUN_MARK, self.program.run_id, self.guard.started_at)
        os.set_blocking(self.guard.output, False)
        with contextlib.suppress(BlockingIOError):
            while self._read_output():
                pass

    def give_up(self) -> None:
        """End everything, whatever it still says."""
        self.output = lambda _: None
        self._stop(End.STOPPED, time.monotonic())
        self.until_the_end()

    def ended(self) -> Ended:
        """Tell how it ended."""
        code = self.facts.get("exit_code")
        leftovers = self.facts.get("leftovers", 0) + self.swept
        if "errno" in self.facts:
            return Ended(self._refusal(self.facts["errno"]))
        if code is not None and not self.facts.get("is_told"):
            return Ended(End.EXITED, code, leftovers)
        return Ended(self.asked or End.GUARD_LOST, code, leftovers)

    @property
    def _is_lost(self) -> bool:
        return not {"errno", "leftovers"} & set(self.facts)

    def _refusal(self, number: int) -> End:
        """Tell why the program could not be started."""
        if self.facts["is_folder"]:
            raise as_problem(OSError(number, ""), self.program.cwd)
        if number == errno.ENOENT:
            return End.NOT_FOUND
        if number in NOT_EXECUTABLE:
            return End.NOT_EXECUTABLE
        raise as_problem(OSError(number, ""), self.program.argv[0])

    def _read_status(self) -> None:
        chunk = os.read(self.guard.status, CHUNK)
        if not chunk:
            self.has_guard = False
            return
        *lines, self.told = (self.told + chunk).split(b"\n")
        for line in lines:
            self.facts.update(json.loads(line))

    def _read_output(self) -> bool:
        chunk = os.read(self.guard.output, CHUNK)
        if chunk:
            self.output(chunk)
            self.last_output = time.monotonic()
        elif self.has_guard:
            self.poller.unregister(self.guard.output)
        return bool(chunk)

    def _pause_seconds(self) -> float:
        """Return how long nothing can become due."""
        limits = (self.started + self.program.timeout_seconds, self.last_output + self.program.idle_seconds)
        due = min(self.next_ask, *limits) if self.deadline is None else self.deadline
        return min(max(0.0, due - time.monotonic()), ASK_SECONDS)

    def _check(self, now: float) -> None:
        """Tell the guard to end everything once there is a reason, and end the guard if it does not."""
        if self.deadline is not None:
            if now >= self.deadline:
                self.guard.process.kill()
        elif "exit_code" in self.facts:
            self.deadline = now + self.guard.patience_seconds
        elif (reason := self._reason(now)) is not None:
            self._stop(reason, now)

    def _reason(self, now: float) -> End | None:
        """Return why the program must not go on."""
        if now >= self.next_ask:
            self.next_ask = now + ASK_SECONDS
            if self.should_stop():
                return End.STOPPED
        if now - self.started >= self.program.timeout_seconds:
            return End.TIMED_OUT
        return End.SILENT if now - self.last_output >= self.program.idle_seconds else None

    def _stop(self, reason: End, now: float) -> None:
        self.asked = self.asked or reason
        self.deadline = self.deadline or now + self.guard.patience_seconds
        self.guard.write(b"!")


def _describe(program: Program) -> bytes:
    """Write down what the guard shall run; not on its command line, where everybody could read it."""
    pairs = [f"{name}={value}" for name, value in {**program.environ, RUN_MARK: program.run_id}.items()]
    texts = [str(len(program.argv)), program.cwd, *program.argv, *pairs]
    is_odd = any("\0" in text for text in texts) or any(not name or "=" in name for name in program.environ)
    if is_odd or not program.argv:
        raise as_problem(OSError(errno.EINVAL, ""), program.argv[:1])
    return b"\0".join(os.fsencode(text) for text in texts)


def _guard_environ(run_id: str) -> dict[str, str]:
    """Return the guard's own environment: its mark, and what Python itself may need to be found."""
    needed = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
    return {**needed, GUARD_MARK: run_id}


def _pipe(reading: contextlib.ExitStack, writing: contextlib.ExitStack) -> tuple[int, int]:
    """Make a pipe whose two ends are closed with whom they belong to."""
    reader, writer = os.pipe()
    reading.callback(os.close, reader)
    writing.callback(os.close, writer)
    return reader, writer


@contextlib.contextmanager
def _as_file(data: bytes) -> Iterator[IO[bytes]]:
    """Give bytes as a file without a name: no size blocks anybody, and its end is the end."""
    with tempfile.TemporaryFile() if data else open(os.devnull, "rb") as file:
        if data:
            file.write(data)
            file.seek(0)
        yield file


def _make_held(path: Path) -> int:
    """Make a liveness file that is locked before anybody can see the guard: passed on, the lock is the guard's."""
    import fcntl

    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd
