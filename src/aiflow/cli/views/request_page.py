"""One request on a page: its state, its runs, the next step, and its text with everything in it made visible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.layout import pad
from aiflow.cli.terminal.render import STATUS_COLOURS, ago, clean, heading, paint, say
from aiflow.cli.warnings import warn_of_misspelt_keys
from aiflow.domain.untrusted import reveal
from aiflow.usecases.backlog.hidden_text import hidden_in, hidden_words
from aiflow.usecases.shapes.backlog import describe, describe_problem

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import Request
    from aiflow.messages import Texts
    from aiflow.usecases.backlog.show import BrokenRequest, ShownRequest


def show_page(session: CliSession, shown: ShownRequest) -> None:
    """Show one request."""
    texts, request = session.texts, shown.request
    heading(f"{request.id}  {clean(reveal(request.title))}")
    click.echo(
        "  " + pad(texts("fact.status"), 14) + paint(texts(f"status.{request.status}"), STATUS_COLOURS[request.status])
    )
    _fact(texts("fact.priority"), request.priority)
    for barrier in shown.barriers:
        if barrier.reason_code != "NOT_READY":
            _fact("", f"{barrier.reason_code}  {describe(barrier, texts)}")
    for name, value in (
        ("depends_on", ", ".join(request.depends_on)),
        ("labels", ", ".join(map(reveal, request.labels))),
        ("created_at", request.created_at.isoformat() if request.created_at else ""),
        ("updated_at", request.updated_at.isoformat() if request.updated_at else ""),
        ("found_in", request.found_in or ""),
        ("path", request.where),
    ):
        if value:
            _fact(texts(f"column.{name}"), clean(value))
    if shown.runs:
        _show_runs(session, shown)
    warn_of_misspelt_keys(session, request.id)
    _show_text(request, shown.body, texts)


def _show_runs(session: CliSession, shown: ShownRequest) -> None:
    """Show a request's runs, newest first: of the newest also whose task it is, and the next step."""
    from aiflow.cli.views.run_page import show_way_on
    from aiflow.cli.views.task_hints import task_fact

    texts, runs = session.texts, shown.runs
    for run in runs:
        when = ago(run.changed_at, session.now(), texts) if run.changed_at else ""
        _fact(texts("column.run"), "  ".join(filter(None, (run.run_id, run.state, run.reason_code, when))))
    if task := task_fact(session, runs[0].task):
        _fact(texts("fact.of_task"), task)
    show_way_on(session, shown)


def _show_text(request: Request, body: str, texts: Texts) -> None:
    """Show a request's text with everything in it made visible, and say what of it no agent gets."""
    if hidden := hidden_in(request, body):
        say(texts("show.hidden", hidden=hidden_words(hidden, texts)), "  ")
    click.echo()
    click.echo("\n".join(map(clean, reveal(body).strip("\r\n").splitlines())))


def _fact(name: str, value: str) -> None:
    say(value, "  " + pad(name, 14))


def show_broken(session: CliSession, broken: BrokenRequest) -> None:
    """Show files that cannot be used, with everything that is wrong with them."""
    for file in broken.files:
        heading(session.texts("show.invalid", path=clean(file.where)))
        for problem in file.problems:
            say(describe_problem(problem, session.texts), "  ")
