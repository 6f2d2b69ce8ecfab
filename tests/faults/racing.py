"""Processes of aiflow that begin at the same moment, and what each of them said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from faults.killing import Scene

# Everything is ready before anybody starts; the end of the standard input, the same for all, is the shot.
RACER = """
import importlib, pkgutil, sys
import aiflow, aiflow.cli.main
for module in pkgutil.walk_packages(aiflow.__path__, "aiflow."):
    if not module.name.endswith("__main__") and ".agents.acp." not in module.name:  # a program of its own, and slow
        importlib.import_module(module.name)
print("ready", flush=True)
sys.stdin.read()
aiflow.cli.main.main(sys.argv[1:])
"""


class Race:
    """Processes of aiflow that begin at the same moment."""

    def __init__(self, scene: Scene, commands: list[tuple[str, ...]]) -> None:
        shot, trigger = os.pipe()
        self.racers = [
            subprocess.Popen(
                [sys.executable, "-c", RACER, *command, "--json"],
                cwd=scene.root,
                env=scene.environ,
                stdin=shot,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for command in commands
        ]
        os.close(shot)
        for racer in self.racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        os.close(trigger)

    def running(self) -> list[subprocess.Popen[str]]:
        return [racer for racer in self.racers if racer.poll() is None]

    def results(self) -> list[tuple[int, dict[str, Any]]]:
        """Wait for all, and return how each ended and what it said."""
        return [finish(racer) for racer in self.racers]


def finish(process: subprocess.Popen[str], seconds: float = 120) -> tuple[int, dict[str, Any]]:
    """Wait for a process of aiflow, and return its exit code and what it said."""
    out, err = process.communicate(timeout=seconds)
    assert "Traceback" not in err, err
    return process.returncode, json.loads(out) if out else {}


def refusals(results: list[tuple[int, dict[str, Any]]]) -> list[tuple[int, str, str]]:
    """Return how the losers were refused: exit code, reason, and the run that is in their way."""
    errors = [(code, answer["error"]) for code, answer in results if "error" in answer]
    return [(code, error["reason_code"], error["context"]["run_id"]) for code, error in errors]
