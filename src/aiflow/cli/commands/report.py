"""`aiflow report`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import target_argument
from aiflow.cli.render import clean
from aiflow.cli.running import find_run
from aiflow.cli.session import Session, print_json

if TYPE_CHECKING:
    from aiflow.domain.request import RequestId


@make_command("report", is_lenient=True)
@target_argument()
def command(session: Session, as_json: bool, target: RequestId) -> None:  # noqa: FBT001
    """Show the report of a run."""
    engine = session.engine()
    run = find_run(engine, target)
    text = engine.runs.report(run)
    if as_json:
        print_json({"request_id": run.request_id, "run_id": run.run_id, "report": text})
    elif text is None:
        click.echo(session.texts("report.none", run_id=run.run_id))
    else:
        shown = (line for line in text.splitlines() if not line.startswith("<!-- aiflow:"))
        click.echo("\n".join(clean(line) for line in shown))
