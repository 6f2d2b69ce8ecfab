"""What the commands about the queue share: the store that the settings name, a namespace of it, and their options."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import click

from aiflow.cli.options import F, option
from aiflow.cli.store_progress import open_queue_store
from aiflow.domain.namespace import check_namespace
from aiflow.errors import NotFoundError
from aiflow.settings.table import LOCAL_STORE
from aiflow.usecases.queue_desk import QueueDesk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from click.shell_completion import CompletionItem

    from aiflow.cli.session import Session
    from aiflow.messages import Texts
    from aiflow.ports.tasks import QueueStore

COMPLETED_TASKS = 50


class QueueSession:
    """The queue store of one call of the program; a store of this machine's own is started if need be."""

    def __init__(
        self, session: Session, namespace: str | None = None, *, is_quiet: bool, is_to_write: bool = False
    ) -> None:
        from aiflow.wiring import namespace_of

        self.session = session
        self.own = namespace_of(session.project, session.settings)
        self.namespace = self.own if namespace is None else check_namespace(namespace)
        self.timeout_seconds = session.settings.number("queue.heartbeat_timeout_seconds")
        self.store: QueueStore = open_queue_store(session, is_quiet=is_quiet, is_to_write=is_to_write, is_all_told=True)

    def desk(self, namespace: str | None = None) -> QueueDesk:
        """Give one namespace, seen from this checkout."""
        from aiflow.wiring import checkout_of, is_runner_gone, now, open_wake

        name = namespace or self.namespace
        project = self.session.project
        return QueueDesk(
            queue=self.store.queue(name),
            runners=self.store.runners(name),
            checkout=checkout_of(project),
            locks=project.locks,
            wake=open_wake(os.environ),
            journal=self.session.journal,
            clock=now,
            chance=lambda: os.urandom(3).hex(),
            timeout_seconds=self.timeout_seconds,
            command="aiflow runner" if name == self.own else f"aiflow -c namespace={name} runner",
            is_own=name == self.own,
            is_gone=is_runner_gone,
        )


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

    from aiflow.cli.session import Session
    from aiflow.errors import AiflowError
    from aiflow.messages import Texts
    from aiflow.usecases.list_tasks import Wanted, list_tasks

    session = ctx.obj or Session(ctx.find_root().params.get("project") or ".", (), Texts("en"))
    try:
        if not _answers(session):
            return []
        queue = QueueSession(session, ctx.params.get("namespace"), is_quiet=True).desk().queue
        tasks = list_tasks(queue, Wanted(limit=COMPLETED_TASKS)).tasks
    except AiflowError:
        return []
    return [
        CompletionItem(task.task_id, help=f"{task.status} {task.request_id}")
        for task in tasks
        if task.task_id.startswith(incomplete)
    ]


def _answers(session: Session) -> bool:
    """Tell whether the store can be asked without starting one."""
    from aiflow.wiring import local_store

    return session.settings.text("queue.store") != LOCAL_STORE or local_store(os.environ).status().is_running
