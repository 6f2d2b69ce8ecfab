"""Calls of the programs by which services are managed: short, without a terminal, in plain English."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from aiflow.errors import EnvironmentProblemError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CALL_SECONDS = 150.0


class ManagerCalls:
    """Calls one program."""

    def __init__(self, program: str, environ: Mapping[str, str]) -> None:
        self._program = program
        self._environ = {**environ, "LC_ALL": "C"}

    def is_there(self) -> bool:
        """Return whether there is such a program."""
        return shutil.which(self._program, path=self._environ.get("PATH")) is not None

    def ask(self, *args: str) -> tuple[int, str]:
        """Call it; return its exit code and what it said."""
        found = shutil.which(self._program, path=self._environ.get("PATH"))
        if found is None:
            return 127, f"{self._program}: not found"
        try:
            done = subprocess.run(
                [found, *args],
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=CALL_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return 126, str(error)
        return done.returncode, done.stdout.strip()

    def do(self, *args: str) -> None:
        """Call it, or say what it said."""
        code, said = self.ask(*args)
        if code != 0:
            line = " ".join((self._program, *args))
            raise EnvironmentProblemError(
                reason_code="SERVICE_FAILED", command=line, problem=said or words("service.exit_code", code=code)
            )


def write_service_file(path: Path, data: bytes) -> bytes | None:
    """Write a service's file; return what was there before."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_bytes() if path.exists() else None
        temporary = path.with_name(f".{path.name}.new")
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        raise EnvironmentProblemError(path=str(path), problem=error.strerror or str(error)) from error
    return before
