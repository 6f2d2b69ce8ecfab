"""The texts about an agent program: its login, what to know about it, what keeps it from working."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.agents.programs import AgentTrouble, Login

if TYPE_CHECKING:
    from aiflow.domain.agents.programs import AgentProgram
    from aiflow.messages import Texts


def login_words(program: AgentProgram, texts: Texts) -> str:
    """Say whether somebody is logged in and by what, or that the program is not there."""
    if not program.is_installed:
        is_absent = program.trouble in (AgentTrouble.NOT_ON_PATH, AgentTrouble.MISSING)
        return texts("agents.not_installed") if is_absent else ""
    by = f" ({program.login_by})" if program.login_by and program.login is Login.IN else ""
    return texts(f"login.{program.login}") + by


def note_words(program: AgentProgram, texts: Texts) -> str:
    """Say what to do about an agent, or where it is."""
    if program.kind == "demo":
        return texts("agents.built_in")
    if program.trouble is AgentTrouble.NO_ARGV:
        return texts("agents.any_program")
    if program.missing_variable:
        return f"→ {texts('agents.set_variable', variable=program.missing_variable)}"
    if program.mending is not None:
        return f"→ {program.mending}"
    return program.path or texts("agents.not_found")


def trouble_words(program: AgentProgram, texts: Texts) -> str:
    """Say what is known to be wrong with an agent without calling it."""
    if program.trouble is None:
        return ""
    roles = ", ".join(program.roles) or program.kind
    return texts(f"check.agent.{program.trouble}", roles=roles, program=program.program, kind=program.kind)
