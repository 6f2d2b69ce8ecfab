"""`aiflow queue runners`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.queue_session import namespace_option, open_view
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.views.runners import show_runners
from aiflow.errors import BadInputError
from aiflow.usecases.queue.runners import list_runners
from aiflow.usecases.shapes.tasks import runner_list, runner_state

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession


@make_command("runners", below="queue")
@option("--all", "is_all", is_flag=True, help="option.queue.all")
@namespace_option()
def command(session: CliSession, as_json: bool, is_all: bool, namespace: str | None) -> None:  # noqa: FBT001
    """List the runners."""
    if is_all and namespace is not None:
        raise BadInputError(detail=session.texts("queue.all_alone"), hint="aiflow queue runners --help")
    view = open_view(session, namespace, is_quiet=as_json)
    found = list_runners(view, is_all=is_all)
    if as_json:
        print_json(runner_list(found.runners, found.now, found.timeout_seconds))
        return
    at_work = [(each, is_gone) for each, is_gone in found.runners if not each.is_at_rest]
    if at_work:
        states = [runner_state(each, found.now, found.timeout_seconds, is_gone=is_gone) for each, is_gone in at_work]
        shown = [(each, state) for (each, _), state in zip(at_work, states, strict=True)]
        show_runners(shown, found.now, session.texts, has_namespaces=is_all)
    else:
        key = "runners.none_all" if is_all else "runners.none"
        click.echo(session.texts(key, namespace=view.namespace, command=view.desk.start))
    if found.total > len(at_work):
        click.echo(session.texts("runners.stopped", count=found.total - len(at_work)))
