"""`aiflow queue list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.queue_session import namespace_option, open_view
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.progress import counting
from aiflow.cli.views.tasks import show_tasks
from aiflow.domain.lifecycle import TaskStatus
from aiflow.errors import BadInputError
from aiflow.usecases.queue.list import list_queue
from aiflow.usecases.queue.look import TaskFilter
from aiflow.usecases.shapes.tasks import task_list

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession

STATUS_CHOICE = click.Choice([status.value for status in TaskStatus], case_sensitive=False)
USUAL_LIMIT = 20


@make_command("list", below="queue")
@option("--status", "-s", "statuses", multiple=True, type=STATUS_CHOICE, help="option.queue.status")
@option(
    "--limit",
    "-n",
    type=click.IntRange(min=1),
    metavar="N",
    default=USUAL_LIMIT,
    show_default=True,
    help="option.queue.limit",
)
@option("--start", metavar="TASK", help="option.queue.start")
@option("--all", "is_all", is_flag=True, help="option.queue.all")
@namespace_option()
def command(
    session: CliSession,
    as_json: bool,  # noqa: FBT001
    statuses: tuple[str, ...],
    namespace: str | None,
    is_all: bool,  # noqa: FBT001
    **where: int | str | None,
) -> None:
    """List tasks, by id backwards: those with an id of ours newest first, even of all namespaces."""
    if is_all and namespace is not None:
        raise BadInputError(detail=session.texts("queue.all_alone"), hint="aiflow queue list --help")
    wanted = TaskFilter(tuple(map(TaskStatus, statuses)), int(where["limit"] or USUAL_LIMIT), where["start"])  # type: ignore[arg-type]
    view = open_view(session, namespace, is_quiet=as_json)
    with counting(session.texts) as progress:
        found = list_queue(view, session.project.sources, wanted, progress, is_all=is_all)
    if as_json:
        print_json(task_list(found.tasks, None if is_all else view.namespace, found.next_start))
        return
    other = "" if view.namespace == view.own else f" --namespace {view.namespace}"
    if found.tasks:
        show_tasks(found.tasks, session.texts, has_namespaces=is_all)
        if found.next_start is not None:
            chosen = "".join(f" --status {status}" for status in statuses)
            command = f"aiflow queue list --start {found.next_start}{chosen}{' --all' if is_all else other}"
            click.echo(session.texts("queue.more", command=command))
    else:
        is_part = bool(statuses or wanted.start)
        key = "queue.no_match" if is_part else "queue.empty_all" if is_all else "queue.empty"
        click.echo(session.texts(key, namespace=view.namespace, command=f"aiflow queue add REQUEST{other}"))
