"""What the run engine works with, by how long it lasts: the checkout's ports, a caller's voice, a run's charge."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self

from aiflow.domain.agents.ceilings import Ceilings
from aiflow.domain.agents.usage import Usage
from aiflow.domain.runs.quota import QuotaPatience
from aiflow.domain.runs.run_limits import RunLimits
from aiflow.errors import AiflowError
from aiflow.settings import ROLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.domain.run_summary import TaskRef
    from aiflow.domain.runs.run import Run
    from aiflow.messages import Texts
    from aiflow.ports import (
        Agents,
        Baselines,
        Control,
        Housekeeping,
        Journal,
        Lease,
        Locks,
        Merging,
        Notifier,
        Remote,
        RequestEditor,
        RequestSource,
        RunStore,
        Time,
        Workshop,
        Workspaces,
    )
    from aiflow.settings import Settings
    from aiflow.usecases.read_backlog import BacklogSources


@dataclass(frozen=True, slots=True)
class Voice:
    """The caller of the engine: its language, whether it asks to stop, and what it wants to see.

    `observe` gets every saved change of a run, `follow` the output of agents and tests as it comes, `warn` what did not
    work beside the run itself.
    """

    texts: Texts
    interrupted: Callable[[], bool] = lambda: False
    observe: Callable[[Run], None] = lambda _run: None
    follow: Callable[[bytes], None] | None = None
    warn: Callable[[str], None] = lambda _text: None


@dataclass(slots=True)
class Ground:
    """What an auto-run or a runner began on, and holds to whatever a person does in the checkout meanwhile.

    `base_branch` is what it merges into (AUT-5). `is_clean` says that no edit of a person's was there (RUN-7).
    """

    base_branch: str = ""
    is_clean: bool = False

    def learn(self, base_branch: str, *, is_clean: bool) -> None:
        """Hold to the first base branch that is seen, and remember that the checkout was clean once."""
        self.base_branch = self.base_branch or base_branch
        self.is_clean = self.is_clean or is_clean


@dataclass(frozen=True, slots=True)
class Charge:
    """What a run is worked on for: a task of the queue, an auto-run, or neither.

    `stop_code` is what a run stops with that ends for an interruption. `session` is what the auto-run has used in
    earlier runs, and its ceilings; `minutes_left` is how long that may still wait for anything. `ground` is what a
    long-running process began on; work for a person at once has none. `turn` is the checkout's turn, which a
    runner took before it claimed its task (QUE-5).
    """

    task: TaskRef | None = None
    stop_code: Callable[[], str] = lambda: "CANCELLED"
    session: Callable[[], tuple[Usage, Ceilings]] = lambda: (Usage(), Ceilings())
    minutes_left: Callable[[], float | None] = lambda: None
    ground: Ground | None = None
    turn: Lease | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """All that reads or changes one checkout; lasts as long as its process, for any number of callers.

    Nothing in it belongs to a caller or to a run, so that several threads may use it at once.
    """

    backlog: BacklogSources
    source: RequestSource
    editor: RequestEditor
    runs: RunStore
    locks: Locks
    control: Control
    workspaces: Callable[[str | None], Workspaces]
    remote: Remote
    merging: Merging
    notifier: Notifier
    housekeeping: Housekeeping
    baselines: Baselines
    agents: Agents
    workshop: Workshop
    journal: Journal
    time: Time
    new_run_id: Callable[[str | None], str]
    settings: Settings
    mask: Callable[[str], str] = str

    def engine(self, voice: Voice, charge: Charge | None = None) -> Engine:
        """Give the engine of this checkout to a caller."""
        parts = {each.name: getattr(self, each.name) for each in fields(Ports)}
        return Engine(**parts, voice=voice, charge=charge or Charge())


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine(Ports):
    """A checkout in the hands of one caller, who may be at work for a task or an auto-run."""

    voice: Voice
    charge: Charge = field(default_factory=Charge)

    def heard_by(self, **parts: Any) -> Self:
        """Give an engine whose caller hears or says something else."""
        return replace(self, voice=replace(self.voice, **parts))

    def charged_with(self, **parts: Any) -> Self:
        """Give an engine that works for something else."""
        return replace(self, charge=replace(self.charge, **parts))

    @property
    def base_branch(self) -> str:
        """The branch that runs start from and are merged into; empty is the one that is checked out (AUT-5)."""
        ground = self.charge.ground
        return self.settings.text("base_branch") or (ground.base_branch if ground else "")

    def find_base(self) -> str:
        """Return the base branch by its name; empty if there is none, as with a detached HEAD."""
        try:
            return self.base_branch or self.workspaces(None).facts("").base_branch
        except AiflowError:  # no repository: the doctor says so
            return ""

    @property
    def limits(self) -> RunLimits:
        """The limits of runs, from the settings."""
        spent, session_ceilings = self.charge.session()
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
    def quota_patience(self) -> QuotaPatience:
        """How long a quota may be waited for: as the settings say, and not beyond the end of the auto-run."""
        return QuotaPatience(self.settings.number("limits.quota_wait_hours"), self.charge.minutes_left())

    @property
    def test_commands(self) -> dict[str, str]:
        """The configured test commands by kind; an empty one is none."""
        commands = {kind: self.settings.text(f"tests.{kind}") for kind in ("unit", "e2e")}
        return {kind: command for kind, command in commands.items() if command.strip()}
