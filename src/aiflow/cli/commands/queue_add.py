"""`aiflow queue add`."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from aiflow.cli.failure import show
from aiflow.cli.options import PRIORITY_CHOICE, baseline_option, complete_target, option, quick_option, read_id
from aiflow.cli.options import command as make_command
from aiflow.cli.queue_session import namespace_option, open_view
from aiflow.cli.terminal.print_json import print_json
from aiflow.cli.terminal.render import say
from aiflow.cli.views.tasks import remark_of
from aiflow.domain.reasons import exit_code
from aiflow.messages.commands import command_line
from aiflow.usecases.queue.add import add_orders
from aiflow.usecases.queue.orders import TypedOrder, orders_of
from aiflow.usecases.shapes.task_words import work_of
from aiflow.usecases.shapes.tasks import added_shape

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.health import Finding
    from aiflow.messages import Texts
    from aiflow.usecases.queue.add import Added
    from aiflow.usecases.queue.desk import Desk

STDIN = "-"
# Far more than a task can carry, which is then said; what never ends is not waited for.
MOST_CHARACTERS = 16_000_000


@make_command("add", below="queue")
@click.argument("names", metavar="[REQUEST|RUN]...", nargs=-1, shell_complete=complete_target)
@option("--prompt", metavar="TEXT", help="option.queue.prompt")
@option("--auto", is_flag=True, help="option.queue.auto")
@option("--watch", is_flag=True, help="option.auto.watch")
@option("--resume", is_flag=True, help="option.queue.resume")
@option("--retry-step", is_flag=True, help="option.queue.retry_step")
@option("--replan", is_flag=True, help="option.queue.replan")
@option("--step", metavar="STEP", help="option.queue.step")
@option("-a", "--answer", help="option.resume.answer")
@option("--keep-changes", is_flag=True, help="option.resume.keep_changes")
@option("--update", is_flag=True, help="option.resume.update")
@option("--force", is_flag=True, help="option.resume.force")
@quick_option()
@baseline_option()
@option("--priority", "-p", type=PRIORITY_CHOICE, help="option.queue.priority")
@option("--task-id", metavar="ID", help="option.queue.task_id")
@namespace_option()
def command(session: CliSession, as_json: bool, names: tuple[str, ...], namespace: str | None, **given: Any) -> None:  # noqa: FBT001
    """Hand work to a runner."""
    if given["prompt"] == STDIN:
        given["prompt"] = sys.stdin.read(MOST_CHARACTERS)
    reading = partial(read_id, session=session)
    makers = orders_of(TypedOrder(names, **given), session.project.sources, session.engine, reading, session.texts)

    def open_desk() -> Desk:
        return open_view(session, namespace, is_quiet=as_json, is_to_write=True).desk

    added = add_orders(makers, given["task_id"], open_desk, session.engine)
    if as_json:
        print_json(added_shape(added.tasks, added.scene, added.refused, added.foreseen, session.texts))
    else:
        _show(added, session.texts)
    if added.refused:
        raise click.exceptions.Exit(int(exit_code(added.refused[0].reason_code)))


def _show(added: Added, texts: Texts) -> None:
    """Say what was queued, who will take it, and what was refused."""
    for task, is_new in added.tasks:
        facts = {"task_id": task.task_id, "work": work_of(task, texts), "priority": task.priority.value}
        say(texts("queue.added" if is_new else "queue.there", status=task.status.value, **facts))
        if added.scene is not None and (remark := remark_of(task, added.scene, texts)):
            say(remark, "  ")
    for finding in added.foreseen:
        _warn(finding, texts)
    for error in added.refused:
        show(error)


def _warn(finding: Finding, texts: Texts) -> None:
    """Say what keeps every runner of this checkout from taking a task, and the command that fixes it."""
    problem = f"{finding.reason_code}: {texts(f'check.{finding.message}', **dict(finding.facts))}"
    say(texts("queue.nobody_takes", problem=problem), "  ")
    if finding.fix:
        say(command_line(finding.fix), "    → ")
