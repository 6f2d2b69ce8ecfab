"""What the run engine works with: every port, the settings and the words, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiflow.domain.quota import Patience
from aiflow.domain.run import RunLimits
from aiflow.domain.usage import Ceilings, Usage
from aiflow.settings import ROLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.run import Run
    from aiflow.domain.run_summary import TaskRef
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

    `interrupted` tells of a signal, `stop_code` what a run that ends for it stops with. `observe` is told of every
    saved change of a run, `warn` of what did not work beside it. `session` is what the auto-run a run belongs to has
    used in earlier runs, and its ceilings; `minutes_left` is how long that may still wait for anything. `task` is what
    is worked for, where that is one of the queue.
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
    stop_code: Callable[[], str] = lambda: "CANCELLED"
    observe: Callable[[Run], None] = lambda _run: None
    warn: Callable[[str], None] = lambda _text: None
    mask: Callable[[str], str] = str
    session: Callable[[], tuple[Usage, Ceilings]] = lambda: (Usage(), Ceilings())
    minutes_left: Callable[[], float | None] = lambda: None
    task: TaskRef | None = None

    @property
    def limits(self) -> RunLimits:
        """The limits of runs, from the settings."""
        spent, session_ceilings = self.session()
        return RunLimits(
            role_attempts=self.settings.integer("limits.role_attempts"),
            step_retries=self.settings.integer("limits.step_retries"),
            step_files=self.settings.integer("limits.step_files"),
            step_lines=self.settings.integer("limits.step_lines"),
            ceilings=Ceilings(
                cost_usd=self.settings.number("limits.run_cost_usd"),
                tokens=self.settings.integer("limits.run_tokens"),
                agent_calls=self.settings.integer("limits.run_agent_calls"),
                minutes=self.settings.number("limits.run_minutes"),
            ),
            session_ceilings=session_ceilings,
            spent=spent,
        )

    @property
    def agent_name(self) -> str:
        """The kind of agent that works, with those of the roles that have another."""
        usual = self.settings.text("agent.kind")
        kinds = {role: str(self.settings.for_role(role, "kind")) for role in ROLES}
        others = ", ".join(f"{role}: {kind}" for role, kind in kinds.items() if kind != usual)
        return f"{usual} ({others})" if others else usual

    @property
    def quota_patience(self) -> Patience:
        """How long a quota may be waited for: as the settings say, and not beyond the end of the auto-run."""
        return Patience(self.settings.number("limits.quota_wait_hours"), self.minutes_left())

    @property
    def test_commands(self) -> dict[str, str]:
        """The configured test commands by kind; an empty one is none."""
        commands = {kind: self.settings.text(f"tests.{kind}") for kind in ("unit", "e2e")}
        return {kind: command for kind, command in commands.items() if command.strip()}
