"""What the doctor finds, locks, settings and agents, as they are answered."""

from __future__ import annotations

from typing import Literal

from aiflow.api.models.base import AnswerModel, Code, Instant, RequestName, RunName
from aiflow.domain.agents.answers import Role
from aiflow.domain.agents.programs import Login
from aiflow.domain.health import Health
from aiflow.domain.lock import LockType, LockVerdict
from aiflow.domain.process import Liveness


class CheckAnswer(AnswerModel):
    """One check of the doctor."""

    id: str
    result: Health
    reason_code: Code | None
    message: str
    evidence: list[str]
    fix: str | None


class DoctorAnswer(AnswerModel):
    """Everything that was checked, and the worst of it."""

    mode: Literal["quick", "full"]
    result: Health
    checks: list[CheckAnswer]


class LockAnswer(AnswerModel):
    """One lock, with what is known of its holder."""

    lock_type: LockType
    request_id: RequestName | None
    run_id: RunName | None
    pid: int | None
    host: str | None
    fence: int | None
    created_at: Instant | None
    expires_at: Instant | None
    liveness: Liveness
    verdict: LockVerdict
    is_stale: bool


class LocksAnswer(AnswerModel):
    """The locks of this checkout."""

    locks: list[LockAnswer]


class BrokenLockAnswer(AnswerModel):
    """The lock that was removed."""

    broken: LockAnswer


class SettingAnswer(AnswerModel):
    """One setting."""

    name: str
    value: str | bool | int | float | list[str]
    default: str | bool | int | float | list[str]
    source: str
    environment: str


class SettingsAnswer(AnswerModel):
    """The settings, and where each comes from."""

    settings: list[SettingAnswer]


class AgentAnswer(AnswerModel):
    """One agent program."""

    kind: str
    program: str | None
    argv: list[str]
    is_installed: bool
    path: str | None
    version: str | None
    login: Login
    login_by: str | None
    roles: list[Role]
    reason_code: Code | None
    install: str | None
    log_in: str | None


class AgentsAnswer(AnswerModel):
    """The agents of this machine, and which of them the roles use."""

    agents: list[AgentAnswer]
