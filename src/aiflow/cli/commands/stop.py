"""`aiflow stop`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.session import Session, print_json
from aiflow.domain.auto_run import StopRequest
from aiflow.usecases.stop_auto import ask_to_stop, has_ended

if TYPE_CHECKING:
    from aiflow.usecases.engine import Engine
    from aiflow.usecases.stop_auto import Asked

WAIT_SECONDS = 30.0


@make_command("stop", is_lenient=True)
@option("--now", is_flag=True, help="option.stop.now")
@option("--no-wait", is_flag=True, help="option.stop.no_wait")
def command(session: Session, as_json: bool, now: bool, no_wait: bool) -> None:  # noqa: FBT001
    """Ask the running auto-run to stop."""
    engine = session.engine()
    asked = ask_to_stop(engine, StopRequest.NOW if now else StopRequest.AFTER_RUN)
    if not as_json:
        click.echo(_say(session, asked, is_now=now))
    is_ended = now and not no_wait and _wait(engine, asked)
    if as_json:
        print_json(_shape(asked, is_now=now, is_ended=is_ended))
    elif now and not no_wait:
        click.echo(session.texts("stop.ended" if is_ended else "stop.not_yet"))


def _say(session: Session, asked: Asked, *, is_now: bool) -> str:
    """Say what will happen."""
    if asked.run is None:
        return session.texts("stop.at_once")
    key = "stop.now" if is_now else "stop.after_run"
    return session.texts(key, request_id=asked.run.request_id, run_id=asked.run.run_id)


def _shape(asked: Asked, *, is_now: bool, is_ended: bool) -> dict[str, object]:
    run = asked.run
    return {
        "stop_request": (StopRequest.NOW if is_now else StopRequest.AFTER_RUN).value,
        "request_id": run.request_id if run else None,
        "run_id": run.run_id if run else None,
        "pid": asked.auto.pid,
        "host": asked.auto.host,
        "has_ended": is_ended,
    }


def _wait(engine: Engine, asked: Asked) -> bool:
    """Wait until auto-run has ended, as long as that may take."""
    until = time.monotonic() + WAIT_SECONDS
    while not (is_ended := has_ended(engine, asked.auto)) and time.monotonic() < until:
        time.sleep(0.1)
    return is_ended
