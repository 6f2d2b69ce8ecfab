"""What the run engine works with: every port, the settings and the words, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.domain.run import RunLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.run import Run
    from aiflow.messages import Texts
    from aiflow.ports import (
        Agents,
        Clock,
        Control,
        Housekeeping,
        Journal,
        Locks,
        Merging,
        Notifier,
        Remote,
        RequestSource,
        RunStore,
        Workshop,
        Workspaces,
    )
    from aiflow.settings import Settings
    from aiflow.usecases.read_backlog import BacklogSources


@dataclass(frozen=True, slots=True)
class Engine:
    """One checkout's engine.

    `interrupted` tells of a signal; `observe` is told of every saved change of a run, `warn` of what did not work
    beside it.
    """

    backlog: BacklogSources
    source: RequestSource
    runs: RunStore
    locks: Locks
    control: Control
    workspaces: Callable[[str | None], Workspaces]
    remote: Remote
    merging: Merging
    notifier: Notifier
    housekeeping: Housekeeping
    agents: Agents
    workshop: Workshop
    journal: Journal
    clock: Clock
    new_run_id: Callable[[str | None], str]
    settings: Settings
    texts: Texts
    interrupted: Callable[[], bool] = lambda: False
    observe: Callable[[Run], None] = lambda _run: None
    warn: Callable[[str], None] = lambda _text: None
    mask: Callable[[str], str] = str

    @property
    def limits(self) -> RunLimits:
        """The limits of runs, from the settings."""
        return RunLimits(
            role_attempts=self.settings.integer("limits.role_attempts"),
            step_retries=self.settings.integer("limits.step_retries"),
            step_files=self.settings.integer("limits.step_files"),
            step_lines=self.settings.integer("limits.step_lines"),
        )

    @property
    def test_commands(self) -> dict[str, str]:
        """The configured test commands by kind; an empty one is none."""
        commands = {kind: self.settings.text(f"tests.{kind}") for kind in ("unit", "e2e")}
        return {kind: command for kind, command in commands.items() if command.strip()}
