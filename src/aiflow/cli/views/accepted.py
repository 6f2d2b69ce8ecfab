"""What became of the runs that were accepted together, as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.render import heading, say, table
from aiflow.domain.reasons import way_to_mend
from aiflow.messages.commands import command_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiflow.cli.session import CliSession
    from aiflow.usecases.runs.accept_all import Verdict


def show_verdicts(session: CliSession, verdicts: Sequence[Verdict]) -> None:
    """List what was accepted, and what was not with the command that helps."""
    texts = session.texts
    if not verdicts:
        click.echo(texts("accept.none"))
        return
    click.echo()
    accepted = sum(verdict.reason_code is None for verdict in verdicts)
    heading(texts("accept.counts", count=accepted, total=len(verdicts)))
    rows = [[each.run.request_id, _outcome(session, each), each.run.title] for each in verdicts]
    table([texts(f"column.{name}") for name in ("id", "outcome", "title")], rows)
    for each in verdicts:
        action = way_to_mend(each.reason_code, each.run.request_id) if each.reason_code else None
        if action is not None:
            say(command_line(action), "  → ")


def _outcome(session: CliSession, verdict: Verdict) -> str:
    commit = verdict.run.accepted_as
    return session.texts("accept.merged", commit=commit[:12]) if commit else str(verdict.reason_code)
