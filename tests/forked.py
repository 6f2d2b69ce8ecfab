"""The program as a process of its own that starts at once: forked from one in which everything is imported.

Most of a call's time went into the start of an interpreter and its imports, thousands of times over. A forked call has
its own process, folder, environment and streams all the same. It cannot have what an interpreter decides at its start,
so whoever wants that (`can_fork` is False) starts a new one.

Run as a program, this is the process that forks: each connection brings a call and its three streams.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import marshal
import os
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

# What is read when an interpreter starts, and the marks that are looked for in the environment a process started with.
_READ_AT_START = ("PYTHON", "LC_", "LD_", "AIFLOW_RUN_", "AIFLOW_GIT_", "AIFLOW_GUARD_")
# A forked process has nothing to compile and opens its own streams: it is as if it had never heard of these.
_NOT_INHERITED = frozenset({"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"})
_NAMED_LATE = (
    *("encodings.ascii", "encodings.utf_8_sig"),
    *("botocore.config", "botocore.endpoint", "botocore.loaders", "botocore.session"),
    *("rich.console", "rich.live", "rich.table", "rich.text", "difflib", "uuid", "yaml", "encodings.idna"),
)
_USER = os.geteuid()
_guard = threading.Lock()
_parents: dict[int, Parent] = {}


def can_fork(environ: Mapping[str, str]) -> bool:
    """Tell whether a forked process is the same as one that starts with this environment, as whoever we are now."""
    ours = {name: value for name, value in os.environ.items() if value and name.startswith(("PYTHON", "LD_"))}
    wanted = {name: value for name, value in environ.items() if name.startswith(_READ_AT_START)}
    wanted = {name: value for name, value in wanted.items() if value or not name.startswith("PYTHON")}
    is_same = wanted.items() <= ours.items() and ours.keys() - wanted.keys() <= _NOT_INHERITED
    return is_same and environ.get("LANG", "").endswith("UTF-8") and os.geteuid() == _USER


# Hands its streams over, waits, and ends as the call did. What `socket` and `json` import takes longer than all that.
_CLIENT = """#!{python} -IS
import _socket, marshal, os, sys
os.umask(mask := os.umask(0o077))
line = _socket.socket(_socket.AF_UNIX)
line.connect({address!r})
streams = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (0, 1, 2))
line.sendmsg([b"call"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
job = marshal.dumps(dict(argv=sys.argv[1:], cwd=os.getcwd(), environ=dict(os.environ), umask=mask))
line.sendall(len(job).to_bytes(8, "big") + job)
told = b""
while told.count(b"\\n") < 2:
    more = line.recv(64)
    assert more, "whoever forks is gone"
    told += more
code = int(told.split()[1])
sys.exit(code if code >= 0 else 128 - code)
"""


def write_program(folder: Path) -> None:
    """Write `aiflow` into a folder, for shells to find: a small program by which the call is forked."""
    folder.mkdir()
    program = folder / "aiflow"
    program.write_text(_CLIENT.format(python=sys.executable, address=_parent().address))
    program.chmod(0o755)


def call(argv: list[str], stdin: str, cwd: str, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Call the program and wait for its end and that of its output."""
    with Process(argv, cwd, environ, stdin=subprocess.PIPE) as process:
        try:
            texts = process.communicate(stdin, timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(argv, process.returncode, *texts)


class Process(subprocess.Popen[str]):
    """The program, forked: everything that a `Popen` can do, but that another process is its parent."""

    def __init__(
        self,
        argv: list[str],
        cwd: str,
        environ: Mapping[str, str],
        stdin: int = subprocess.DEVNULL,
        out: int = subprocess.PIPE,
    ) -> None:
        super().__init__(argv, cwd=cwd, env=environ, stdin=stdin, stdout=out, stderr=out, encoding="utf-8")

    def _execute_child(self, argv: list[str], *more: Any) -> None:
        """Let it be forked; its ends of the pipes, or its terminal, are handed over and closed here."""
        cwd, environ = more[4:6]
        streams = more[9], more[12], more[14]
        os.umask(mask := os.umask(0o077))
        self._line = socket.socket(socket.AF_UNIX)
        self._line.connect(_parent().address)
        socket.send_fds(self._line, [b"call"], streams)
        plain = {str(name): str(value) for name, value in environ.items()}
        job = marshal.dumps({"argv": [str(each) for each in argv], "cwd": str(cwd), "environ": plain, "umask": mask})
        self._line.sendall(len(job).to_bytes(8, "big") + job)
        self._told = self._line.makefile()
        self.pid = int(self._told.readline())
        self._child_created = True
        for stream in set(streams):
            os.close(stream)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """Hear how it ended, as `waitpid` would tell it."""
        if wait_flags & os.WNOHANG and not select.select([self._line], [], [], 0)[0]:
            return 0, 0
        code = int(self._told.readline())
        self._told.close()
        self._line.close()
        return self.pid, -code if code < 0 else code << 8

    def _internal_poll(self, *_: object, **__: object) -> int | None:
        pid, status = (0, 0) if self.returncode is not None else self._try_wait(os.WNOHANG)
        if pid:
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def _parent() -> Parent:
    with _guard:
        return _parents.get(os.getpid()) or _parents.setdefault(os.getpid(), Parent())


class Parent:
    """The process that forks, as whoever calls the program sees it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="aiflow-forked-", ignore_cleanup_errors=True)
        self.address = os.path.join(self._folder.name, "door")
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("AIFLOW", "LC_", "LANG"))}
        self._process = subprocess.Popen(
            [sys.executable, __file__, self.address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environ, "LANG": "C.UTF-8"},
        )
        atexit.register(self.close)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)
        self._folder.cleanup()


def serve(address: str) -> None:
    """Fork for each connection, until whoever started this is gone."""
    import aiflow

    names = [module.name for module in pkgutil.walk_packages(aiflow.__path__, "aiflow.")]
    for name in (*names, *_NAMED_LATE):
        if not name.endswith("__main__") and ".agents.acp." not in name:  # a program of its own, and slow
            importlib.import_module(name)
    _know_dynamo()
    _warm_up()
    gc.collect()
    gc.freeze()  # else each child copies every page of it when its own collector looks through it
    wake, wake_end = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(wake_end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
    lines: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen(16)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([door, sys.stdin, wake], [], [])
            if sys.stdin in ready:
                return
            if wake in ready:
                os.read(wake, 4096)
                _tell_who_ended(lines)
            if door in ready:
                line, _ = door.accept()
                if child := _fork(line):
                    lines[child] = line


def _tell_who_ended(lines: dict[int, socket.socket]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with lines.pop(ended[0]) as line, contextlib.suppress(OSError):  # the caller may be gone
                line.sendall(b"%d\n" % os.waitstatus_to_exitcode(ended[1]))


def _warm_up() -> None:
    """Let the interpreter adapt itself to what every call does: each child would copy every page that this changes."""
    import aiflow.cli.main
    from aiflow.cli.session import use_texts
    from aiflow.messages import Texts

    folder = tempfile.mkdtemp(prefix="aiflow-forked-")
    os.mkdir(os.path.join(folder, "requests"))
    usual = (["--help"], ["--version"], ["next", "--json"], ["list"], ["why", "RQ-1"], ["set", "RQ-1", "status=done"])
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        for language in (*("ja", "en") * 5,):
            use_texts(Texts(language))
            for argv in usual:
                aiflow.cli.main.run(["-C", folder, *argv])
    shutil.rmtree(folder)


def _know_dynamo() -> None:
    """Read boto3's description of DynamoDB once: that takes longer than most calls do."""
    from aiflow.adapters.dynamo.client import StoreAddress, bare_client

    bare_client(StoreAddress("http://127.0.0.1:9", "us-east-1", "nobody", "nothing"))


def _fork(line: socket.socket) -> int:
    """Fork for one call and say who that is; 0 if whoever called was killed. The child does not come back."""
    _, fds, _, _ = socket.recv_fds(line, 4, 3)
    with line.makefile("rb") as words:
        size = int.from_bytes(words.read(8), "big")
        job = words.read(size)
    is_whole = 0 < size == len(job)
    child = os.fork() if is_whole else 0
    if is_whole and child == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _become(marshal.loads(job), fds)
    for fd in fds:
        os.close(fd)
    with contextlib.suppress(OSError):
        line.sendall(b"%d\n" % child)
    return child


def _become(job: dict[str, Any], fds: list[int]) -> NoReturn:
    """Be the program, as `python -m aiflow` in that folder."""
    import aiflow.cli.main

    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    os.closerange(3, 1024)
    sys.stdin, sys.stdout, sys.stderr = (
        open(fd, mode, 1 if fd == 2 else -1, encoding="utf-8", closefd=False)  # noqa: SIM115 - for the whole process
        for fd, mode in enumerate("rww")
    )
    os.chdir(job["cwd"])
    os.umask(job["umask"])
    os.environ.clear()
    os.environ.update(job["environ"])
    time.tzset()
    sys.argv = [aiflow.cli.main.__file__, *job["argv"]]
    sys.path[0] = job["cwd"]
    try:
        aiflow.cli.main.main(job["argv"])
    except SystemExit as left:
        aiflow.cli.main.leave(left.code if isinstance(left.code, int) else 0)
    except BaseException:  # noqa: BLE001 - as an interpreter does at its end
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    try:
        serve(sys.argv[1])
    finally:  # whoever started this may have been killed
        shutil.rmtree(os.path.dirname(sys.argv[1]), ignore_errors=True)
