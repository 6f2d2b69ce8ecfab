"""`aiflow init`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.session import Session, print_json
from aiflow.domain.agent_programs import NAMES, AgentTrouble, Login

if TYPE_CHECKING:
    from aiflow.domain.agent_programs import AgentProgram
    from aiflow.messages import Texts
    from aiflow.settings import Settings
    from aiflow.usecases.init_project import Initialised


@make_command("init")
@option("--agent", "name", type=click.Choice(NAMES), metavar="NAME", help="option.init.agent")
def command(session: Session, as_json: bool, name: str | None) -> None:  # noqa: FBT001
    """Make a project ready, and say what comes next."""
    from aiflow.settings import FILE_NAME, Source
    from aiflow.usecases.init_project import choose_agent, init_project
    from aiflow.wiring import find_agents, new_project

    project = new_project(session.start)
    root = project.root
    settings = session.check_settings(root)
    has_requests = any((project.path / "requests").glob("*.md"))
    session.project = project
    if name is None and settings.sources["agent.kind"] is Source.FLAG:  # who says `-c agent.kind=…` means the project
        name = settings.text("agent.kind")
    agent = choose_agent(find_agents(settings, root), name)
    done = init_project(project.folder, has_requests, session.texts, (session.journal, session.now), agent)
    is_set = FILE_NAME in done.made
    if as_json:
        told = {"kind": agent.kind, "program": agent.program or None} if agent and is_set else None
        print_json({"root": str(root), "made": list(done.made), "kept": list(done.kept), "agent": told})
        return
    texts = session.texts
    _show_files(done, root, texts)
    click.echo()
    if is_set:
        _show_agent(agent, texts)
        click.echo()
    elif agent is not None and name not in (None, settings.text("agent.kind")):
        _show_kept(agent, settings, texts)
    click.echo(texts("init.next"))


def _show_files(done: Initialised, root: str, texts: Texts) -> None:
    click.echo(texts("init.done" if done.made else "init.nothing", root=root))
    for path in done.made:
        click.echo("  + " + path)
    for path in done.kept:
        click.echo("  = " + path + "  " + texts("init.kept"))


def _show_kept(agent: AgentProgram, settings: Settings, texts: Texts) -> None:
    """Say what a person has to set to get the agent they named, if it is not set already."""
    from aiflow.usecases.init_project import agent_settings, to_toml

    wanted = {name: value for name, value in agent_settings(agent).items() if settings.values[name] != value}
    if wanted:
        told = ", ".join(f"{name} = {to_toml(value)}" for name, value in wanted.items())
        click.echo(texts("init.agent_kept", settings=told), err=True)


def _show_agent(agent: AgentProgram | None, texts: Texts) -> None:
    """Say which agent was set, and what it still needs; or how to get one."""
    from aiflow.cli.agents_view import show_installs
    from aiflow.cli.render import say

    if agent is None:
        show_installs(texts)
        return
    click.echo(texts("init.agent", kind=agent.kind, program=agent.program or "aiflow"))
    if agent.trouble is AgentTrouble.NO_ARGV:
        say(texts("init.agent_argv"), "  ")
    elif agent.trouble is AgentTrouble.NO_EXTRA:
        say(texts("init.agent_extra", command=agent.mending), "  ")
    elif agent.mending is not None:
        key = "init.agent_log_in" if agent.login is Login.NONE_SEEN else "init.agent_install"
        say(texts(key, command=agent.mending), "  ")
