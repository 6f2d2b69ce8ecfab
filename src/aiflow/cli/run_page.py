"""One run on a page: where it stands, its steps, why it stopped, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.layout import pad
from aiflow.cli.lines import moment_text
from aiflow.cli.render import clean, heading, paint, say, table
from aiflow.cli.run_view import RUN_COLOURS, show_end
from aiflow.cli.running import find_run
from aiflow.cli.session import print_json
from aiflow.cli.task_hints import task_fact
from aiflow.domain.choices import numbered
from aiflow.domain.explanation import explain
from aiflow.usecases.find_interrupted import with_interrupted
from aiflow.usecases.read_backlog import read_backlog
from aiflow.usecases.run_shapes import run_result
from aiflow.usecases.use_told import use_of

if TYPE_CHECKING:
    from aiflow.cli.session import Session
    from aiflow.domain.request import Request, RequestId
    from aiflow.domain.run import Run
    from aiflow.domain.run_summary import RunSummary


def show_run(session: Session, run_id: RequestId, *, as_json: bool) -> None:
    """Show one run."""
    engine = session.engine()
    run = find_run(engine, run_id)
    if as_json:
        print_json(run_result(run))
        return
    texts = session.texts
    heading(f"{run.run_id}  {clean(run.title)}")
    facts = (
        ("request", run.request_id),
        ("task", task_fact(session, run.task)),
        ("agent", run.agent),
        ("branch", run.place.branch),
        ("worktree", run.place.path),
        ("usage", use_of(run.usage, texts)),
        ("quota", moment_text(run.quota.until) if run.is_active and run.quota and not run.quota.is_over else ""),
        ("replaces", run.replaces or ""),
        ("replaced_by", run.replaced_by or ""),
    )
    click.echo("  " + pad(texts("fact.state"), 14) + paint(run.state, RUN_COLOURS.get(run.state)))
    for name, value in facts:
        if value:
            say(value, "  " + pad(texts(f"fact.{name}"), 14))
    _show_steps(session, run)
    show_end(run, texts)


def _show_steps(session: Session, run: Run) -> None:
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


def show_way_on(session: Session, request: Request, latest: RunSummary) -> None:
    """Say what a stopped run asks, and which command takes the recommended way on."""
    has_more = latest.is_waiting or latest.is_active
    run = session.engine().runs.load(request.id, latest.run_id) if has_more else None
    if run is not None and run.is_active and run.quota is not None and not run.quota.is_over:
        say(session.texts("show.quota", until=moment_text(run.quota.until)), "  " + pad("", 14))
    if run is not None and run.error is not None and run.error.question:
        say(run.error.question, "  " + pad(session.texts("run.question").removesuffix(":").lower(), 14))
        for choice in numbered(run.error.choices):
            say(choice, "  " + pad("", 14))
    engine = session.engine()
    stations = explain(request.id, with_interrupted(read_backlog(session.project.sources), engine.locks))
    for command in stations[0].commands if stations else ():
        say(command, "  " + pad("", 14) + "→ ")
