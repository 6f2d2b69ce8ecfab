"""`aiflow store`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from aiflow.cli.layout import display_width, pad
from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.render import clean, say
from aiflow.cli.session import Session, print_json
from aiflow.cli.store_progress import store_progress
from aiflow.domain.reasons import ExitCode
from aiflow.errors import BadInputError
from aiflow.usecases.store_shapes import store_shape

if TYPE_CHECKING:
    from aiflow.messages import Texts
    from aiflow.ports.tasks import LocalStore, StoreStatus

LINES = 50


@make_command("store", is_lenient=True)
@click.argument("action", type=click.Choice(["start", "stop", "status", "logs"]), metavar="start|stop|status|logs")
@option("-n", "lines", type=click.IntRange(min=0), metavar="N", help="option.store.lines")
@option("-f", "--follow", is_flag=True, help="option.store.follow")
def command(session: Session, as_json: bool, action: str, lines: int | None, follow: bool) -> None:  # noqa: FBT001
    """Start, stop or look at the queue store of this machine; no project is needed."""
    from aiflow.wiring import local_store

    if action != "logs" and (lines is not None or follow):
        raise BadInputError(detail=session.texts("store.only_logs"), hint="aiflow store --help")
    store = local_store(os.environ)
    if action == "logs":
        _logs(session, store, LINES if lines is None else lines, follow and not as_json, as_json=as_json)
        return
    if action == "start":
        with store_progress(session.texts, is_quiet=as_json) as progress:
            was_running = store.status().is_running
            store.start(progress)
        title = "store.running" if was_running else "store.started"
    elif action == "stop":
        title = "store.stopped" if store.stop() else "store.was_stopped"
    else:
        title = ""
    status = store.status()
    if as_json:
        print_json({"store": store_shape(status)})
    else:
        _show(session.texts, status, title)
        if title == "store.stopped":
            _show_runners(session.texts)
    if action == "status" and not status.is_running:
        raise click.exceptions.Exit(int(ExitCode.ENVIRONMENT))


def _show(texts: Texts, status: StoreStatus, title: str) -> None:
    """Write what is known of the store."""
    click.echo(texts(title or ("store.running" if status.is_running else "store.not_running")))
    if not status.is_running:
        if status.problem:
            say(texts("store.problem", problem=status.problem))
        if not title:
            say(texts("store.how_to_start"))
        return
    how = texts(f"store.by_{status.how}", pid=status.pid or "", version=status.version or "")
    fields = {"endpoint": status.endpoint, "how": how, "data": status.data, "log": status.log}
    labels = {name: texts(f"store.field.{name}") for name in fields}
    width = max(display_width(label) for label in labels.values())
    for name, value in fields.items():
        click.echo(f"  {pad(labels[name], width)}  {clean(value or '')}")


def _show_runners(texts: Texts) -> None:
    """Say who misses the store from now on."""
    from aiflow.wiring import count_listeners

    runners = count_listeners(os.environ)
    if runners:
        say(texts("store.runners", runners=runners))


def _logs(session: Session, store: LocalStore, lines: int, follow: bool, *, as_json: bool) -> None:  # noqa: FBT001
    """Show the end of the log, and what is added if that is wanted."""
    if follow:
        for line in store.follow(lines):
            click.echo(clean(line))
        return
    text = store.log(lines)
    if as_json:
        print_json({"log": text})
    elif not text and lines:
        click.echo(session.texts("store.no_log"))
    for line in () if as_json else text.splitlines():
        click.echo(clean(line))
