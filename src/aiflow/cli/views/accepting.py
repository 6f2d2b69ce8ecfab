"""What is about to be accepted, and the question whether to: only a person at a terminal is asked (REQ-6)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.render import clean, heading, is_terminal, table
from aiflow.domain.lifecycle import RunState
from aiflow.errors import AiflowError
from aiflow.usecases.runs.accept_all import awaiting_acceptance
from aiflow.usecases.runs.diff import diff_run

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.runs.run import Run
    from aiflow.domain.runs.worktree import RunDiff
    from aiflow.usecases.engine import Engine


def is_asked(*, as_json: bool, is_sure: bool) -> bool:
    """Return whether a person is there to be asked, and has not said yes already."""
    return not as_json and not is_sure and sys.stdin.isatty() and is_terminal()


def ask_for_one(session: CliSession, run: Run) -> None:
    """Show what a run changed, and ask; a run that cannot be accepted is left to the code that says why."""
    found = _diff(session.engine(), run)
    if run.state is not RunState.DONE or run.accepted_as or found is None:
        return
    from aiflow.cli.views.diff import show_files

    click.echo(clean(run.title))
    show_files(session, found)
    click.echo()
    base = run.place.base_branch
    click.confirm(session.texts("accept.confirm", request_id=run.request_id, base=base), abort=True)


def ask_for_all(session: CliSession) -> None:
    """Show how much each run changed that waits for acceptance, and ask once for all of them."""
    engine = session.engine()
    runs = awaiting_acceptance(engine)
    if not runs:
        return
    heading(session.texts("accept.upcoming", count=len(runs)))
    headers = [session.texts(f"column.{name}") for name in ("id", "files", "added", "deleted", "title")]
    table(headers, [[run.request_id, *_counts(_diff(engine, run)), run.title] for run in runs])
    click.echo()
    click.confirm(session.texts("accept.confirm_all", count=len(runs)), abort=True)


def _diff(engine: Engine, run: Run) -> RunDiff | None:
    try:
        return diff_run(engine, run)
    except AiflowError:  # accepting it meets the same, and says what to do
        return None


def _counts(found: RunDiff | None) -> tuple[str, str, str]:
    if found is None or found.is_gone:
        return ("-", "-", "-")
    added, deleted = (sum(getattr(file, name) for file in found.files) for name in ("added", "deleted"))
    return (str(len(found.files)), f"+{added}", f"-{deleted}")
