"""The checkout on one screen: what runs, what waits for you, what is next, the last auto-run, the cost."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.lines import GREY, Line, LinePart, duration_text, fitted, moment_text, painted, plain
from aiflow.cli.terminal.render import ago, is_terminal, terminal_width
from aiflow.cli.views.auto_lines import runs_text, worked
from aiflow.domain.backlog.selection import describe_holder
from aiflow.domain.next_action import ActionKind, NextAction
from aiflow.messages.commands import said
from aiflow.usecases.shapes.usage_words import spent_text, usage_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiflow.cli.session import CliSession
    from aiflow.domain.auto.session import AutoSession
    from aiflow.domain.auto.standing import AtWork, SpentLately, Standing
    from aiflow.domain.auto.summary import Waiting
    from aiflow.messages import Texts


# So many of what waits for a person have room on a screen of 24 lines; the rest is counted.
WAITING_SHOWN = 3
UPCOMING_SHOWN = 2
INDENT = LinePart("  ")
BETWEEN = " · "


def show_standing(session: CliSession, standing: Standing) -> None:
    """Write it: each line is cut to the terminal's width, whole in a pipe."""
    has_colours = is_terminal() and not os.environ.get("NO_COLOR")
    for line in _lines(session, standing):
        shown = fitted(line, terminal_width()) if is_terminal() else line
        click.echo(painted(shown) if has_colours else plain(shown))


def _lines(session: CliSession, standing: Standing) -> Iterator[Line]:
    texts = session.texts
    yield from _running(session, standing)
    yield ()
    yield _title(texts("overview.waiting", count=len(standing.waiting)))
    yield from _waiting(standing, texts)
    yield ()
    yield _title(texts("overview.next"))
    yield from _next(standing, texts)
    if standing.follow_ups:
        found = NextAction(ActionKind.LIST).having(found="")
        told = texts("overview.found", count=len(standing.follow_ups))
        yield (INDENT, LinePart(told, GREY), LinePart(" → "), LinePart(said(found, texts), "cyan"))
    yield ()
    yield _title(texts("overview.last"))
    yield from _last(session, standing)
    yield (*_title(texts("overview.cost", days=standing.spent.days)), LinePart(f" {_cost(standing.spent, texts)}"))


def _cost(spent: SpentLately, texts: Texts) -> str:
    """Say what the last runs cost, as far as their agents report it."""
    if not spent.runs:
        return texts("overview.none")
    used = spent_text(spent.cost_usd, spent.tokens, texts) or texts("overview.cost.untold")
    return BETWEEN.join((runs_text(spent.runs, texts), used))


def _title(text: str) -> Line:
    return (LinePart(text, is_bold=True),)


def _running(session: CliSession, standing: Standing) -> Iterator[Line]:
    """Name what is at work, and the auto-run if there is one."""
    texts, auto = session.texts, standing.auto
    yield _title(texts("overview.running"))
    for each in standing.running:
        doing = LinePart(f"  {_doing(each, session)}", GREY)
        yield (INDENT, LinePart(each.request_id, "blue"), LinePart(f"  {each.title}"))
        yield (LinePart("  "), doing)
    if auto.holder is not None:
        since = auto.holder.created_at
        told = [texts("overview.auto_on", since=ago(since, session.now(), texts) if since else "")]
        if auto.stop_request != "none":
            told.append(texts(f"overview.stop.{auto.stop_request}"))
        yield (INDENT, LinePart(BETWEEN.join(told)))
    for begins in auto.begins:
        yield (INDENT, LinePart(texts("overview.begins", at=moment_text(begins.at), pid=begins.pid)))
    if standing.turn is not None:
        yield (INDENT, LinePart(texts("overview.turn", turn=describe_holder(standing.turn))))
    elif not standing.running and auto.holder is None and not auto.begins:
        yield (INDENT, LinePart(texts("overview.none"), GREY))


def _doing(each: AtWork, session: CliSession) -> str:
    """Say how far a run is, and since when."""
    texts, at = session.texts, each.progress
    told = [at.state] if at else []
    if at and at.step_id:
        told.append(f"{at.step_id} ({at.step_number}/{at.steps}) {at.step_title}")
    if each.since is not None:
        told.insert(len(told[:1]), texts("overview.since", since=ago(each.since, session.now(), texts)))
    return BETWEEN.join(told)


def _waiting(standing: Standing, texts: Texts) -> Iterator[Line]:
    """Name what waits for the person with what to type; on one screen there is room for a few."""
    for each in standing.waiting[:WAITING_SHOWN]:
        yield from _asked(each, texts)
    if not standing.waiting:
        yield (INDENT, LinePart(texts("overview.none"), GREY))
    if len(standing.waiting) > WAITING_SHOWN:
        yield (INDENT, LinePart(texts("overview.waiting.more", count=len(standing.waiting) - WAITING_SHOWN), GREY))


def _asked(each: Waiting, texts: Texts) -> Iterator[Line]:
    said_first = () if each.is_question else (LinePart(f"  {each.reason_code}"),)
    words = " ".join((each.text if each.is_question else each.title).split())
    yield (INDENT, LinePart(each.request_id, "yellow"), *said_first, LinePart(f"  {words}"))
    if each.action is not None:
        yield (LinePart("    → "), LinePart(said(each.action, texts), "cyan"))


def _next(standing: Standing, texts: Texts) -> Iterator[Line]:
    """Name what would be started next, and how many could follow or cannot."""
    selection, continued = standing.selection, standing.continued
    for place, request in enumerate((*continued, *selection.runnable)[:UPCOMING_SHOWN]):
        goes_on = (LinePart(f"  {texts('overview.continued')}", GREY),) if place < len(continued) else ()
        yield (INDENT, LinePart(request.id, "cyan"), LinePart(f"  {request.priority}  {request.title}"), *goes_on)
    counts = {"total": selection.total, "ready": selection.ready, "runnable": len(selection.runnable)}
    none = () if selection.runnable or continued else (LinePart(texts("next.none") + "  "),)
    yield (INDENT, *none, LinePart(texts("next.stats", **counts).strip(), GREY))


def _last(session: CliSession, standing: Standing) -> Iterator[Line]:
    """Say when the last auto-run was and what came of it."""
    texts, auto = session.texts, standing.auto
    if auto.session is None:
        yield (INDENT, LinePart(texts("overview.none"), GREY))
        return
    yield (INDENT, LinePart(BETWEEN.join(_night(auto.session, session))))
    code = auto.session.reason_code
    if auto.was_cut:
        yield (INDENT, LinePart(texts("overview.was_cut"), "yellow"))
    elif auto.is_current:
        yield (INDENT, LinePart(texts("overview.still_on")))
    elif code is not None:
        yield (INDENT, LinePart(f"{code}: {texts.message(code, {'request_id': '<ID>'}).title}", GREY))


def _night(night: AutoSession, session: CliSession) -> Iterator[str]:
    texts, began, ended = session.texts, night.began_at or night.started_at, night.changed_at or session.now()
    yield f"{began.astimezone():%Y-%m-%d %H:%M}"
    yield duration_text(worked(night, ended), texts)
    yield runs_text(night.runs, texts)
    yield texts("overview.done", count=night.done)
    if used := usage_text(night.usage, texts):
        yield used
