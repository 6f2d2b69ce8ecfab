"""`aiflow send-back`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option, target_argument
from aiflow.cli.terminal.print_json import print_json
from aiflow.usecases.runs.accept import send_back
from aiflow.usecases.runs.find import find_newest_run
from aiflow.usecases.shapes.runs import run_result

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId


@make_command("send-back")
@target_argument()
@option("-m", "--message", help="option.send_back.message")
@option("--fresh", "is_dropped", is_flag=True, help="option.send_back.fresh")
def command(session: CliSession, as_json: bool, target: RequestId, message: str | None, is_dropped: bool) -> None:  # noqa: FBT001
    """Send a run back with a comment: its request is ready again, and the next run continues its branch."""
    engine = session.engine()
    run = find_newest_run(engine, target)
    if message is None:
        if not sys.stdin.isatty() or as_json:
            raise click.UsageError(session.texts("send_back.no_message"), click.get_current_context())
        message = str(click.prompt(session.texts("send_back.prompt"), prompt_suffix=" "))
    closed = send_back(engine, run, message, is_dropped=is_dropped)
    if as_json:
        print_json(run_result(closed))
    else:
        key = "send_back.done" if closed.is_continued_next else "send_back.done.fresh"
        click.echo(session.texts(key, request_id=run.request_id, run_id=run.run_id))
        click.echo(f"  → aiflow run {run.request_id}")
