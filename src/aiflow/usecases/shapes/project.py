"""A project as plain data (SPEC §13): its settings, its agents, what was made of it, what the doctor found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.usecases.shapes.backlog import ENGLISH
from aiflow.usecases.shapes.runs import finding_shape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiflow.domain.agents.programs import AgentProgram
    from aiflow.domain.health import Finding, Health
    from aiflow.usecases.project.init import Initialised
    from aiflow.usecases.project.settings import SettingLine
    from aiflow.usecases.project.try_agent import Trial


def settings_shape(lines: Iterable[SettingLine]) -> dict[str, Any]:
    """`settings --json`."""
    return {
        "settings": [
            {
                "name": line.row.name,
                "value": line.value,
                "default": line.row.default,
                "source": line.source,
                "environment": line.row.env_names[0],
            }
            for line in lines
        ]
    }


def initialised_shape(root: str, done: Initialised, commit: str | None) -> dict[str, Any]:
    """`init --json`: what was made and what was there, what a new `aiflow.toml` says, and how to commit it."""
    agent = done.agent if done.is_new else None
    return {
        "root": root,
        "made": list(done.made),
        "kept": list(done.kept),
        "agent": {"kind": agent.kind, "program": agent.program or None} if agent else None,
        "settings": dict(done.choices.values) if done.is_new else {},
        "found_by": dict(done.choices.by) if done.is_new else {},
        "commit": commit,
    }


def agents_shape(programs: Iterable[AgentProgram], trials: Iterable[Trial] | None = None) -> dict[str, Any]:
    """`agents --json`: the agents, and what came of calling some, if that was asked for."""
    checks = {} if trials is None else {"checks": [trial.shape for trial in trials]}
    return {"agents": [program_shape(program) for program in programs], **checks}


def program_shape(program: AgentProgram) -> dict[str, Any]:
    """One agent."""
    known = program.known
    return {
        "kind": program.kind,
        "program": program.program or None,
        "argv": list(program.argv),
        "is_installed": program.is_installed,
        "path": program.path,
        "version": program.version,
        "login": program.login.value,
        "login_by": program.login_by or None,
        "roles": [role.value for role in program.roles],
        "reason_code": program.trouble.reason_code if program.trouble else None,
        "install": known.install if known else None,
        "log_in": known.log_in if known else None,
    }


def doctor_shape(findings: Iterable[Finding], verdict: Health, *, is_full: bool) -> dict[str, Any]:
    """`doctor --json`: what was checked, and what comes of it all."""
    return {
        "mode": "full" if is_full else "quick",
        "result": verdict.value,
        "checks": [finding_shape(finding, ENGLISH) for finding in findings],
    }
