"""Runs as people read them: how each ended, how long it took, what it cost, and its branch."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.layout import cut, display_width, pad
from aiflow.cli.terminal.lines import duration_text
from aiflow.cli.terminal.render import ago, clean, is_terminal, paint, table, terminal_width
from aiflow.cli.views.run import RUN_COLOURS
from aiflow.domain.lifecycle import RunState
from aiflow.domain.runs.worktree import branch_name
from aiflow.usecases.shapes.usage_words import money, short_number

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.run_summary import RunList, RunRecord, RunSummary
    from aiflow.messages import Texts

NAMES = ("run_id", "request", "state", "reason", "took", "cost", "changed")


def show_runs(session: CliSession, found: RunList) -> None:
    """List runs: a line each in a pipe; on a terminal the branch, which is long, is below its run."""
    texts = session.texts
    if not found.runs:
        click.echo(texts("runs.none"))
        return
    headers = [texts(f"column.{name}") for name in (*NAMES, "branch")]
    rows = [_row(session, owner, run) for owner, run in found.runs]
    if is_terminal():
        for row in rows:
            _show_block(row)
    else:
        table(headers, rows)
    if found.total > len(found.runs):
        click.echo(texts("runs.more", count=found.total - len(found.runs)))


def _row(session: CliSession, owner: str, run: RunSummary) -> list[str]:
    """Return a run's cells, in the order of the names, then its branch."""
    texts, record = session.texts, run.record
    took = duration_text(timedelta(seconds=record.worked_seconds), texts) if record else ""
    changed = ago(run.changed_at, session.now(), texts) if run.changed_at else ""
    branch = branch_name(owner, run.run_id)
    return [run.run_id, owner, run.state.value, run.reason_code or "", took, _cost(record, texts), changed, branch]


def _cost(record: RunRecord | None, texts: Texts) -> str:
    """Say what a run cost, or the tokens if its agent does not report that; nothing is known of one that is lost."""
    if record is None:
        return ""
    if record.cost_usd:
        return money(record.cost_usd)
    return texts("usage.tokens", tokens=short_number(record.tokens)) if record.tokens else "-"


def _show_block(row: list[str]) -> None:
    """Write a run on a line and what it took below it; neither its id nor its branch is cut."""
    run_id, owner, state, reason, took, cost, changed, branch = (clean(cell) for cell in row)
    head = f"{run_id}  {owner}  "
    room = max(1, terminal_width() - display_width(head) - len(state) - 2)
    click.echo(f"{head}{paint(state, RUN_COLOURS.get(RunState(state)))}  {cut(reason, room)}".rstrip())
    facts = "  ".join(filter(None, (pad(took, 8), pad(cost, 10), changed)))
    line = f"  {facts}  {branch}"
    if display_width(line) <= terminal_width():
        click.echo(f"  {facts}  {paint(branch, 'bright_black')}")
    else:
        click.echo(f"  {facts}")
        click.echo(f"  {paint(branch, 'bright_black')}")
