"""`aiflow logs`."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option, target_argument
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import clean
from aiflow.cli.waiting import until_ctrl_c
from aiflow.usecases.runs.find import find_run
from aiflow.usecases.runs.logs import follow_logs, log_number, read_logs
from aiflow.usecases.shapes.runs import logs_shape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiflow.cli.session import CliSession
    from aiflow.domain.request import RequestId


@make_command("logs", is_lenient=True)
@target_argument()
@option("-s", "--step", metavar="STEP", help="option.logs.step")
@option("-n", "lines", type=click.IntRange(min=0), metavar="N", help="option.logs.lines")
@option("-f", "--follow", is_flag=True, help="option.logs.follow")
def command(
    session: CliSession,
    as_json: bool,  # noqa: FBT001
    target: RequestId,
    step: str | None,
    **how: Any,
) -> None:
    """Show the logs of a run."""
    engine = session.engine()
    run = find_run(engine, target)
    number = log_number(run, step)
    logs = read_logs(engine, run, number)
    if as_json:
        print_json(logs_shape(run, logs))
        return
    shown = [line for log in logs for line in log.text.splitlines()]
    wanted = shown if how["lines"] is None else shown[max(0, len(shown) - how["lines"]) :]
    if how["follow"]:
        with until_ctrl_c():
            _show(chain(wanted, follow_logs(engine, run, logs, number)))
        return
    _show(wanted)
    if not shown:
        click.echo(session.texts("logs.none"))


def _show(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(clean(line))
