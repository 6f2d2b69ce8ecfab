"""Running DynamoDB Local by Java (QUE-2a): detached, with a bare environment, for our key alone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

from aiflow.adapters.dynamo.local.folder import JAVA, LARGE_LOG_BYTES, Record
from aiflow.adapters.dynamo.local.health import problem_at
from aiflow.adapters.dynamo.local.java import bare_environment
from aiflow.adapters.dynamo.local.proof import by_process
from aiflow.adapters.processes.machine import boot_id, pid_namespace
from aiflow.adapters.processes.table import started_at
from aiflow.domain.queue.store_obstacles import ObstacleKind, Obstacles
from aiflow.errors import EnvironmentProblemError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from aiflow.adapters.dynamo.local.folder import StoreFolder

START_SECONDS = 60
END_SECONDS = 10
PORTS_TRIED = 5
_LOOK_SECONDS = 0.05
# The pid is recorded before Java begins: a process killed in between leaves a shell that ends without help, and
# never an unknown store.
_WHEN_TOLD = 'cd "$1" && unset OLDPWD && shift && umask 077 && read -r go && exec "$@" </dev/null'


class JavaStore(NamedTuple):
    """What is needed to run it: the Java program, and the folder that DynamoDB Local is in."""

    java: str
    library: Path
    environ: Mapping[str, str]

    def run(self, folder: StoreFolder, usual_port: int | None) -> Record:
        """Start it and wait until it answers; a port that somebody took meanwhile is left to them."""
        for port in free_ports(usual_port):
            said_before = folder.log.stat().st_size if folder.log.exists() else 0
            process, record = self._launch(folder, port)
            if self._is_up(folder, process, record):
                return record
            said = _said(folder, said_before)
            if "Address already in use" not in said:
                raise not_started(_left(process.returncode, said))
        raise not_started(Obstacles.of(ObstacleKind.NO_PORT))

    def move_data(self, folder: StoreFolder, old: str, new: str) -> None:
        """Give the database the name by which the new key finds it; no process has it open meanwhile."""
        alive = os.open(folder.alive, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(alive)
            folder.rename_data(old, new)
        finally:
            os.close(alive)

    def _launch(self, folder: StoreFolder, port: int) -> tuple[subprocess.Popen[bytes], Record]:
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
        options += [f"-XX:ErrorFile={folder.path}/crash.log", f"-Djava.io.tmpdir={folder.scratch}"]
        options += ["-Djava.library.path=./DynamoDBLocal_lib"]
        command = [self.java, *options, "-jar", "DynamoDBLocal.jar"]
        command += ["-port", str(port), "-dbPath", str(folder.data), "-disableTelemetry"]
        # The process that has this file open and locked uses the data; the kernel frees it when Java is gone.
        alive = os.open(folder.alive, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(alive)
            folder.clear_scratch()
            with open(folder.log, "ab", opener=_private) as log:
                process = subprocess.Popen(
                    ["/bin/sh", "-c", _WHEN_TOLD, "sh", str(self.library), *command],
                    env=bare_environment(self.environ),
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=(alive,),
                )
        finally:
            os.close(alive)
        began = started_at(process.pid)
        record = Record(JAVA, port, process.pid, began, boot_id(), pid_namespace=pid_namespace())
        assert process.stdin is not None
        with process.stdin as told:
            folder.write(record)
            told.write(b"go\n")
        return process, record

    def _is_up(self, folder: StoreFolder, process: subprocess.Popen[bytes], record: Record) -> bool:
        """Wait until it answers; False if it left."""
        key, until = folder.key() or "", time.monotonic() + START_SECONDS
        problem = Obstacles(())
        while process.poll() is None and time.monotonic() < until:
            found = problem_at(record.port, key, by_process(record))
            if found is None and process.poll() is None:
                process.returncode = 0  # it outlives us on purpose
                return True
            problem = found or problem
            time.sleep(_LOOK_SECONDS)
        if process.poll() is not None:
            return False
        end(record)
        process.wait()
        raise not_started(problem.and_also(ObstacleKind.WAITED, seconds=START_SECONDS))


def end(record: Record) -> bool:
    """End the process that was written down, if it is the same: asked to at first, then by force."""
    if not record.is_process_alive() or record.pid is None:
        return False
    for number, seconds in ((signal.SIGTERM, END_SECONDS), (signal.SIGKILL, END_SECONDS)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(record.pid, number)
            os.kill(record.pid, signal.SIGCONT)  # one that was paused hears it only then
        until = time.monotonic() + seconds
        while record.is_process_alive() and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        if not record.is_process_alive():
            break
    with contextlib.suppress(ChildProcessError):  # ours, if we started it
        os.waitpid(record.pid, os.WNOHANG)
    return True


def _said(folder: StoreFolder, since: int) -> str:
    """Return what was added to the log."""
    with open(folder.log, "rb") as file:
        file.seek(since)
        return file.read(LARGE_LOG_BYTES).decode("utf-8", "replace")


def _left(code: int, said: str) -> Obstacles:
    """Say how it ended, with its last words."""
    words = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), None)
    if words is None:
        return Obstacles.of(ObstacleKind.LEFT_SILENT, code=code)
    return Obstacles.of(ObstacleKind.LEFT, code=code, words=words[:300])


def not_started(problem: Obstacles) -> EnvironmentProblemError:
    """Name why it does not answer."""
    return EnvironmentProblemError(reason_code="STORE_NOT_STARTED", problem=problem)


def free_ports(usual: int | None) -> list[int]:
    """Return ports to try: the one it had before if it is free now, then others that are free."""
    ports = [usual] if usual and is_free(usual) else []
    while len(ports) < PORTS_TRIED:
        with socket.socket() as probe:
            probe.bind(("", 0))
            ports.append(int(probe.getsockname()[1]))
    return ports


def is_free(port: int) -> bool:
    """Return whether a port is free, on every interface."""
    with socket.socket() as probe:
        # As Java does: connections that were just closed do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except (OSError, OverflowError):
            return False
    return True


def _lock(alive: int) -> None:
    try:
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise not_started(Obstacles.of(ObstacleKind.DATA_IN_USE)) from None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
