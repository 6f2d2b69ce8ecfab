"""One run on a page: its state, its steps, why it stopped, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.layout import pad
from aiflow.cli.terminal.lines import moment_text
from aiflow.cli.terminal.render import clean, heading, paint, say, table
from aiflow.cli.views.run import RUN_COLOURS, show_end
from aiflow.cli.views.task_hints import task_fact
from aiflow.domain.agents.choices import numbered
from aiflow.messages.commands import said
from aiflow.usecases.shapes.usage_words import use_of

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.runs.run import Run
    from aiflow.usecases.backlog.show import ShownRequest


def show_run(session: CliSession, run: Run) -> None:
    """Show one run."""
    texts = session.texts
    heading(f"{run.run_id}  {clean(run.title)}")
    facts = (
        ("request", run.request_id),
        ("task", task_fact(session, run.task)),
        ("agent", run.agent),
        ("branch", run.place.branch),
        ("worktree", run.place.path),
        ("usage", use_of(run.usage, texts)),
        ("quota", moment_text(run.waits_until) if run.waits_until else ""),
        ("replaces", run.replaces or ""),
        ("replaced_by", run.replaced_by or ""),
        ("continues", run.continues.run_id if run.continues else ""),
        ("continued_by", run.continued_by or ""),
    )
    click.echo("  " + pad(texts("fact.state"), 14) + paint(run.state, RUN_COLOURS.get(run.state)))
    for name, value in facts:
        if value:
            say(value, "  " + pad(texts(f"fact.{name}"), 14))
    _show_steps(session, run)
    show_end(run, texts)


def _show_steps(session: CliSession, run: Run) -> None:
    if not run.plan:
        return
    texts = session.texts
    click.echo()
    rows = []
    for step in run.plan:
        work = run.steps.get(step.id)
        is_done = work is not None and work.is_done
        is_current = step.id == run.current_step_id and not is_done
        state = texts("report.done") if is_done else texts("fact.step_now" if is_current else "report.open")
        no_commit = texts("report.no_changes") if is_done else ""
        commit = work.commit[:12] if work and work.commit else no_commit
        rows.append([step.id, state, commit, step.title])
    table([texts(f"report.column.{name}") for name in ("step", "state", "commit", "title")], rows)


def show_way_on(session: CliSession, shown: ShownRequest) -> None:
    """Show what a stopped run asks, and the command for the recommended next step."""
    run = shown.newest
    if run is not None and run.waits_until is not None:
        say(session.texts("show.quota", until=moment_text(run.waits_until)), "  " + pad("", 14))
    if run is not None and run.error is not None and run.error.question:
        say(run.error.question, "  " + pad(session.texts("run.question").removesuffix(":").lower(), 14))
        for choice in numbered(run.error.choices):
            say(choice, "  " + pad("", 14))
    if run is not None and run.pull_url:
        say(session.texts("report.pull", url=run.pull_url), "  " + pad("", 14))
    for action in shown.station.actions if shown.station else ():
        say(said(action, session.texts), "  " + pad("", 14) + "→ ")
