"""`aiflow issues watch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.failure import report
from aiflow.cli.issues_session import open_room
from aiflow.cli.options import command as make_command
from aiflow.cli.running import catching_signals, expect_to_stay
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.views.run import RunView
from aiflow.usecases.issues.watch import IssueWatch, watch_issues
from aiflow.usecases.shapes.issues import looked_shape
from aiflow.usecases.shapes.runs import run_result

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.issues.repository import LookedAfter
    from aiflow.domain.runs.run import Run


@make_command("watch", below="issues")
def command(session: CliSession, as_json: bool) -> None:  # noqa: FBT001
    """Read the issues again and again, and start those that are ready."""
    room = open_room(session)
    room.host()  # who has no token is told so at once
    expect_to_stay()
    view = RunView(session.texts, is_quiet=as_json, stopping=session.texts("run.cancelling"))

    def looked(found: LookedAfter) -> None:
        if as_json and found.tended:
            print_json(looked_shape(found))

    def ended(run: Run) -> None:
        if as_json:
            print_json(run_result(run))
        else:
            view.finish(run)

    watch = IssueWatch(
        room.work,
        session.settings.number("github.poll_seconds"),
        looked,
        lambda error: report(error, is_json=as_json),
        ended,
        is_starting=session.settings.text("github.start") == "auto",
    )
    if not as_json:
        click.echo(session.texts("issues.watching", repo=session.settings.text("github.repo")))
    with catching_signals(view.heard) as interrupts, view:
        watch_issues(session.engine(interrupts, view), watch)
