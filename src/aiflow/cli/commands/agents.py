"""`aiflow agents`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.agents_view import following, show_list, show_trial
from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.running import catching_signals, telling_once
from aiflow.cli.session import Session, print_json
from aiflow.domain.agent_programs import KINDS
from aiflow.domain.reasons import exit_code
from aiflow.errors import AiflowError
from aiflow.usecases.list_agents import list_agents, program_shape
from aiflow.usecases.try_agent import settings_to_try, try_agent

if TYPE_CHECKING:
    from aiflow.domain.agent_programs import AgentProgram
    from aiflow.settings import Settings
    from aiflow.usecases.try_agent import Trial


@make_command("agents")
@click.argument("kind", type=click.Choice(KINDS), required=False, metavar="[KIND]")
@option("--check", is_flag=True, help="option.agents.check")
def command(session: Session, as_json: bool, kind: str | None, check: bool) -> None:  # noqa: FBT001
    """List the agents, or call one."""
    from aiflow.wiring import find_agents

    root = _root(session)
    settings = session.check_settings(root or session.start)
    found = list_agents(find_agents(settings, root or session.start), settings, is_project=root is not None)
    shown = tuple(program for program in found if kind in (None, program.kind))
    trials = _try(session, settings, (root, _wanted(shown, kind)), is_quiet=as_json) if check else []
    if as_json:
        checks = {"checks": [trial.shape for trial in trials]} if check else {}
        print_json({"agents": [program_shape(program) for program in shown], **checks})
    elif not check:
        show_list(shown, session.texts, is_all=kind is None)
    troubles = [trial.reason_code for trial in trials] if check else [_code_of(program) for program in shown]
    code = next((code for code in troubles if code), None)
    if code is not None:
        raise click.exceptions.Exit(int(exit_code(code)))


def _root(session: Session) -> str | None:
    """Return the project's root; outside of one there are agents too."""
    try:
        return session.project.root
    except AiflowError as error:
        if error.reason_code != "PROJECT_NOT_FOUND":
            raise
        return None


def _code_of(program: AgentProgram) -> str | None:
    """Return why an agent that a role uses cannot be used; what no role uses may be missing."""
    return program.trouble.reason_code if program.trouble and program.roles else None


def _wanted(shown: tuple[AgentProgram, ...], kind: str | None) -> list[AgentProgram]:
    """Choose what to call: what the roles use, else the first that is installed; of a kind in any case one."""
    used = [program for program in shown if program.roles]
    installed = [program for program in shown if program.is_installed and (kind or program.known)]
    return used or installed[:1] or list(shown[:1])


def _try(
    session: Session, settings: Settings, what: tuple[str | None, list[AgentProgram]], *, is_quiet: bool
) -> list[Trial]:
    """Call one after the other, in front of the person."""
    from aiflow.wiring import trial_agents

    root, wanted = what
    trials: list[Trial] = []
    with catching_signals(telling_once(session.texts("agents.stopping"))) as interrupts:
        for program in wanted:
            follow = following(program, session.texts, is_quiet=is_quiet)
            with trial_agents(settings_to_try(settings, program), root or session.start) as (agents, place):
                trials.append(try_agent(agents, program, place, follow, interrupts))
            if interrupts():
                raise click.Abort  # there is no run that was cancelled
            if not is_quiet:
                show_trial(trials[-1], session.texts)
    return trials
