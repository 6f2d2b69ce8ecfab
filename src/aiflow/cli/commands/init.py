"""`aiflow init`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import say
from aiflow.domain.agents.programs import NAMES, AgentTrouble, Login
from aiflow.errors import BadInputError, SettingsError
from aiflow.messages.commands import command_line

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.agents.programs import AgentProgram
    from aiflow.messages import Texts
    from aiflow.settings import Settings
    from aiflow.usecases.project.init import Choices, Initialised

# Settings that have an option of their own; it is written into a new file, as is what `-c` says.
_OPTIONS = {"requests_dir": "requests_dir", "base": "base_branch", "tests": "tests.unit", "setup": "worktree.setup"}


@make_command("init")
@option("--agent", "name", type=click.Choice(NAMES), metavar="NAME", help="option.init.agent")
@option("--base", metavar="BRANCH", help="option.init.base")
@option("--tests", metavar="COMMAND", help="option.init.tests")
@option("--setup", metavar="COMMAND", help="option.init.setup")
@option("--requests-dir", metavar="DIR", help="option.init.requests_dir")
def command(session: CliSession, as_json: bool, name: str | None, **options: str | None) -> None:  # noqa: FBT001
    """Make a project ready, and say what was chosen, what to commit and what comes next."""
    from aiflow.usecases.project.init import commit_of, init_project
    from aiflow.usecases.shapes.project import initialised_shape
    from aiflow.wiring import find_repository, project_at, read_settings, site_at

    root = find_repository(session.start)
    session.flags += tuple(f"{_OPTIONS[key]}={value}" for key, value in options.items() if value is not None)
    session.project = project_at(root)
    site, texts = site_at(root, session.start, _settings(session, root, options)), session.texts
    done = init_project(site, name, texts, (session.journal, session.now))
    action = commit_of(done, site.start, "" if session.start == "." else root)
    commit = command_line(action) if action else None
    if as_json:
        print_json(initialised_shape(root, done, commit))
        return
    _show_files(done, root, texts)
    if site.start:
        say(texts("init.root", folder=site.start, root=root))
    click.echo()
    if done.is_new:
        _show_agent(done.agent, texts)
        _show_choices(done.choices, texts)
        click.echo()
    else:
        _show_kept(done, read_settings(root, ()), texts)
    if commit:
        click.echo(texts("init.commit", command=commit))
        click.echo()
    click.echo(texts("init.next"))


def _settings(session: CliSession, root: str, options: dict[str, str | None]) -> Settings:
    """Read the settings; a mistake in an option of this command is reported as such."""
    from aiflow.usecases.shapes.errors import error_facts

    try:
        return session.check_settings(root)
    except SettingsError as error:
        names = {_OPTIONS[key]: f"--{key.replace('_', '-')}" for key, value in options.items() if value is not None}
        mistakes = error.context.get("problems")
        if not isinstance(mistakes, list) or any(each["key"] not in names or each["line"] for each in mistakes):
            raise
        told = [{**each, "file": names[each["key"]], "key": ""} for each in mistakes]
        detail = error_facts(SettingsError(problems=told), session.texts)["detail"]
        raise BadInputError(detail=detail, hint="aiflow init --help") from None


def _show_files(done: Initialised, root: str, texts: Texts) -> None:
    click.echo(texts("init.done" if done.made else "init.nothing", root=root))
    for path in done.made:
        click.echo("  + " + path)
    for path in done.kept:
        click.echo("  = " + path + "  " + texts("init.kept"))


def _show_choices(choices: Choices, texts: Texts) -> None:
    """Say what the settings say now, and what that was found by."""
    for name in ("base_branch", "tests.unit", "worktree.setup"):
        value, key = choices.values[name], f"init.{name}"
        found = "none" if not value else "found" if name in choices.by else "given"
        click.echo(texts(f"{key}.{found}", value=value, file=choices.by.get(name, "")))
    for other in choices.others:
        click.echo(texts("init.also", command=other.unit, file=other.by))
    for program in choices.missing:
        say(texts("init.program_missing", program=program), "  ")
    say(texts("init.change"))


def _show_kept(done: Initialised, settings: Settings, texts: Texts) -> None:
    """Say what a person has to set to get what they asked for, if it is not set already."""
    from aiflow.usecases.project.init import to_toml

    wanted = {name: value for name, value in done.asked.items() if settings.values[name] != value}
    if wanted:
        told = ", ".join(f"{name} = {to_toml(value)}" for name, value in wanted.items())
        click.echo(texts("init.settings_kept", settings=told), err=True)


def _show_agent(agent: AgentProgram | None, texts: Texts) -> None:
    """Say which agent was set, and what it still needs; or how to get one."""
    from aiflow.cli.views.agents import show_installs

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
