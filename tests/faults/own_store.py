"""A DynamoDB Local of one test's own, with its data on the disk: to be killed and started again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import dynamo_keeper


class OwnStore:
    """The process; its address stays the same."""

    def __init__(self, folder: Path) -> None:
        self.port = dynamo_keeper.free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command, cwd = dynamo_keeper.java_command(self.port, self._folder, "-dbPath", str(self._folder))
        self._process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        dynamo_keeper.wait_for(self.port, self._process)

    def kill(self) -> None:
        """End it without a warning."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
