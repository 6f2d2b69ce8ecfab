"""One call of an agent (AGT-2): what it is given, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.ceilings import Budget
from aiflow.domain.agents.criteria import criteria_in
from aiflow.domain.agents.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from aiflow.domain.agents.former import Former
    from aiflow.domain.agents.plan import PlanStep


@dataclass(frozen=True, slots=True)
class AgentCall:
    """One call of a role (AGT-2).

    Agents also get the session to continue, what may still be used, the test commands that aiflow itself
    runs after the step, how large a step may be (files, lines), the step's changes for the reviewer, the folder that
    is not the agent's to change, what became of the steps that are done, and for the reviewer what the implementer
    said about this one and what its tests put out. `whole` is what all steps changed together, for the review of a last
    step that is not the only one, and `began` the commit before all of that. `former` is the run before, with what
    that changed, and `continues` the run on whose branch this one began; before the plan (not `is_planned`) there is
    only the step that merges the base in.
    """

    role: Role
    brief: Brief
    run_id: str
    cwd: str
    step: PlanStep | None
    plan: tuple[PlanStep, ...]
    attempt: int
    feedback: tuple[Feedback, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    session_id: str | None = None
    budget: Budget = field(default_factory=Budget)
    tests: Mapping[str, str] = field(default_factory=dict)
    step_limits: tuple[int, int] = (20, 400)
    changes: Callable[[], str] = str
    requests_dir: str = "requests"
    done: Mapping[str, StepDone] = field(default_factory=dict)
    summary: str = ""
    test_output: str = ""
    whole: Callable[[], str] | None = None
    began: str = ""
    former: Former | None = None
    former_diff: Callable[[], str] | None = None
    continues: str | None = None
    is_planned: bool = True

    @property
    def is_at_the_end(self) -> bool:
        """Whether the request has to be fulfilled with this step: no other follows."""
        return bool(self.plan) and self.is_planned and self.step is not None and self.step.id == self.plan[-1].id

    @property
    def criteria(self) -> tuple[str, ...]:
        """The request's acceptance criteria, for the last reviewer, who has to judge them."""
        return criteria_in(self.brief.body) if self.role is Role.QA and self.is_at_the_end else ()


@dataclass(frozen=True, slots=True)
class AgentReply:
    """What came of a call: the answer's bytes, or the reason code and detail of its failure.

    `session_id` is what a later call can continue, `retry_at` when a quota is there again as far as the agent knows,
    `choices` what a question can be answered with, `warnings` the codes of what else a person should know.
    """

    answer: bytes | None = None
    reason_code: str | None = None
    detail: str = ""
    command: str = ""
    exit_code: int | None = None
    session_id: str | None = None
    usage: Usage = field(default_factory=Usage)
    retry_at: datetime | None = None
    choices: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Brief:
    """The request as it was when the run began (REQ-8)."""

    id: str
    title: str
    body: str
    priority: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepDone:
    """What became of a step that is done: its implementer's words, and its commit; None changed nothing."""

    summary: str
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class Feedback:
    """A failure as the next call of the role gets to read it."""

    reason_code: str
    summary: str
    detail: str = ""
