"""The journal as people read it: a line an entry, the newest last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.layout import cut, pad
from aiflow.cli.terminal.render import clean, is_terminal, paint, terminal_width
from aiflow.domain.request import parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from aiflow.cli.session import CliSession
    from aiflow.messages import Texts
    from aiflow.ports.journal import JournalEntry
    from aiflow.usecases.activity import ActivityPage

ACTOR_WIDTH = 12
# What is said in its own way, or says nothing to a person.
_SAID = ("event", "key", "from", "to", "digest")


def show_entry(session: CliSession, entry: JournalEntry) -> None:
    """Write one entry: when, who, about what, and what happened; cut to the terminal's width."""
    fields, texts = entry.fields, session.texts
    at = parse_instant(str(fields.get("at"))) if fields.get("at") else None
    when = f"{at.astimezone():%Y-%m-%d %H:%M:%S}" if at else str(fields.get("at", ""))
    actor, kind = str(fields.get("actor", "")), str(fields.get("kind", ""))
    who = texts(f"activity.actor.{actor}") if texts.has(f"activity.actor.{actor}") else actor
    what = texts(f"activity.kind.{kind}") if texts.has(f"activity.kind.{kind}") else kind
    about = filter(None, (str(fields.get("request_id") or ""), what, *_words(fields, texts)))
    line = f"{pad(clean(who), ACTOR_WIDTH)}  {clean('  '.join(about))}"
    room = terminal_width() - len(when) - 2
    click.echo(f"{paint(when, 'bright_black')}  {cut(line, max(20, room)) if is_terminal() else line.rstrip()}")


def show_gap(session: CliSession, page: ActivityPage) -> None:
    """Say that there is nothing, or that lines could not be read."""
    if not page.entries:
        click.echo(session.texts("activity.none"))
    if page.damaged:
        click.echo(session.texts("activity.damaged", count=page.damaged), err=True)


def _words(fields: Mapping[str, Any], texts: Texts) -> Iterator[str]:
    """Yield what an entry says besides: what was changed or moved, why, and its other facts."""
    told = fields.get("data")
    data: dict[str, Any] = told if isinstance(told, dict) else {}
    event = str(data.get("event") or data.get("key") or "")
    way = " → ".join(str(data[name]) for name in ("from", "to") if data.get(name) not in (None, ""))
    is_still = data.get("from") == data.get("to")
    yield event
    yield "" if is_still else way
    yield str(fields.get("reason_code") or "")
    for name, value in data.items():
        if name not in _SAID and value not in (None, "", [], {}) and value is not False:
            yield f"{name}={len(value) if isinstance(value, (list, dict)) else value}"
