"""`aiflow settings`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.terminal.layout import display_width, pad
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import paint, say
from aiflow.settings import BY_NAME, SECTIONS, Source
from aiflow.usecases.project.init import meaning, to_toml
from aiflow.usecases.project.settings import list_settings
from aiflow.usecases.shapes.project import settings_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the names of settings."""
    return [CompletionItem(name) for name in BY_NAME if name.startswith(incomplete)]


@make_command("settings")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=_complete)
@option("--changed", "only_changed", is_flag=True, help="option.settings.changed")
def command(session: CliSession, as_json: bool, names: tuple[str, ...], only_changed: bool) -> None:  # noqa: FBT001
    """List settings: their values, where they come from, what they mean."""
    settings = session.settings
    for name in names:
        if name not in BY_NAME and name not in SECTIONS:
            raise click.UsageError(session.texts("settings.unknown", name=name))
    lines = list_settings(settings, names, only_changed=only_changed)
    if as_json:
        print_json(settings_shape(lines))
        return
    if not lines:
        click.echo(session.texts("settings.none_changed"))
        return
    texts = session.texts
    width = max(display_width(line.row.name) for line in lines)
    for line in lines:
        value = paint(to_toml(line.effective), "cyan" if line.source is not Source.DEFAULT else None)
        source = texts("settings.source", source=texts(f"source.{line.source}"))
        click.echo(f"{pad(line.row.name, width)}  {value}  {source}")
        say(meaning(line.row, texts), "    ")
