"""Why a request does not run, as people read it: what keeps it, how to fix that, and whom it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.render import clean, heading, paint, say, with_age
from aiflow.cli.warnings import warn_of_misspelt_keys
from aiflow.domain.backlog.explanation import LOST_RUN
from aiflow.domain.next_action import ActionKind
from aiflow.domain.request import ProblemKind, RequestStatus
from aiflow.messages.commands import said
from aiflow.usecases.shapes.backlog import describe

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.backlog.explanation import Station
    from aiflow.domain.backlog.selection import Barrier
    from aiflow.domain.request import RequestId
    from aiflow.usecases.backlog.why import WhyAnswer

LINKS = (ProblemKind.LINK_OUTSIDE, ProblemKind.BROKEN_LINK)
MOST_DEPTH = 10  # deeper stations are written below each other


def show_why(session: CliSession, why: WhyAnswer) -> None:
    """Show the request's state, what keeps it and how to fix that, then the chain of what it waits for."""
    first, stations = why.first, why.stations
    heading(_headline(session, why))
    codes = [barrier.reason_code for barrier in first.barriers]
    width = max(map(len, (*codes, _waits_with(first) or "")))
    for barrier, invalid in first.explained:
        say(describe(barrier, session.texts, invalid), f"  {paint(barrier.reason_code.ljust(width), 'yellow')}  ")
    show_warnings(session, why.warnings)
    _show_stop(session, first, width)
    _show_task(session, first)
    for file in first.invalid:
        is_link = any(problem.kind in LINKS for problem in file.problems)
        say(session.texts("why.mend_link" if is_link else "why.edit_file", path=clean(file.where)), "    → ")
    is_archived = first.request is not None and first.request.status is RequestStatus.ARCHIVED
    if not is_archived:  # an archived request need not be fixed
        _show_actions(session, first, "    ")
    if first.request is not None:
        warn_of_misspelt_keys(session, first.request_id)
    if len(stations) == 1:
        return
    click.echo()
    by_id = {station.request_id: station for station in stations}
    for station in stations[1:]:
        indent = "  " * min(station.depth, MOST_DEPTH)
        say(_sentence(session, station, by_id), indent)
        _show_actions(session, station, f"{indent}  ")


def _show_actions(session: CliSession, station: Station, indent: str) -> None:
    """Show how to fix what keeps a request, and that a person can do what its run could not."""
    for action in station.actions:
        click.echo(f"{indent}→ {clean(said(action, session.texts))}")
    if station.by_hand is not None:
        say(session.texts("why.by_hand", command=station.by_hand), f"{indent}→ ")


def show_warnings(session: CliSession, warnings: tuple[Barrier, ...]) -> None:
    """Say what keeps a request from nothing and should be known before it runs."""
    for warning in warnings:
        say(describe(warning, session.texts), f"  {paint(warning.reason_code, 'yellow')}  ")


def _waits_with(first: Station) -> str | None:
    """Return the reason with which the request's run waits, where no barrier says it."""
    is_told = first.run is None or first.run.is_waiting or LOST_RUN in first.barriers
    is_told |= any(barrier.reason_code == first.stopped_for for barrier in first.barriers)
    return None if is_told else first.stopped_for


def _show_stop(session: CliSession, first: Station, width: int) -> None:
    """Say what the request's run waits for, and since when."""
    code, run = _waits_with(first), first.run
    if code is None or run is None:
        return
    title, now = session.texts.message(code, {}).title, session.now()
    told = with_age(title, run.changed_at, now, session.texts)
    say(told, f"  {paint(code.ljust(width), 'yellow')}  ")
    if session.is_merged(first.request_id, run):
        say(session.texts("why.merged", commit=(run.merging_as or "")[:12]), "  ")


def _show_task(session: CliSession, first: Station) -> None:
    """Name the task of the queue that the request's run is worked on for."""
    run = first.run
    if run is None or run.task is None or not (run.is_active or first.stopped_for):
        return
    from aiflow.cli.views.task_hints import task_action

    look = task_action(session, ActionKind.QUEUE_SHOW, run.task)
    say(session.texts("why.task", run_id=run.run_id, command=look), "  ")


def _headline(session: CliSession, why: WhyAnswer) -> str:
    """Show in one line the state of the request."""
    texts, first, request = session.texts, why.first, why.first.request
    title = clean(request.title) if request else ""
    facts = {"request_id": first.request_id, "title": title, "status": request.status if request else ""}
    if request is None:
        return texts("why.invalid", **facts)
    if why.place is not None:
        return texts("why.next" if why.place == 1 else "why.place", place=why.place, **facts)
    if LOST_RUN in first.barriers:
        return texts("why.stopped", **facts)
    if why.is_interrupted or why.is_continued:
        return texts("why.interrupted" if why.is_interrupted else "why.continued", **facts)
    if request.status in (RequestStatus.DONE, RequestStatus.ARCHIVED, RequestStatus.RUNNING):
        return texts(f"why.{request.status}", **facts)
    return texts("why.stopped", **facts)


def _sentence(session: CliSession, station: Station, by_id: dict[RequestId, Station]) -> str:
    """Write one link of the chain: who waits for whom, and the state of that one (SEL-5)."""
    texts = session.texts
    facts = {"waiting": station.waited_for_by, "request_id": station.request_id}
    if station.request is None:
        key = "why.chain_invalid" if station.invalid else "why.chain_missing"
        return texts(key, **facts)
    state = texts(f"status.{station.request.status}")
    run = station.run
    if station.stopped_for and not (run is not None and run.is_active):
        state += f": {station.stopped_for}"
        state = with_age(state, run.changed_at if run else None, session.now(), texts)
    sentence = texts("why.chain", state=state, **facts)
    waits_for = [wanted for wanted in station.waits_for if wanted in by_id]
    return sentence + (texts("why.chain_on", ids=", ".join(waits_for)) if waits_for else "")
