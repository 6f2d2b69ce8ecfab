"""`aiflow why`."""

from __future__ import annotations

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import request_id_argument
from aiflow.cli.render import ago, clean, heading, paint, say
from aiflow.cli.session import Session, print_json
from aiflow.cli.warnings import warn_of_misspelt_keys
from aiflow.domain.explanation import Station, explain
from aiflow.domain.request import RequestId, RequestStatus
from aiflow.domain.selection import Backlog, select_next
from aiflow.errors import NotFoundError
from aiflow.usecases.find_interrupted import with_interrupted
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.shapes import describe, why_result

MOST_DEPTH = 10  # deeper stations are written below each other


@make_command("why")
@request_id_argument()
def command(session: Session, as_json: bool, request_id: RequestId) -> None:  # noqa: FBT001
    """Say everything that keeps one request from running, down to the roots, and what mends it."""
    backlog = with_interrupted(read_backlog(session.project.sources), session.engine().locks)
    stations = explain(request_id, backlog)
    if not stations:
        raise NotFoundError(request_id=request_id)
    if as_json:
        print_json(why_result(stations))
    else:
        _show(session, stations, backlog)


def _show(session: Session, stations: tuple[Station, ...], backlog: Backlog) -> None:
    first = stations[0]
    heading(_headline(session, first, backlog))
    codes = [barrier.reason_code for barrier in first.barriers]
    width = max(map(len, (*codes, _waits_with(first) or "")))
    for barrier, invalid in first.explained:
        say(describe(barrier, session.texts, invalid), f"  {paint(barrier.reason_code.ljust(width), 'yellow')}  ")
    _show_stop(session, first, width)
    _show_task(session, first)
    for file in first.invalid:
        say(session.texts("why.edit_file", path=clean(file.path)), "    → ")
    is_archived = first.request is not None and first.request.status is RequestStatus.ARCHIVED
    for command in () if is_archived else first.commands:  # what somebody put away is not to be mended
        click.echo(f"    → {command}")
    if first.request is not None:
        warn_of_misspelt_keys(session, first.request_id)
    if len(stations) == 1:
        return
    click.echo()
    by_id = {station.request_id: station for station in stations}
    for station in stations[1:]:
        indent = "  " * min(station.depth, MOST_DEPTH)
        say(_sentence(session, station, by_id), indent)
        for command in station.commands:
            click.echo(f"{indent}  → {command}")


def _waits_with(first: Station) -> str | None:
    """Return the reason with which the request's run waits, where no barrier says it."""
    return None if first.run is None or first.run.is_waiting else first.stopped_for


def _show_stop(session: Session, first: Station, width: int) -> None:
    """Say what the request's run waits for, and since when."""
    code, run = _waits_with(first), first.run
    if code is None or run is None:
        return
    when = f", {ago(run.changed_at, session.now(), session.texts)}" if run.changed_at else ""
    say(session.texts.message(code, {}).title + when, f"  {paint(code.ljust(width), 'yellow')}  ")


def _show_task(session: Session, first: Station) -> None:
    """Name the task of the queue that the request's run is worked on for."""
    run = first.run
    if run is None or run.task is None or not (run.is_active or first.stopped_for):
        return
    from aiflow.cli.task_hints import queue_command

    say(session.texts("why.task", run_id=run.run_id, command=queue_command(session, "show", run.task)), "  ")


def _headline(session: Session, first: Station, backlog: Backlog) -> str:
    """Say in one line how it stands with the request."""
    texts, request = session.texts, first.request
    title = clean(request.title) if request else ""
    facts = {"request_id": first.request_id, "title": title, "status": request.status if request else ""}
    if request is None:
        return texts("why.invalid", **facts)
    if request.status is RequestStatus.READY and _is_held_only(first):
        runnable = select_next(backlog).runnable
        place = next(index for index, other in enumerate(runnable, 1) if other.id == request.id)
        return texts("why.next" if place == 1 else "why.place", place=place, **facts)
    if request.id in backlog.interrupted:
        return texts("why.interrupted", **facts)
    if request.status in (RequestStatus.DONE, RequestStatus.ARCHIVED, RequestStatus.RUNNING):
        return texts(f"why.{request.status}", **facts)
    return texts("why.stopped", **facts)


def _is_held_only(station: Station) -> bool:
    """Tell whether nothing but a running auto-run stands before the request."""
    return all(barrier.reason_code == "QUEUE_LOCKED" for barrier in station.barriers)


def _sentence(session: Session, station: Station, by_id: dict[RequestId, Station]) -> str:
    """Write one link of the chain: who waits for whom, and how it stands with that one (SEL-5)."""
    texts = session.texts
    facts = {"waiting": station.waited_for_by, "request_id": station.request_id}
    if station.request is None:
        key = "why.chain_invalid" if station.invalid else "why.chain_missing"
        return texts(key, **facts)
    state = texts(f"status.{station.request.status}")
    run = station.run
    if run is not None and station.stopped_for and not run.is_active:
        state += f": {station.stopped_for}"
        if run.changed_at is not None:
            state += ", " + ago(run.changed_at, session.now(), texts)
    sentence = texts("why.chain", state=state, **facts)
    waits_for = [wanted for wanted in station.waits_for if wanted in by_id]
    return sentence + (texts("why.chain_on", ids=", ".join(waits_for)) if waits_for else "")
