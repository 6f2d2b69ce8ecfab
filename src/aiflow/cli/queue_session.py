"""What the commands about the queue share: the store that the settings name, a namespace of it, and their options."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import click

from aiflow.cli.options import F, option
from aiflow.cli.terminal.store_progress import open_queue_store
from aiflow.domain.queue.namespace import check_namespace
from aiflow.errors import NotFoundError
from aiflow.settings.table import LOCAL_STORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from click.shell_completion import CompletionItem

    from aiflow.cli.session import CliSession
    from aiflow.messages import Texts
    from aiflow.usecases.queue.desk import StoreView

COMPLETED_TASKS = 50


def open_view(
    session: CliSession, namespace: str | None = None, *, is_quiet: bool, is_to_write: bool = False
) -> StoreView:
    """Open the project's queue store for one call of the program; one of this machine's own is started if need be."""
    from aiflow.wiring import namespace_of, queue_view

    namespace_of(session.project, session.settings)  # report an invalid name before a store is started
    if namespace is not None:
        check_namespace(namespace)
    store = open_queue_store(session, is_quiet=is_quiet, is_to_write=is_to_write, is_all_told=True)
    return queue_view(session.project, session.settings, session.journal, store, namespace)


@contextlib.contextmanager
def hinting(texts: Texts) -> Iterator[None]:
    """Add to an error about an unknown task which one may have been meant."""
    try:
        yield
    except NotFoundError as error:
        if meant := error.context.get("meant"):
            error.context["detail"] = texts("cli.did_you_mean", name=meant)
        raise


def namespace_option() -> Callable[[F], F]:
    """Declare the option that chooses another namespace than the settings'."""
    return option("--namespace", metavar="NAME", help="option.namespace")


def task_argument(**settings: Any) -> Callable[[F], F]:
    """Declare the argument that names tasks, completed from the store."""
    return click.argument("task_ids", metavar="TASK...", nargs=-1, shell_complete=complete_task, **settings)


def complete_task(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the ids of the newest tasks; nothing is started for that."""
    from click.shell_completion import CompletionItem

    from aiflow.cli.session import session_of
    from aiflow.errors import AiflowError
    from aiflow.usecases.queue.look import TaskFilter, list_tasks

    session = session_of(ctx)
    try:
        if not _answers(session):
            return []
        queue = open_view(session, ctx.params.get("namespace"), is_quiet=True).desk.queue
        tasks = list_tasks(queue, TaskFilter(limit=COMPLETED_TASKS)).tasks
    except AiflowError:
        return []
    return [
        CompletionItem(task.task_id, help=f"{task.status} {task.request_id}")
        for task in tasks
        if task.task_id.startswith(incomplete)
    ]


def _answers(session: CliSession) -> bool:
    """Return whether the store can be asked without starting one."""
    from aiflow.wiring import local_store

    return session.settings.text("queue.store") != LOCAL_STORE or local_store(os.environ).status().is_running
