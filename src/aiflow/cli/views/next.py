"""What runs next, as people read it: the one that is chosen, what was excluded, what is at work, what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.render import clean, heading, say, table
from aiflow.cli.views.why import show_warnings
from aiflow.usecases.shapes.backlog import describe

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.backlog.selection import Selection
    from aiflow.usecases.backlog.next import NextAnswer

SHOWN = 20


def show_next(session: CliSession, answer: NextAnswer, *, is_short: bool) -> None:
    """Show what is selected, and what is not because it is at work or waits for the person who asks."""
    _show_continued(session, answer)
    _show_selection(session, answer.selection, is_short=is_short, is_behind=bool(answer.continued))
    show_warnings(session, answer.warnings)
    for request_id in answer.running:
        is_cut = request_id in answer.interrupted
        key = "next.lost" if request_id in answer.lost else "next.interrupted" if is_cut else "next.running"
        click.echo(session.texts(key, request_id=request_id))
    if answer.waiting:
        click.echo(session.texts("next.waiting", count=answer.waiting))


def _show_continued(session: CliSession, answer: NextAnswer) -> None:
    """Name what the next auto-run continues first, in that order."""
    for place, request in enumerate(answer.continued):
        facts = {"request_id": request.id, "priority": request.priority, "title": clean(request.title)}
        heading(session.texts("next.then" if place else "next.chosen", **facts))
        say(session.texts("next.continued"), "  ")


def _show_selection(session: CliSession, selection: Selection, *, is_short: bool, is_behind: bool) -> None:
    texts = session.texts
    chosen = selection.next
    if chosen is None:
        heading(texts("next.none_else" if is_behind else "next.none"))
        if selection.total == 0:
            click.echo("  " + texts("list.empty"))
        else:
            say(texts("next.none_ready" if selection.ready == 0 else "next.none_hint"), "  ")
    else:
        facts = {"request_id": chosen.id, "priority": chosen.priority, "title": clean(chosen.title)}
        heading(texts("next.then" if is_behind else "next.chosen", **facts))
        click.echo("  " + clean(chosen.where))
    counts = {"total": selection.total, "ready": selection.ready, "runnable": len(selection.runnable)}
    click.echo(texts("next.stats", **counts))
    shown = selection.excluded[:SHOWN] if is_short else selection.excluded
    if not shown:
        return
    click.echo()
    heading(texts("next.excluded"))
    columns = [texts("column.id"), texts("column.reason"), texts("column.detail")]
    table(columns, [[e.request_id, e.barrier.reason_code, describe(e.barrier, texts, e.invalid)] for e in shown])
    if len(shown) < len(selection.excluded):
        click.echo(texts("next.more", count=len(selection.excluded) - len(shown)))
