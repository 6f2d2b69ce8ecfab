"""Running external programs, each under a guard of its own (AGT-4, AGT-5).

The guard owns the program and everything it starts; `watch.py` reads the output, watches the limits, and asks the
guard to end everything. If we are killed, the end of the control pipe means the same.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

from aiflow.adapters.files.atomic_files import STATE_DIR, state_dir, translated
from aiflow.adapters.processes import table
from aiflow.adapters.processes.cgroups import cgroup_for
from aiflow.adapters.processes.compiled import ready_to_run
from aiflow.adapters.processes.guard_notes import SUFFIX, name_of, note_of, worktree_of
from aiflow.adapters.processes.watch import GuardAtWork, Watch
from aiflow.domain.programs import GUARD_MARK, RUN_MARK
from aiflow.errors import as_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aiflow.domain.programs import Ended, Program
    from aiflow.ports import Hear

FOLDER = Path(__file__).parent
GUARD = str(FOLDER / "guard.py")
GRACE_SECONDS = 2.0
# A guard that has not come to its end so long after the grace is stopped or stuck, and is ended itself.
PATIENCE_SECONDS = 8.0


class GuardedProcesses:
    """Runs programs so that nothing of them outlives the call."""

    def __init__(
        self,
        guards_folder: str,
        grace_seconds: float = GRACE_SECONDS,
        cgroup_for: Callable[[str], str | None] = cgroup_for,
    ) -> None:
        self._folder = Path(guards_folder).absolute()
        self._grace_seconds = grace_seconds
        self._cgroup_for = cgroup_for

    def run(self, program: Program, output: Hear, should_stop: Callable[[], bool], errors: Hear | None = None) -> Ended:
        """Run a program to its end, what it says handed over as it comes; `should_stop` is asked every 0.2 s.

        Without `errors`, its standard error is among the output.
        """
        description = _describe(program)
        listeners = (output,) if errors is None else (output, errors)
        with translated(self._folder):
            guard = self._start_guard(program, len(description), len(listeners))
        try:
            watch = Watch(program, guard, dict(zip(guard.said, listeners, strict=True)), should_stop)
            try:
                guard.write(description)
                watch.until_the_end()
            except BaseException:
                watch.give_up()
                raise
            return watch.ended()
        finally:
            guard.close()

    @staticmethod
    def confinement() -> str | None:
        """Return what confines programs on this machine, None if nothing does."""
        from aiflow.adapters.processes.confine import is_available

        return "landlock" if is_available() else None

    def _start_guard(self, program: Program, length: int, pipes: int) -> GuardAtWork:
        """Start a guard that waits for its program; with two pipes, the second is for standard error."""
        with contextlib.ExitStack() as given, contextlib.ExitStack() as kept:
            control, tell = _pipe(given, kept)
            status, report = _pipe(kept, given)
            said, written = zip(*(_pipe(kept, given) for _ in range(pipes)), strict=True)
            stdin = given.enter_context(_as_file(program.stdin))
            liveness = self._make_folder() / f"{program.run_id}.{os.urandom(6).hex()}{SUFFIX}"
            alive = _make_held(liveness)
            given.callback(os.close, alive)
            kept.callback(liveness.unlink, missing_ok=True)
            passed = (control, report, alive)
            cgroup = self._cgroup_for(name_of(str(liveness)))
            rest = (*passed, liveness, self._grace_seconds, length, FOLDER, cgroup or "")
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", ready_to_run(GUARD), *map(str, rest)],
                env=_guard_environ(program.run_id),
                cwd="/",
                stdin=stdin,
                stdout=written[0],
                stderr=written[-1],
                pass_fds=passed,
                start_new_session=True,
            )
            kept.pop_all()
            started_at = table.started_at(process.pid)
            with contextlib.suppress(OSError):  # on a full disk the guard is still known by its mark
                os.write(alive, note_of(process.pid, started_at, worktree_of(program), cgroup))
        patience = self._grace_seconds + PATIENCE_SECONDS
        return GuardAtWork(process, tell, status, said, liveness, started_at, patience, cgroup)

    def _make_folder(self) -> Path:
        """Make the guards' folder, hidden from git where it is part of a checkout's state."""
        if self._folder.parent.name == STATE_DIR:
            return state_dir(self._folder.parent.parent, self._folder.name)
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder


def _describe(program: Program) -> bytes:
    """Write the program for the guard; not on its command line, where everybody could read it."""
    pairs = [f"{name}={value}" for name, value in {**program.environ, RUN_MARK: program.run_id}.items()]
    writable = program.writable or ()
    confined = -1 if program.writable is None else len(writable)
    texts = [str(len(program.argv)), str(confined), program.cwd, *program.argv, *writable, *pairs]
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
