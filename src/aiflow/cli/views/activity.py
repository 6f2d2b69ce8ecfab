"""The journal as people read it: a line an entry, the newest last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.layout import cut, pad
from aiflow.cli.terminal.render import clean, is_terminal, paint, terminal_width
from aiflow.domain.request import parse_instant
from aiflow.usecases.shapes.activity_words import activity_words

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.ports.journal import JournalEntry
    from aiflow.usecases.activity import ActivityPage

ACTOR_WIDTH = 12


def show_entry(session: CliSession, entry: JournalEntry) -> None:
    """Write one entry: when, who, about what, and what happened; cut to the terminal's width."""
    fields, texts = entry.fields, session.texts
    at = parse_instant(str(fields.get("at"))) if fields.get("at") else None
    when = f"{at.astimezone():%Y-%m-%d %H:%M:%S}" if at else str(fields.get("at", ""))
    actor = str(fields.get("actor", ""))
    who = texts(f"activity.actor.{actor}") if texts.has(f"activity.actor.{actor}") else actor
    words = activity_words(fields, texts), str(fields.get("reason_code") or "")
    about = filter(None, (str(fields.get("request_id") or ""), *words))
    line = f"{pad(clean(who), ACTOR_WIDTH)}  {clean('  '.join(about))}"
    room = terminal_width() - len(when) - 2
    click.echo(f"{paint(when, 'bright_black')}  {cut(line, max(20, room)) if is_terminal() else line.rstrip()}")


def show_gap(session: CliSession, page: ActivityPage) -> None:
    """Say that there is nothing, or that lines could not be read."""
    if not page.entries:
        click.echo(session.texts("activity.none"))
    if page.damaged:
        click.echo(session.texts("activity.damaged", count=page.damaged), err=True)
