"""`aiflow queue store`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.terminal.layout import display_width, pad
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import clean, say
from aiflow.cli.terminal.store_progress import store_progress
from aiflow.cli.waiting import until_ctrl_c
from aiflow.domain.reasons import ExitCode
from aiflow.errors import BadInputError
from aiflow.usecases.shapes.store import describe_obstacles, store_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.queue.store_obstacles import Obstacles
    from aiflow.messages import Texts
    from aiflow.ports.tasks import LocalStore, StoreStatus

LINES = 50
ROTATE_KEY = "rotate-key"
ACTIONS = ("start", "stop", "status", "logs", ROTATE_KEY)


@make_command("store", is_lenient=True, below="queue")
@click.argument("action", type=click.Choice(ACTIONS), metavar="|".join(ACTIONS), required=False)
@option("-n", "lines", type=click.IntRange(min=0), metavar="N", help="option.store.lines")
@option("-f", "--follow", is_flag=True, help="option.store.follow")
def command(session: CliSession, as_json: bool, action: str | None, lines: int | None, follow: bool) -> None:  # noqa: FBT001
    """Start, stop or look at the queue store of this machine; no project is needed."""
    from aiflow.wiring import local_store

    if action is None:
        raise click.exceptions.NoArgsIsHelpError(click.get_current_context())
    if action != "logs" and (lines is not None or follow):
        raise BadInputError(detail=session.texts("store.only_logs"), hint="aiflow queue store --help")
    store = local_store(os.environ)
    if action == "logs":
        _logs(session, store, LINES if lines is None else lines, follow and not as_json, as_json=as_json)
        return
    title, status = _act(session, store, action, is_quiet=as_json)
    lack = store.lack() if action == "status" and not status.is_running else None
    if as_json:
        print_json({"store": store_shape(status, lack)})
    else:
        _show(session.texts, status, title)
        if action == "status" and not status.is_running:
            _show_way_on(session.texts, lack)
        if title == "store.stopped":
            _show_runners(session.texts)
    if action == "status" and not status.is_running:
        raise click.exceptions.Exit(int(ExitCode.ENVIRONMENT))


def _act(session: CliSession, store: LocalStore, action: str, *, is_quiet: bool) -> tuple[str, StoreStatus]:
    """Start or stop the store; return the key of its message (none for `status`), and the state of the store."""
    if action in ("start", ROTATE_KEY):
        with store_progress(session.texts, is_quiet=is_quiet) as progress:
            was_running = store.status().is_running
            status = store.start(progress, is_key_new=action == ROTATE_KEY)
        if action == ROTATE_KEY:
            return "store.key_changed", status
        return "store.running" if was_running else "store.started", status
    if action == "stop":
        return "store.stopped" if store.stop() else "store.was_stopped", store.status()
    return "", store.status()


def _show(texts: Texts, status: StoreStatus, title: str) -> None:
    """Write what is known of the store."""
    click.echo(texts(title or ("store.running" if status.is_running else "store.not_running")))
    if not status.is_running:
        if status.problem:
            say(texts("store.problem", problem=describe_obstacles(status.problem, texts)))
        return
    how = texts(f"store.by_{status.how}", pid=status.pid or "", version=status.version or "")
    fields = {"endpoint": status.endpoint, "how": how, "data": status.data, "log": status.log}
    labels = {name: texts(f"store.field.{name}") for name in fields}
    width = max(display_width(label) for label in labels.values())
    for name, value in fields.items():
        click.echo(f"  {pad(labels[name], width)}  {clean(value or '')}")


def _show_way_on(texts: Texts, lack: Obstacles | None) -> None:
    """Say how a store that does not run is started, or what is missing for that and what helps."""
    if lack is None:
        say(texts("store.how_to_start"))
        return
    problem = describe_obstacles(lack, texts)
    say(texts("store.cannot_start", problem=problem))
    for action in texts.message("STORE_NOT_INSTALLED", {**lack.facts, "problem": problem}).actions:
        say(action.typed, "  → ")


def _show_runners(texts: Texts) -> None:
    """Say who misses the store from now on."""
    from aiflow.wiring import count_listeners

    runners = count_listeners(os.environ)
    if runners:
        say(texts("store.runners", runners=runners))


def _logs(session: CliSession, store: LocalStore, lines: int, follow: bool, *, as_json: bool) -> None:  # noqa: FBT001
    """Show the end of the log, and what is added if that is wanted."""
    if follow:
        with until_ctrl_c():
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
