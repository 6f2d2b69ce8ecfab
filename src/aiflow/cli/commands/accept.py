"""`aiflow accept`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option, target_argument
from aiflow.cli.running import catching_signals
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.views.accepting import ask_for_all, ask_for_one, is_asked
from aiflow.cli.views.run import RunView
from aiflow.domain.reasons import exit_code
from aiflow.usecases.runs.accept import accept_run
from aiflow.usecases.runs.accept_all import accept_all
from aiflow.usecases.runs.find import find_newest_run
from aiflow.usecases.runs.update import accept_updated
from aiflow.usecases.shapes.runs import run_result

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId


@make_command("accept")
@target_argument(is_required=False)
@option("--all", "is_all", is_flag=True, help="option.accept.all")
@option("--update", is_flag=True, help="option.accept.update")
@option("-y", "--yes", "is_sure", is_flag=True, help="option.accept.yes")
def command(session: CliSession, as_json: bool, target: RequestId | None, **flags: bool) -> None:  # noqa: FBT001
    """Bring a finished run into the base branch and set its request done."""
    update = flags["update"]
    if (target is None) != flags["is_all"]:
        raise click.UsageError(session.texts("accept.which"), click.get_current_context())
    if is_asked(as_json=as_json, is_sure=flags["is_sure"]):
        ask_for_one(session, find_newest_run(session.engine(), target)) if target else ask_for_all(session)
    if target is None:
        _accept_all(session, as_json=as_json, update=update)
        return
    view = RunView(session.texts, is_quiet=as_json, stopping=session.texts("accept.stopping"))
    with catching_signals(view.heard) as interrupts, view:
        engine = session.engine(interrupts, view)
        run = (accept_updated if update else accept_run)(engine, find_newest_run(engine, target))
    if as_json:
        print_json(run_result(run))
    else:
        view.finish(run)
    if run.accepted_as is None:
        if run.error is None:
            raise click.Abort
        raise click.exceptions.Exit(int(exit_code(run.error.reason_code, run.error.cause)))


def _accept_all(session: CliSession, *, as_json: bool, update: bool) -> None:
    """Accept everything that waits, and leave with the exit code of the first that could not be accepted."""
    from aiflow.cli.views.accepted import show_verdicts
    from aiflow.usecases.shapes.accepted import verdicts_shape

    view = RunView(session.texts, is_quiet=as_json, stopping=session.texts("accept.stopping"))
    with catching_signals(view.heard) as interrupts, view:
        verdicts = tuple(accept_all(session.engine(interrupts, view), is_updating=update))
    if as_json:
        print_json(verdicts_shape(verdicts))
    else:
        show_verdicts(session, verdicts)
    for verdict in verdicts:
        if verdict.reason_code is not None:
            raise click.exceptions.Exit(int(exit_code(verdict.reason_code)))
