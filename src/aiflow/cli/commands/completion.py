"""`aiflow completion`: the script of a shell, or the manual page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.terminal.print_json import print_json

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession

MANUAL = "man"
SHELLS = ("bash", "zsh", "fish", MANUAL)
# A zsh without a configuration has no completion yet, and refuses every script for it.
ZSH_READY = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"


@make_command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(session: CliSession, as_json: bool, shell: str) -> None:  # noqa: FBT001
    """Print the completion script for a shell."""
    script = _manual() if shell == MANUAL else _script(shell)
    if as_json:
        print_json({"shell": shell, "script": script})
        return
    click.echo(script, nl=not script.endswith("\n"))
    if sys.stdout.isatty():
        click.echo(session.texts(f"completion.{shell}"), err=True)


def _script(shell: str) -> str:
    from click.shell_completion import get_completion_class

    completion = get_completion_class(shell)
    assert completion is not None
    script = completion(click.get_current_context().find_root().command, {}, "aiflow", "_AIFLOW_COMPLETE").source()
    first, rest, text = script.partition("\n")
    return first + rest + ZSH_READY + text if shell == "zsh" else script


def _manual() -> str:
    from aiflow.cli.main import GROUPS, cli
    from aiflow.cli.manual import manual_page

    return manual_page(cli, GROUPS)
