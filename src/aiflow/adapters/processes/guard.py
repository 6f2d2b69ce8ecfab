"""The guard of one external program (AGT-5): whatever happens to aiflow, nothing that program started is left running.

`launch.py` starts it as a separate program, `python -I -S guard.py CONTROL STATUS ALIVE PATH GRACE LENGTH FOLDER
CGROUP`. It has one thread and imports nothing slow (no json, signal, ctypes), and of aiflow only the modules in FOLDER,
when it needs them. Only here is `waitpid(-1)` right: as child subreaper it inherits orphans. CONTROL is a pipe: its
first LENGTH bytes are the program; any further byte, or its end (our runner is gone), means: end everything. STATUS is
a pipe for what happened, one JSON object a line. ALIVE is the liveness file PATH, which the guard holds with `flock`:
free means that it is gone. GRACE is the seconds from TERM to KILL. If CGROUP is given, the guard creates it.
"""

from __future__ import annotations

import _ctypes
import _signal as signal  # type: ignore[import-not-found]
import errno
import os
import select
import sys
import time
from _collections_abc import Callable  # noqa: TC003 (typing takes longer to import than everything here)

# Given this time, whatever still writes the program's last output (a `tee`, a pipeline's tail) exits normally.
SETTLE_SECONDS = 0.2
IS_LINUX = sys.platform == "linux"

Processes = dict[int, tuple[int, int, bool]]  # pid -> parent, group, is it a zombie


class Suppress:
    """`contextlib.suppress`, whose module alone takes longer to import than the rest."""

    def __init__(self, *kinds: type[BaseException]) -> None:
        self.kinds = kinds

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self.kinds)


class Guard:
    """Watches one program, and ends what it leaves running."""

    def __init__(self, control: int, status: int, grace_seconds: float, cgroup: str) -> None:
        self.control, self.status, self.grace_seconds, self.cgroup = control, status, grace_seconds, cgroup
        self.child = 0
        self.has_exited = self.is_own_end = self.is_told = False
        self.is_subreaper = become_subreaper()
        self.groups: set[int] = set()
        self.wake, wake_end = os.pipe()
        for fd in (self.wake, wake_end):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_term)

    def report(self, line: str) -> None:
        """Report to the runner, if it is still running."""
        with Suppress(OSError):
            os.write(self.status, line.encode() + b"\n")

    def read_program(self, length: int) -> list[bytes] | None:
        """Read the program to run; None if the runner is gone meanwhile."""
        data = b""
        while len(data) < length:
            chunk = os.read(self.control, length - len(data))
            if not chunk:
                return None
            data += chunk
        self.wait(0)  # the runner may be gone after the last byte
        return None if self.is_told else data.split(b"\0")

    def start(self, parts: list[bytes]) -> bool:
        """Start the program in its own session; if that fails, report why and return False."""
        count, confined, cwd = int(parts[0]), int(parts[1]), parts[2]
        argv, rest = parts[3 : 3 + count], parts[3 + count :]
        writable, pairs = (rest[:confined], rest[confined:]) if confined >= 0 else (None, rest)
        environ = dict(pair.split(b"=", 1) for pair in pairs)
        is_there = False
        try:
            os.chdir(cwd)
            is_there = True
            self._spawn(argv, environ, writable)
        except OSError as error:
            self.report(f'{{"errno": {error.errno}, "is_folder": {int(not is_there)}}}')
            return False
        # From here on only what we started holds the output open, and we don't keep any folder busy.
        os.chdir("/")
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        return True

    def _spawn(self, argv: list[bytes], environ: dict[bytes, bytes], writable: list[bytes] | None) -> None:
        """Start the program; in a cgroup or confined, it is a fork of ours first, which reports what it cannot do."""
        paths = candidates(argv[0], environ.get(b"PATH", os.fsencode(os.defpath)))
        if writable is None and not self.cgroup:
            usual = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
            self.child = first_that_starts(
                paths, lambda path: os.posix_spawn(path, argv, environ, setsid=True, setsigdef=usual)
            )
        else:
            become = lambda path: os.execve(path, argv, environ)  # noqa: E731, S606
            start = __import__("forking").start
            self.child = start(self.cgroup, writable, lambda: first_that_starts(paths, become), self.report)
        self.groups.add(self.child)

    def watch(self) -> None:
        """Wait for the program's end, or for the order to end it."""
        while not self.has_exited and not self.is_told:
            self.wait(None)
            self.reap()
        settled = time.monotonic() + SETTLE_SECONDS
        while not self.is_told and not self.reap() and time.monotonic() < settled:
            self.wait(max(0.0, settled - time.monotonic()))

    def end_everything(self) -> int:
        """TERM, then KILL, until no child is left; return how many processes there were."""
        kill_from = time.monotonic() + self.grace_seconds
        found = 0 if self.is_over() else sum(not is_zombie for _, is_zombie in self.family().values())
        asked: set[int] = set()
        pause = 0.002
        while not self.is_over():
            if time.monotonic() < kill_from:
                asked |= self._ask(asked)
            else:
                self._kill()
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        return found

    def _ask(self, asked: set[int]) -> set[int]:
        """Send TERM to processes that have not had it; a stopped process gets it only when it continues."""
        fresh = [pid for pid in self.family() if pid not in asked]
        for pid in fresh:  # parents first: a shell must not outlive what it waits for
            send(pid, signal.SIGTERM)
            send(pid, signal.SIGCONT)
        return set(fresh)

    def _kill(self) -> None:
        """Send KILL, by group if possible: no process of a group can escape that by forking."""
        own = os.getpgid(0)
        for pid, (group, _) in self.family().items():
            if group not in (own, 0, 1):
                send(-group, signal.SIGKILL)
            send(pid, signal.SIGKILL)
        # A process that forks and exits faster than we can list all is always an orphan, and so our child.
        for _ in range(100):
            if self.reap():
                return
            for child in own_children():
                send(child, signal.SIGKILL)

    def family(self) -> dict[int, tuple[int, bool]]:
        """Return our descendants, parents first: group, and whether it is a zombie (whose threads may still run).

        If we don't inherit orphans, processes in a group that was ours count, too.
        """
        processes = look()
        ours = below(processes, {os.getpid()})
        if not self.is_subreaper:
            self.groups &= {group for _, group, _ in processes.values()}
            roots = {pid for pid, (_, group, _) in processes.items() if group in self.groups}
            ours += [*roots, *below(processes, roots)]
        found = {pid: processes[pid][1:] for pid in ours if pid != os.getpid()}
        self.groups |= {group for group, _ in found.values()} - {os.getpgid(0)}
        return found

    def is_over(self) -> bool:
        """Return whether nothing is left."""
        return self.reap() and (self.is_subreaper or all(is_zombie for _, is_zombie in self.family().values()))

    def reap(self) -> bool:
        """Collect children that have ended; True if no child is left."""
        for _ in range(1000):  # a fork bomb makes them faster than they can be collected
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self.child:
                self.has_exited = True
                self.child = 0  # the number may be somebody else's now
                self.is_own_end = not self.is_told
                code = os.waitstatus_to_exitcode(status)
                self.report(f'{{"exit_code": {code}, "is_told": {int(self.is_told)}}}')
        return False

    def wait(self, seconds: float | None) -> None:
        """Wait for a signal or for the runner."""
        poller = select.poll()
        poller.register(self.wake, select.POLLIN)
        if not self.is_told:
            poller.register(self.control, select.POLLIN)
        for fd, _ in poller.poll(None if seconds is None else seconds * 1000):
            if fd == self.control:
                self.is_told = True  # a byte, or the end: both mean the same
            else:
                with Suppress(BlockingIOError):
                    os.read(self.wake, 4096)

    def _on_term(self, *_: object) -> None:
        self.is_told = True


