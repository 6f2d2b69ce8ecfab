"""`aiflow agents`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.running import catching_signals, telling_once
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.views.agents import following, show_list, show_trial
from aiflow.domain.agents.programs import KINDS
from aiflow.domain.reasons import exit_code
from aiflow.errors import AiflowError
from aiflow.usecases.project.list_agents import choose_to_try, list_agents, trouble_of
from aiflow.usecases.project.try_agent import settings_to_try, try_agent
from aiflow.usecases.shapes.project import agents_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.agents.programs import AgentProgram
    from aiflow.settings import Settings
    from aiflow.usecases.project.try_agent import Trial


@make_command("agents")
@click.argument("kind", type=click.Choice(KINDS), required=False, metavar="[KIND]")
@option("--check", is_flag=True, help="option.agents.check")
def command(session: CliSession, as_json: bool, kind: str | None, check: bool) -> None:  # noqa: FBT001
    """List the agents, or call one."""
    from aiflow.wiring import find_agents

    root = _root(session)
    settings = session.check_settings(root or session.start)
    shown = list_agents(find_agents(settings, root or session.start), settings, is_project=root is not None, kind=kind)
    trials = _try(session, settings, (root, choose_to_try(shown, kind)), is_quiet=as_json) if check else []
    if as_json:
        print_json(agents_shape(shown, trials if check else None))
    elif not check:
        show_list(shown, session.texts, is_all=kind is None)
    troubles = [trial.reason_code for trial in trials] if check else [trouble_of(program) for program in shown]
    code = next((code for code in troubles if code), None)
    if code is not None:
        raise click.exceptions.Exit(int(exit_code(code)))


def _root(session: CliSession) -> str | None:
    """Return the project's root; outside of one there are agents too."""
    try:
        return session.project.root
    except AiflowError as error:
        if error.reason_code != "PROJECT_NOT_FOUND":
            raise
        return None


def _try(
    session: CliSession, settings: Settings, what: tuple[str | None, list[AgentProgram]], *, is_quiet: bool
) -> list[Trial]:
    """Call one after the other, in front of the person."""
    from aiflow.wiring import trial_agents

    root, wanted = what
    trials: list[Trial] = []
    with catching_signals(telling_once(session.texts("agents.stopping"))) as interrupts:
        for program in wanted:
            follow = following(program, session.texts, is_quiet=is_quiet)
            with trial_agents(settings_to_try(settings, program), root or session.start) as ground:
                trials.append(try_agent(ground, program, follow, interrupts))
            if interrupts():
                raise click.Abort  # there is no run that was cancelled
            if not is_quiet:
                show_trial(trials[-1], session.texts)
    return trials
