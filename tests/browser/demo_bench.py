"""The demo's repository as a place of work, with a server in front of it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from conftest import Program
from e2e.bench import Bench
from e2e.scripted_agents import Agent
from e2e.up import Up, end_leftovers


class DemoBench(Bench):
    """`aiflow demo`: a small program with the requests TODO-1 to TODO-8 and the built-in agent, in one language.

    `program` is a script that the program is started with, in place of the program itself.
    """

    program: tuple[str, ...] = ()

    def __init__(self, folder: Path, language: str, *, is_worked: bool = False, name: str = "todo") -> None:
        """Make it; with `is_worked` auto-run has worked through it, and some of it waits for a person."""
        folder.mkdir(exist_ok=True)
        self.root, self.state = folder / name, folder / "state"
        self.aiflow = Program(folder)
        own = {"XDG_STATE_HOME": str(self.state), "GIT_CONFIG_NOSYSTEM": "1", "AIFLOW_LANG": language}
        self.aiflow.environ |= own
        self._processes = []
        self.aiflow("demo", str(self.root), *(() if is_worked else ("--no-run",)), "--json")
        self.aiflow.cwd = self.root
        self.agent = Agent(folder / "agent", self.root)

    def start(
        self, *args: str, env: dict[str, str] | None = None, argv: list[str] | None = None
    ) -> subprocess.Popen[str]:
        """Start the program, or the script that stands in for it."""
        script = [sys.executable, *self.program, *args] if self.program else None
        return super().start(*args, env=env, argv=argv or script)


@contextlib.contextmanager
def serving(bench: Bench) -> Iterator[Up]:
    """Serve a place of work while the block lasts; nothing of it goes on after."""
    with contextlib.ExitStack() as after:
        after.callback(bench.close)
        after.callback(end_leftovers, bench)
        up = Up(bench)
        yield up
        end_leftovers(bench)  # the server would wait for a run that is held
        if up.process.poll() is None:
            up.end()


@contextlib.contextmanager
def demo_up(folder: Path, language: str, *, is_worked: bool = False) -> Iterator[Up]:
    """Serve a demo while the block lasts."""
    with serving(DemoBench(folder, language, is_worked=is_worked)) as up:
        yield up
