"""`aiflow next`."""

from __future__ import annotations

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.session import Session, print_json
from aiflow.domain.selection import Backlog, Selection, select_next
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.shapes import describe, next_request_result

SHOWN = 20


@make_command("next")
@option("--all", "include_all", is_flag=True, help="option.next.all")
def command(session: Session, as_json: bool, include_all: bool) -> None:  # noqa: FBT001
    """Say which request runs next, and why the others do not."""
    backlog = read_backlog(session.project.sources, with_all_runs=False)
    selection = select_next(backlog, include_all=include_all)
    if as_json:
        print_json(next_request_result(selection))
    else:
        _show(session, selection, is_short=not include_all)
        _show_waiting(session, backlog)


def _show(session: Session, selection: Selection, *, is_short: bool) -> None:
    from aiflow.cli.render import clean, heading, say, table

    texts = session.texts
    chosen = selection.next
    if chosen is None:
        heading(texts("next.none"))
        if selection.total == 0:
            click.echo("  " + texts("list.empty"))
        else:
            say(texts("next.none_ready" if selection.ready == 0 else "next.none_hint"), "  ")
    else:
        heading(texts("next.chosen", request_id=chosen.id, priority=chosen.priority, title=clean(chosen.title)))
        click.echo("  " + clean(chosen.path))
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


def _show_waiting(session: Session, backlog: Backlog) -> None:
    """Say what is not selected because it is at work, or waits for the person who asks."""
    running = [request.id for request in backlog.requests if request.status == "running"]
    waiting = sum(request.status == "blocked" for request in backlog.requests)
    if running:
        from aiflow.usecases.find_interrupted import with_interrupted

        interrupted = with_interrupted(backlog, session.engine().locks).interrupted
        for request_id in running:
            key = "next.interrupted" if request_id in interrupted else "next.running"
            click.echo(session.texts(key, request_id=request_id))
    if waiting:
        click.echo(session.texts("next.waiting", count=waiting))
