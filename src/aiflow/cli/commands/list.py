"""`aiflow list`."""

from __future__ import annotations

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.render import table
from aiflow.cli.session import Session, print_json
from aiflow.domain.request import Priority, Request, RequestStatus
from aiflow.domain.selection import Selection, select_next
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.shapes import describe, describe_problem, in_queue_order, request_list


@make_command("list")
@option("--status", "-s", "statuses", multiple=True, type=click.Choice([*RequestStatus]), help="option.list.status")
@option("--priority", "-p", "priorities", multiple=True, type=click.Choice([*Priority]), help="option.list.priority")
@option("--label", "-l", "labels", multiple=True, metavar="TEXT", help="option.list.label")
def command(
    session: Session,
    as_json: bool,  # noqa: FBT001
    statuses: tuple[str, ...],
    priorities: tuple[str, ...],
    labels: tuple[str, ...],
) -> None:
    """List the backlog in selection order."""
    backlog = read_backlog(session.project.sources)
    selection = select_next(backlog)
    kept = [
        request
        for request in in_queue_order(backlog)
        if (not statuses or request.status in statuses)
        and (not priorities or request.priority in priorities)
        and (not labels or set(labels) & set(request.labels))
    ]
    if as_json:
        print_json(request_list(backlog, selection, kept))
        return
    texts = session.texts
    is_filtered = bool(statuses or priorities or labels)
    if not backlog.requests and not backlog.invalid:
        click.echo(texts("list.empty"))
        return
    notes = _notes(session, selection)
    rows = [[r.id, r.priority, r.status, notes.get(r.path, ""), r.title] for r in kept]
    if not is_filtered:
        rows += [
            [broken.id, "-", "invalid", "", "; ".join(describe_problem(p, texts) for p in broken.problems)]
            for broken in backlog.invalid
        ]
    headers = [texts(f"column.{name}") for name in ("id", "priority", "status", "note", "title")]
    table(headers, rows, colour_column=2)
    click.echo()
    click.echo(texts("list.count", shown=len(rows), total=selection.total, runnable=len(selection.runnable)))


def _notes(session: Session, selection: Selection) -> dict[str, str]:
    """Return by path what is worth a remark: which one is next, which place it has, why it cannot run."""
    texts = session.texts
    notes = {
        excluded.path: describe(excluded.barrier, texts) for excluded in selection.excluded if excluded.invalid is None
    }
    for place, request in enumerate(selection.runnable):
        notes[request.path] = _place(place, request, notes, session)
    return notes


def _place(place: int, request: Request, notes: dict[str, str], session: Session) -> str:
    where = session.texts("list.next") if place == 0 else session.texts("list.place", place=place + 1)
    held = notes.get(request.path)
    return f"{where} ({held})" if held else where
