"""`aiflow completion`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from aiflow.cli.options import command as make_command
from aiflow.cli.terminal.print_json import print_json

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession

SHELLS = ("bash", "zsh", "fish")


@make_command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(session: CliSession, as_json: bool, shell: str) -> None:  # noqa: FBT001
    """Print the completion script for a shell."""
    completion = get_completion_class(shell)
    assert completion is not None
    script = completion(click.get_current_context().find_root().command, {}, "aiflow", "_AIFLOW_COMPLETE").source()
    if as_json:
        print_json({"shell": shell, "script": script})
        return
    click.echo(script)
    if sys.stdout.isatty():
        click.echo(session.texts(f"completion.{shell}"), err=True)
