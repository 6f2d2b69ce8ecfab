"""`aiflow settings`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from aiflow.cli.layout import display_width, pad
from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.render import paint, say
from aiflow.cli.session import Session, print_json
from aiflow.settings import BY_NAME, SECTIONS, TABLE, Setting, Settings, Source
from aiflow.usecases.init_project import meaning, to_toml

if TYPE_CHECKING:
    from aiflow.settings.table import SettingValue


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the names of settings."""
    return [CompletionItem(name) for name in BY_NAME if name.startswith(incomplete)]


@make_command("settings")
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=_complete)
@option("--changed", "only_changed", is_flag=True, help="option.settings.changed")
def command(session: Session, as_json: bool, names: tuple[str, ...], only_changed: bool) -> None:  # noqa: FBT001
    """List settings: their values, where they come from, what they mean."""
    settings = session.settings
    for name in names:
        if name not in BY_NAME and name not in SECTIONS:
            raise click.UsageError(session.texts("settings.unknown", name=name))
    rows = [row for row in TABLE if _is_wanted(row, settings, names, only_changed=only_changed)]
    if as_json:
        print_json({"settings": [_shape(row, settings) for row in rows]})
        return
    if not rows:
        click.echo(session.texts("settings.none_changed"))
        return
    texts = session.texts
    width = max(display_width(row.name) for row in rows)
    for row in rows:
        source = settings.sources[row.name]
        value = paint(to_toml(_value(row, settings)), "cyan" if source is not Source.DEFAULT else None)
        click.echo(f"{pad(row.name, width)}  {value}  {texts('settings.source', source=texts(f'source.{source}'))}")
        say(meaning(row, texts), "    ")


def _is_wanted(row: Setting, settings: Settings, names: tuple[str, ...], *, only_changed: bool) -> bool:
    """Choose the rows to show; a role's own keys only if they are set or asked for."""
    is_changed = settings.sources[row.name] is not Source.DEFAULT
    if names:
        asked = [name for name in names if row.name == name or row.name.startswith(f"{name}.")]
        return any(is_changed or name != "agent" or not _of_a_role(row) for name in asked)
    return is_changed or not (only_changed or _of_a_role(row))


def _of_a_role(row: Setting) -> bool:
    return row.name.startswith("agent.roles.")


def _value(row: Setting, settings: Settings) -> SettingValue:
    """Return what counts: a role's own key that is not set is that of all roles."""
    if settings.sources[row.name] is Source.DEFAULT and _of_a_role(row):
        return settings.values[f"agent.{row.name.rpartition('.')[2]}"]
    return settings.values[row.name]


def _shape(row: Setting, settings: Settings) -> dict[str, object]:
    return {
        "name": row.name,
        "value": settings.values[row.name],
        "default": row.default,
        "source": settings.sources[row.name],
        "environment": row.env_names[0],
    }
