"""An issue's story as people read it in a terminal: what aiflow makes of it, then all that happened, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.lines import moment_text
from aiflow.cli.terminal.render import clean, heading, paint, say
from aiflow.domain.backlog.selection import Barrier
from aiflow.usecases.backlog.why import freed
from aiflow.usecases.shapes.backlog import describe

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.issues.showing import ShownIssue
    from aiflow.domain.issues.telling import StoryLine

MOST_LINES = 12


def show_story(session: CliSession, shown: ShownIssue) -> None:
    """Show an issue and its story."""
    texts, issue, request = session.texts, shown.issue, shown.request
    heading(f"{request.id}  {clean(request.title)}")
    click.echo(f"  {clean(issue.url)}")
    state = texts(f"issue.state.{request.status.value}")
    say(texts("issues.show.stands", state=state, attempts=shown.attempts, of=shown.of), "  ")
    if issue.labels:
        say(clean(", ".join(issue.labels)), "  ")
    kept = (Barrier(request.kept.reason_code, request.kept.facts),) if request.kept else ()
    for barrier in (*kept, *freed(request)):
        say(describe(barrier, texts), f"  {paint(barrier.reason_code, 'yellow')}  ")
    if shown.waits.waits_for:
        say(texts("issues.show.waits", ids=", ".join(shown.waits.waits_for)), "  ")
    if request.is_overdue:
        say(texts("issues.show.overdue"), "  ")
    click.echo()
    for line in shown.lines:
        _show_line(session, line)


def _show_line(session: CliSession, line: StoryLine) -> None:
    """Write when, who and what; then the first lines of the comment."""
    texts = session.texts
    told = texts(f"story.{line.kind.value}", who=clean(line.who), label=clean(line.label), run_id=clean(line.run_id))
    more = [texts("story.gone")] if line.is_gone else []
    more += [texts("story.no_right")] if line.may_decide is False else []
    say(" · ".join((told, *more)), f"{paint(moment_text(line.at), 'bright_black')}  ")
    said = line.text.splitlines()
    for text in said[:MOST_LINES]:
        say(clean(text), "    ")
    if len(said) > MOST_LINES:
        say(texts("story.more", count=len(said) - MOST_LINES), "    ")
