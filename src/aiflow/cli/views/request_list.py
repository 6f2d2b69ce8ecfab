"""The backlog as people read it: one line each, with what is worth a remark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.render import say, table, with_age
from aiflow.domain.backlog.explanation import stopped_for
from aiflow.domain.backlog.selection import is_left, lock_barrier
from aiflow.domain.reasons import BY_HAND
from aiflow.domain.request import RequestStatus
from aiflow.domain.run_summary import LOST
from aiflow.usecases.backlog.list import CLOSED
from aiflow.usecases.shapes.backlog import describe_problem

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.backlog.selection import Backlog, Barrier, Selection
    from aiflow.domain.request import Request
    from aiflow.domain.run_summary import RunSummary
    from aiflow.messages import Texts
    from aiflow.usecases.backlog.list import RequestList


def show_requests(session: CliSession, found: RequestList, *, is_filtered: bool) -> None:
    """List requests in selection order, and after them, unless only some were asked for, what cannot be used."""
    texts, backlog, selection = session.texts, found.backlog, found.selection
    if not backlog.requests and not backlog.invalid:
        click.echo(texts("list.empty"))
        return
    if is_filtered and not found.requests:
        click.echo(texts("list.no_match"))
        return
    notes = _notes(session, backlog, selection)
    rows = [[r.id, r.priority, r.status, r.title, notes.get(r.where, "")] for r in found.requests]
    if not is_filtered:
        rows += [
            [broken.id, "-", "invalid", "-", "; ".join(describe_problem(p, texts) for p in broken.problems)]
            for broken in backlog.invalid
        ]
    if rows:
        headers = [texts(f"column.{name}") for name in ("id", "priority", "status", "title", "note")]
        table(headers, rows, colour_column=2)
        click.echo()
    click.echo(texts("list.count", shown=len(rows), total=selection.total, runnable=len(selection.runnable)))
    closed = sum(request.status in CLOSED for request in backlog.requests)
    if not is_filtered and closed and not any(request.status in CLOSED for request in found.requests):
        say(texts("list.closed", count=closed))
    by_hand = [each.id for each in found.requests if stopped_for(each, backlog.runs.get(each.id)) in BY_HAND]
    if by_hand:
        say(texts("list.by_hand", request_id=by_hand[0]))


def _notes(session: CliSession, backlog: Backlog, selection: Selection) -> dict[str, str]:
    """Return by path what is worth a remark: which one is next, which place it has, what keeps it."""
    texts = session.texts
    notes = {
        excluded.where: _note(excluded.barrier, texts) for excluded in selection.excluded if excluded.invalid is None
    }
    continued = session.continued_first(backlog) if is_left(backlog) else ()
    for place, request in enumerate(selection.runnable, len(continued)):
        where = texts("list.next") if place == 0 else texts("list.place", place=place + 1)
        notes[request.where] = f"{where} ({notes[request.where]})" if request.where in notes else where
    for request in backlog.requests:
        if request.status is not RequestStatus.READY:
            notes[request.where] = _standing(session, request, backlog)
    cut_off = [each for each in continued if each.id not in backlog.interrupted]
    for request in cut_off:
        run = backlog.runs[request.id]
        notes[request.where] = with_age(texts("note.continued"), run.changed_at, session.now(), texts)
    return notes


def _note(barrier: Barrier, texts: Texts) -> str:
    facts = dict(barrier.facts)
    form = ".dead" if "is_dead" in facts else ".unread" if facts.get("form") == "unread" else ""
    return texts(f"note.{barrier.reason_code}{form}", **facts)


def _standing(session: CliSession, request: Request, backlog: Backlog) -> str:
    """Show in a line of the list the state of a request: who works on it, or why its run stopped."""
    lock, run = backlog.locks.get(request.id), backlog.runs.get(request.id)
    if request.id in backlog.lost:
        return LOST
    if request.id in backlog.interrupted:
        return session.texts("note.interrupted", request_id=request.id)
    if lock is not None:
        return _note(lock_barrier(request, lock, backlog), session.texts)
    if request.kept is not None:
        return session.texts(f"note.{request.kept.reason_code}", **dict(request.kept.facts))
    return _why_blocked(session, request, run) if request.status is RequestStatus.BLOCKED and run is not None else ""


def _why_blocked(session: CliSession, request: Request, run: RunSummary) -> str:
    """Say for what a request's run waits, and since when."""
    if session.is_merged(request.id, run):
        return session.texts("note.merged", request_id=request.id)
    reason = run.why or ("AWAITING_ACCEPTANCE" if run.state == "DONE" else "")
    return with_age(reason, run.changed_at, session.now(), session.texts) if reason else ""
