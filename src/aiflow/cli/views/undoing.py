"""What undoing an acceptance removes and what was built on it, and the question whether to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.render import clean, say
from aiflow.errors import AiflowError
from aiflow.usecases.runs.diff import diff_run
from aiflow.usecases.runs.undo import find_built_on

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.backlog.built_on import BuiltOn
    from aiflow.domain.runs.run import Run


def ask(session: CliSession, run: Run) -> None:
    """Show what is removed and what was built on it, and ask; if it cannot be undone, other code says why."""
    if not run.accepted_as:
        return
    engine = session.engine()
    try:
        found = diff_run(engine, run)
    except AiflowError:  # undoing it meets the same, and says what to do
        return
    from aiflow.cli.views.diff import show_files

    click.echo(clean(run.title))
    say(session.texts("undo.files", base=run.place.base_branch))
    show_files(session, found)
    show_built_on(session, run, find_built_on(engine, run))
    click.echo()
    click.confirm(session.texts("undo.confirm", request_id=run.request_id), abort=True)


def show_built_on(session: CliSession, run: Run, found: BuiltOn) -> None:
    """Name the requests that depend on a run's work, by what that means for them."""
    for name, ids in found.named():
        facts = {"ids": ", ".join(ids), "base": run.place.base_branch, "request_id": run.request_id}
        say(session.texts(f"undo.built_on.{name}", **facts), "  ")
