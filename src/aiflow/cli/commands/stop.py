"""`aiflow stop`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.terminal.lines import moment_text
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.waiting import wait_until
from aiflow.domain.auto.stopping import StopRequest
from aiflow.usecases.auto.stop import has_ended, stop_or_call_off
from aiflow.usecases.shapes.auto import stop_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.usecases.auto.stop import StopAsked


@make_command("stop", is_lenient=True)
@option("--now", is_flag=True, help="option.stop.now")
@option("--no-wait", is_flag=True, help="option.stop.no_wait")
def command(session: CliSession, as_json: bool, now: bool, no_wait: bool) -> None:  # noqa: FBT001
    """Ask the running auto-run to stop."""
    engine = session.engine()
    wish = StopRequest.NOW if now else StopRequest.AFTER_RUN
    asked = stop_or_call_off(engine, wish)
    if not as_json:
        click.echo(_say(session, asked, is_now=now))
    is_waiting = now and not no_wait and not asked.called_off
    is_ended = bool(asked.called_off) or (is_waiting and wait_until(lambda: has_ended(engine, asked.auto)))
    if as_json:
        print_json(stop_shape(wish, asked.auto, asked.run, is_ended=is_ended))
    elif is_waiting:
        click.echo(session.texts("stop.ended" if is_ended else "stop.not_yet"))


def _say(session: CliSession, asked: StopAsked, *, is_now: bool) -> str:
    """Say what will happen."""
    if asked.called_off:
        told = ({"at": moment_text(each.at), "pid": each.pid} for each in asked.called_off)
        return "\n".join(session.texts("stop.called_off", **each) for each in told)
    if asked.run is None:
        return session.texts("stop.at_once")
    key = "stop.now" if is_now else "stop.after_run"
    return session.texts(key, request_id=asked.run.request_id, run_id=asked.run.run_id)
