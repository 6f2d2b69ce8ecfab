"""`aiflow queue counts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.cli.options import command as make_command
from aiflow.cli.options import option
from aiflow.cli.queue_session import namespace_option, open_view
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.progress import counting
from aiflow.cli.terminal.render import table
from aiflow.domain.lifecycle import TaskStatus
from aiflow.errors import BadInputError
from aiflow.usecases.queue.counts import count_tasks
from aiflow.usecases.shapes.tasks import counts_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.messages import Texts


@make_command("counts", below="queue")
@option("--all", "is_all", is_flag=True, help="option.queue.all")
@namespace_option()
def command(session: CliSession, as_json: bool, is_all: bool, namespace: str | None) -> None:  # noqa: FBT001
    """Count tasks by status."""
    if is_all and namespace is not None:
        raise BadInputError(detail=session.texts("queue.all_alone"), hint="aiflow queue counts --help")
    view = open_view(session, namespace, is_quiet=as_json)
    with counting(session.texts) as progress:
        found = count_tasks(view, progress, is_all=is_all)
    shapes = [counts_shape(name, counts) for name, counts in found.items()]
    if as_json:
        print_json({"namespaces": shapes} if is_all else shapes[0])
    else:
        show_counts(shapes, session.texts)


def show_counts(shapes: list[dict[str, Any]], texts: Texts) -> None:
    """Show the tasks of namespaces, counted."""
    headers = [texts("column.namespace"), *(status.value for status in TaskStatus), texts("column.total")]
    rows = [[shape["namespace"], *map(str, shape["counts"].values()), str(shape["total"])] for shape in shapes]
    table(headers, rows)