def become_subreaper() -> bool:
    """Make every orphan below us our child; False if the system cannot do that."""
    if not IS_LINUX:
        return False
    # What ctypes does, without its 6 ms; typeshed does not know that None is the program itself.
    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
    return bool(_ctypes.call_function(prctl, (36, 1, 0, 0, 0)) == 0)


def candidates(name: bytes, path: bytes) -> list[bytes]:
    """Return where a program may be, without relative entries of PATH: they would be the worktree's."""
    folders = [folder for folder in path.split(b":") if folder.startswith(b"/")] if name else []
    return [name] if b"/" in name else [folder + b"/" + name for folder in folders]


def first_that_starts(paths: list[bytes], start: Callable[[bytes], int]) -> int:
    """Start the first of these programs that can be started; if none can, raise the most useful error."""
    worst = errno.ENOENT
    for path in paths:
        try:
            return start(path)
        except (FileNotFoundError, NotADirectoryError):
            # It exists but is "not found": the interpreter that its first line names is missing.
            worst = errno.EACCES if os.path.lexists(path) else worst
        except PermissionError:
            worst = errno.EACCES
    raise OSError(worst, os.strerror(worst))


def send(whom: int, what: int) -> None:
    """Send a signal to a process or (negative) a group that may be gone already, or not ours to signal."""
    with Suppress(ProcessLookupError, PermissionError):
        os.kill(whom, what)


def look() -> Processes:
    """Return all processes of this machine: from Linux's /proc, elsewhere from `ps`."""
    while not IS_LINUX:
        with Suppress(BlockingIOError):  # no room for one more process at the moment
            return dict(__import__("with_ps").look())
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with Suppress(OSError, IndexError), open(f"/proc/{name}/stat", "rb", buffering=0) as file:
            fields = file.read().rpartition(b")")[2].split()  # a program's name may hold spaces and parentheses
            found[int(name)] = (int(fields[1]), int(fields[2]), fields[0] in b"ZXx")
    return found


def own_children() -> list[int]:
    """Return our children, much faster than by listing all processes; none if the system cannot say."""
    with Suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children", "rb", buffering=0) as file:
        return [int(pid) for pid in file.read().split()]
    return []


def below(processes: Processes, roots: set[int]) -> list[int]:
    """Return everything below some processes, parents before their children."""
    found: list[int] = []
    fresh = roots
    while fresh:
        fresh = {pid for pid, (parent, _, _) in processes.items() if parent in fresh}.difference(found)
        found += fresh
    return found


def main(arguments: list[str]) -> None:
    """Guard one program from its start to the end of everything it started."""
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # whatever our runner's thread blocks; the program inherits it
    sys.path.append(arguments[6])
    control, status, alive = (int(each) for each in arguments[:3])
    for fd in (control, status, alive):
        os.set_inheritable(fd, False)  # noqa: FBT003
    guard = Guard(control, status, float(arguments[4]), arguments[7])
    try:
        parts = guard.read_program(int(arguments[5]))
        if parts is not None and guard.start(parts):
            try:
                guard.watch()
            finally:
                is_own_end = guard.is_own_end
                found = guard.end_everything()
                guard.report(f'{{"leftovers": {found if is_own_end else 0}}}')
    finally:
        with Suppress(FileNotFoundError):
            os.unlink(arguments[3])


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # a tidy interpreter would take its time
