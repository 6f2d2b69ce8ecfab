"""`aiflow issues watch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.failure import report
from aiflow.cli.issues_session import open_room
from aiflow.cli.options import command as make_command
from aiflow.cli.queue_session import open_view
from aiflow.cli.running import catching_signals, expect_to_stay
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.views.run import RunView
from aiflow.usecases.issues.looks import record_trouble
from aiflow.usecases.issues.queue_up import queue_issues
from aiflow.usecases.issues.watch import IssueWatch, StartMode, watch_issues
from aiflow.usecases.shapes.issues import looked_shape
from aiflow.usecases.shapes.runs import run_result
from aiflow.wiring import system_time

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.issues.repository import LookedAfter
    from aiflow.domain.runs.run import Run
    from aiflow.errors import AiflowError
    from aiflow.usecases.engine import Engine


@make_command("watch", below="issues")
def command(session: CliSession, as_json: bool) -> None:  # noqa: FBT001
    """Read the issues again and again, and start those that are ready."""
    room, settings = open_room(session), session.settings
    room.host()  # report a missing token at once
    expect_to_stay()
    view = RunView(session.texts, is_quiet=as_json, stopping=session.texts("run.cancelling"))
    telling = _Telling(session, view, as_json=as_json)

    def queue(engine: Engine) -> None:
        queue_issues(engine, room.work, lambda: open_view(session, is_quiet=as_json, is_to_write=True).desk)

    watch = IssueWatch(
        room.work,
        settings.number("github.poll_seconds"),
        StartMode(settings.text("github.start")),
        looked=telling.looked,
        heard=telling.heard,
        refused=lambda error: report(error, is_json=as_json),
        ended=telling.ended,
        queue=queue,
    )
    if not as_json:
        click.echo(session.texts("issues.watching", repo=settings.text("github.repo")))
    with catching_signals(view.heard) as interrupts, view:
        watch_issues(session.engine(interrupts, view), watch)


class _Telling:
    """Says what a watch does, to a person or to a program."""

    def __init__(self, session: CliSession, view: RunView, *, as_json: bool) -> None:
        self._session, self._view, self._as_json = session, view, as_json

    def looked(self, found: LookedAfter) -> None:
        """Report to a program a look that found something."""
        if self._as_json and found.tended:
            print_json(looked_shape(found))

    def heard(self, trouble: AiflowError | None) -> None:
        """Report a problem with GitHub, and its end."""
        record_trouble(self._session.journal, system_time(), trouble)
        if trouble is not None:
            report(trouble, is_json=self._as_json)
        elif not self._as_json:
            click.echo(self._session.texts("issues.back"))

    def ended(self, run: Run) -> None:
        """Report how a run ended."""
        if self._as_json:
            print_json(run_result(run))
        else:
            self._view.finish(run)
