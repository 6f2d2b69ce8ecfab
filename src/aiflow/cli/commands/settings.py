"""`aiflow settings`."""

from __future__ import annotations

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.render import table
from aiflow.cli.session import Session, print_json
from aiflow.settings import TABLE, Source
from aiflow.usecases.init_project import meaning, to_toml


@make_command("settings")
@option("--changed", "only_changed", is_flag=True, help="option.settings.changed")
def command(session: Session, as_json: bool, only_changed: bool) -> None:  # noqa: FBT001
    """List every setting: its value, where it comes from, what it means."""
    settings = session.settings
    rows = [row for row in TABLE if not only_changed or settings.sources[row.name] is not Source.DEFAULT]
    if as_json:
        print_json(
            {
                "settings": [
                    {
                        "name": row.name,
                        "value": settings.values[row.name],
                        "default": row.default,
                        "source": settings.sources[row.name],
                        "environment": row.env_names[0],
                    }
                    for row in rows
                ]
            }
        )
        return
    texts = session.texts
    headers = [texts(f"column.{name}") for name in ("setting", "value", "source", "meaning")]
    is_own = Source.DEFAULT
    table(
        headers,
        [
            [
                row.name,
                to_toml(settings.values[row.name]),
                texts(f"source.{settings.sources[row.name]}"),
                meaning(row, texts),
            ]
            for row in rows
            if only_changed or not row.name.startswith("agent.roles.") or settings.sources[row.name] is not is_own
        ],
    )
