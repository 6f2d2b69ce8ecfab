"""The stub: real `claude` and `codex` whose model, on loopback, knows the solutions: plumbing, for nothing."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from suite import Task
from ways import Terms

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from e2e.model_server import ModelServer
from e2e.model_turns import Asked, Reply, Say, Shell, done, plan, verdict
from e2e.real_agents import RealHome

PROGRAMS = {"claude-code": "claude", "codex": "codex"}
KINDS = tuple(PROGRAMS)


class Stub:
    """A model that does the current task by its solution, whatever it is asked."""

    def __init__(self, models: ModelServer, home: RealHome) -> None:
        self._models = models
        self._home = home
        for name in PROGRAMS.values():
            home.install(name)

    def terms(self, kind: str) -> Terms:
        """Give a program that asks this model."""
        return Terms(kind, self._home.environ)

    def knows(self, task: Task) -> None:
        """Let the model know a task's solution."""
        copy = f"cp -R {shlex.quote(str(task.solution))}/. ."

        def reply(asked: Asked) -> Reply:
            if asked.role == "planner":
                return plan()
            if asked.role == "qa":
                return verdict()
            return Shell(copy) if not asked.results else done() if asked.role else Say("I have done it.")

        self._models.script = reply


@contextmanager
def stub(scratch: Path) -> Iterator[Stub]:
    """Give the stub for a while."""
    with ModelServer() as models:
        yield Stub(models, RealHome(scratch / "home", models.url))
