"""Watching one program from its start to the end of its guard (AGT-4, AGT-5): what it says, and its limits."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.adapters.processes import cgroups
from aiflow.adapters.processes.guard_notes import worktree_of
from aiflow.adapters.processes.leftovers import sweep, sweep_worktree
from aiflow.domain.programs import RUN_MARK, End, Ended
from aiflow.errors import as_problem

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from aiflow.domain.programs import Program

ASK_SECONDS = 0.2
CHUNK = 1 << 16
NOT_EXECUTABLE = frozenset({errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ETXTBSY, errno.ELOOP, errno.EISDIR})


@dataclass(frozen=True, slots=True)
class GuardAtWork:
    """A guard at work, and our ends of what leads to it; `said` are the pipes with what the program says."""

    process: subprocess.Popen[bytes]
    tell: int
    status: int
    said: tuple[int, ...]
    liveness: Path
    started_at: float | None
    patience_seconds: float
    cgroup: str | None

    def write(self, data: bytes) -> None:
        """Send it something; if it is gone meanwhile, the end of its status shows that."""
        with contextlib.suppress(BrokenPipeError):
            while data:
                data = data[os.write(self.tell, data) :]

    def close(self) -> None:
        """Release it: if it is still running, that makes it end everything."""
        for fd in (self.tell, self.status, *self.said):
            os.close(fd)
        self.process.wait()
        self.liveness.unlink(missing_ok=True)
        cgroups.remove(self.cgroup)


class Watch:
    """One run of a program, watched until its guard has come to its end."""

    def __init__(
        self,
        program: Program,
        guard: GuardAtWork,
        hear: Mapping[int, Callable[[bytes], None]],
        should_stop: Callable[[], bool],
    ) -> None:
        self.program = program
        self.guard = guard
        self.hear = hear
        self.should_stop = should_stop
        self.started = self.last_output = self.next_ask = time.monotonic()
        self.deadline: float | None = None
        self.asked: End | None = None
        self.told = b""
        self.facts: dict[str, int] = {}
        self.has_guard = True
        self.swept = 0
        self.poller = select.poll()
        for fd in (guard.status, *hear):
            self.poller.register(fd, select.POLLIN)

    def until_the_end(self) -> None:
        """Hand over output and watch the limits until the guard is gone, and everything with it."""
        while self.has_guard:
            for fd, _ in self.poller.poll(self._pause_seconds() * 1000):
                if fd == self.guard.status:
                    self._read_status()
                else:
                    self._read_output(fd)
            self._check(time.monotonic())
        # Without a subreaper, who forks twice gets away from the guard; without a guard everybody does.
        if self._is_lost or sys.platform != "linux":
            self.swept += cgroups.end_members(self.guard.cgroup, self.guard.process.pid)
            self.swept += sweep(RUN_MARK, self.program.run_id, self.guard.started_at)
            self.swept += sweep_worktree(worktree_of(self.program), self.program.run_id, self.guard.started_at)
        for fd in self.hear:
            os.set_blocking(fd, False)
            with contextlib.suppress(BlockingIOError):
                while self._read_output(fd):
                    pass

    def give_up(self) -> None:
        """End everything, whatever it still says."""
        self.hear = dict.fromkeys(self.hear, lambda _: None)
        self._stop(End.STOPPED, time.monotonic())
        self.until_the_end()

    def ended(self) -> Ended:
        """Return how it ended."""
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
        """Report why the program could not be started."""
        if self.facts["is_folder"]:
            raise as_problem(OSError(number, ""), self.program.cwd)
        if self.facts.get("is_unconfined"):
            return End.NOT_CONFINED
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

    def _read_output(self, fd: int) -> bool:
        chunk = os.read(fd, CHUNK)
        if chunk:
            self.hear[fd](chunk)
            self.last_output = time.monotonic()
        elif self.has_guard:
            self.poller.unregister(fd)
        return bool(chunk)

    def _pause_seconds(self) -> float:
        """Return how long nothing can become due."""
        limits = (self.started + self.program.timeout_seconds, self.last_output + self.program.idle_seconds)
        due = min(self.next_ask, *limits) if self.deadline is None else self.deadline
        return min(max(0.0, due - time.monotonic()), ASK_SECONDS)

    def _check(self, now: float) -> None:
        """Have the guard end everything once there is a reason, and end the guard if it does not."""
        if self.deadline is not None:
            if now >= self.deadline:
                self.guard.process.kill()
        elif "exit_code" in self.facts:
            self.deadline = now + self.guard.patience_seconds
        elif (reason := self._reason(now)) is not None:
            self._stop(reason, now)

    def _reason(self, now: float) -> End | None:
        """Return why the program must not continue."""
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
