"""`aiflow list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import PRIORITY_CHOICE, STATUS_CHOICE, option
from aiflow.cli.options import command as make_command
from aiflow.cli.render import ago, table
from aiflow.cli.session import Session, print_json
from aiflow.domain.request import RequestStatus
from aiflow.domain.selection import describe_holder, select_next
from aiflow.usecases.find_interrupted import with_interrupted
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.shapes import describe_problem, in_queue_order, request_list

if TYPE_CHECKING:
    from aiflow.domain.request import Request
    from aiflow.domain.selection import Backlog, Selection


@make_command("list")
@option(
    "--status",
    "-s",
    "statuses",
    multiple=True,
    type=STATUS_CHOICE,
    help="option.list.status",
)
@option(
    "--priority",
    "-p",
    "priorities",
    multiple=True,
    type=PRIORITY_CHOICE,
    help="option.list.priority",
)
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
    if backlog.locks or any(request.status is RequestStatus.RUNNING for request in backlog.requests):
        backlog = with_interrupted(backlog, session.engine().locks)
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
    if is_filtered and not kept:
        click.echo(texts("list.no_match"))
        return
    notes = _notes(session, backlog, selection)
    rows = [[r.id, r.priority, r.status, r.title, notes.get(r.path, "")] for r in kept]
    if not is_filtered:
        rows += [
            [broken.id, "-", "invalid", "-", "; ".join(describe_problem(p, texts) for p in broken.problems)]
            for broken in backlog.invalid
        ]
    headers = [texts(f"column.{name}") for name in ("id", "priority", "status", "title", "note")]
    table(headers, rows, colour_column=2)
    click.echo()
    click.echo(texts("list.count", shown=len(rows), total=selection.total, runnable=len(selection.runnable)))


def _notes(session: Session, backlog: Backlog, selection: Selection) -> dict[str, str]:
    """Return by path what is worth a remark: which one is next, which place it has, what keeps it."""
    texts = session.texts
    notes = {
        excluded.path: texts(f"note.{excluded.barrier.reason_code}", **dict(excluded.barrier.facts))
        for excluded in selection.excluded
        if excluded.invalid is None
    }
    for place, request in enumerate(selection.runnable):
        where = texts("list.next") if place == 0 else texts("list.place", place=place + 1)
        notes[request.path] = f"{where} ({notes[request.path]})" if request.path in notes else where
    for request in backlog.requests:
        if request.status is not RequestStatus.READY:
            notes[request.path] = _standing(session, request, backlog)
    return notes


def _standing(session: Session, request: Request, backlog: Backlog) -> str:
    """Say how it stands with a request that is not ready: who works on it, or why its run stopped."""
    lock, run = backlog.locks.get(request.id), backlog.runs.get(request.id)
    if request.id in backlog.interrupted:
        return session.texts("note.interrupted", request_id=request.id)
    if lock is not None:
        return session.texts("note.REQUEST_LOCKED", holder=describe_holder(lock))
    if request.status is not RequestStatus.BLOCKED or run is None:
        return ""
    reason = run.reason_code or ("AWAITING_ACCEPTANCE" if run.state == "DONE" else "")
    when = f", {ago(run.changed_at, session.now(), session.texts)}" if run.changed_at else ""
    return f"{reason}{when}" if reason else ""
