"""Processes of aiflow that begin at the same moment, and what each of them said."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from typing import Any

from faults.killing import Scene

# Everything is imported once, and each racer forked. All are ready before anybody starts; the end of the standard
# input, the same for all, is the shot. How each ended is said in a line.
RACERS = """
import gc, importlib, json, os, pkgutil, sys
import yaml
import aiflow, aiflow.cli.main
for module in pkgutil.walk_packages(aiflow.__path__, "aiflow."):
    if not module.name.endswith("__main__") and ".agents.acp." not in module.name:  # a program of its own, and slow
        importlib.import_module(module.name)
gc.collect()
gc.freeze()

def race(number, argv):
    for fd, name in ((1, "out"), (2, "err")):
        opened = os.open(f"{folder}/{name}.{number}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(opened, fd)
        os.close(opened)
    os.write(ready_end, b".")
    os.closerange(3, 64)
    sys.stdin.read()
    aiflow.cli.main.main(argv)

folder, commands = sys.argv[1], json.loads(sys.argv[2])
ready, ready_end = os.pipe()
numbers = {}
for number, argv in enumerate(commands):
    child = os.fork()
    if child == 0:
        try:
            race(number, argv)
        finally:
            os._exit(99)
    numbers[child] = number
for _ in commands:
    os.read(ready, 1)
print("ready", flush=True)
while numbers:
    child, status = os.wait()
    print(numbers.pop(child), os.waitstatus_to_exitcode(status), flush=True)
"""

PATIENCE_SECONDS = 120


class Race:
    """Processes of aiflow that begin at the same moment."""

    def __init__(self, scene: Scene, commands: list[tuple[str, ...]]) -> None:
        self._folder, self._count = scene.folder, len(commands)
        self._codes: dict[int, int] = {}
        shot, trigger = os.pipe()
        argvs = json.dumps([[*command, "--json"] for command in commands])
        self._starter = subprocess.Popen(
            [sys.executable, "-c", RACERS, str(self._folder), argvs],
            cwd=scene.root,
            env=scene.environ,
            stdin=shot,
            stdout=subprocess.PIPE,
            bufsize=0,  # nothing is waiting in a buffer that `select` does not see
        )
        os.close(shot)
        assert self._starter.stdout is not None
        self._told = self._starter.stdout
        assert self._told.readline() == b"ready\n"
        os.close(trigger)

    def until_one_is_left(self) -> None:
        """Wait until all others have ended."""
        while len(self._codes) < self._count - 1:
            self._hear()

    def results(self) -> list[tuple[int, dict[str, Any]]]:
        """Wait for all, and return how each ended and what it said."""
        while len(self._codes) < self._count:
            self._hear()
        self._told.close()
        assert self._starter.wait(timeout=60) == 0
        return [self._result(number) for number in range(self._count)]

    def _hear(self) -> None:
        assert select.select([self._told], [], [], PATIENCE_SECONDS)[0], f"only these have ended: {self._codes}"
        number, code = map(int, self._told.readline().split())
        self._codes[number] = code

    def _result(self, number: int) -> tuple[int, dict[str, Any]]:
        out, err = ((self._folder / f"{name}.{number}").read_text() for name in ("out", "err"))
        assert "Traceback" not in err, err
        return self._codes[number], json.loads(out) if out else {}


def finish(process: subprocess.Popen[str], seconds: float = 120) -> tuple[int, dict[str, Any]]:
    """Wait for a process of aiflow, and return its exit code and what it said."""
    out, err = process.communicate(timeout=seconds)
    assert "Traceback" not in err, err
    return process.returncode, json.loads(out) if out else {}


def refusals(results: list[tuple[int, dict[str, Any]]]) -> list[tuple[int, str, str]]:
    """Return how the losers were refused: exit code, reason, and the run that is in their way."""
    errors = [(code, answer["error"]) for code, answer in results if "error" in answer]
    return [(code, error["reason_code"], error["context"]["run_id"]) for code, error in errors]
