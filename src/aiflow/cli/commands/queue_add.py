"""`aiflow queue add`."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from aiflow.cli.failure import show
from aiflow.cli.options import PRIORITY_CHOICE, complete_request, option
from aiflow.cli.options import command as make_command
from aiflow.cli.orders import Given, orders_of
from aiflow.cli.queue_session import QueueSession, namespace_option
from aiflow.cli.render import say
from aiflow.cli.session import Session, print_json
from aiflow.cli.task_view import remark_on, work_of
from aiflow.domain.reasons import exit_code
from aiflow.errors import AiflowError
from aiflow.usecases.enqueue_work import Enqueued, enqueue_work
from aiflow.usecases.foresee_refusal import foresee_refusal
from aiflow.usecases.queue_desk import look_around
from aiflow.usecases.run_shapes import finding_shape
from aiflow.usecases.shapes import ENGLISH, error_shape
from aiflow.usecases.task_shapes import task_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiflow.domain.health import Finding
    from aiflow.messages import Texts
    from aiflow.usecases.queue_desk import QueueDesk

STDIN = "-"
# Far more than a task can carry, which is then said; what never ends is not waited for.
MOST_CHARACTERS = 16_000_000
Made = TypeVar("Made")


@make_command("add", below="queue")
@click.argument("names", metavar="[REQUEST|RUN]...", nargs=-1, shell_complete=complete_request)
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
@option("--priority", "-p", type=PRIORITY_CHOICE, help="option.queue.priority")
@option("--task-id", metavar="ID", help="option.queue.task_id")
@namespace_option()
def command(session: Session, as_json: bool, names: tuple[str, ...], namespace: str | None, **given: Any) -> None:  # noqa: FBT001
    """Hand work to a runner."""
    if given["prompt"] == STDIN:
        given["prompt"] = sys.stdin.read(MOST_CHARACTERS)
    makers = orders_of(session, Given(names, **given))

    def open_desk() -> QueueDesk:
        return QueueSession(session, namespace, is_quiet=as_json, is_to_write=True).desk()

    # Under an id of one's own the very task may be there, whatever became of it: then its request need not run again.
    desk = open_desk() if given["task_id"] else None
    is_there = desk is not None and desk.queue.get(given["task_id"]) is not None
    orders, refused = _attempt([partial(make, is_there) for make in makers])
    # What is refused needs no store.
    desk = desk or (open_desk() if orders else None)
    done: list[Enqueued] = []
    if desk is not None:
        done, late = _attempt([partial(enqueue_work, desk, order) for order in orders])
        refused += late
    if refused and len(refused) + len(done) == 1:
        raise refused[0]
    _answer(session, desk, done, refused, as_json=as_json)
    if refused:
        raise click.exceptions.Exit(int(exit_code(refused[0].reason_code)))


def _attempt(calls: Sequence[Callable[[], Made]]) -> tuple[list[Made], list[AiflowError]]:
    """Do all that can be done; what cannot does not keep the others back."""
    done: list[Made] = []
    refused: list[AiflowError] = []
    for call in calls:
        try:
            done.append(call())
        except AiflowError as error:
            refused.append(error)
    return done, refused


def _answer(
    session: Session, desk: QueueDesk | None, done: list[Enqueued], refused: list[AiflowError], *, as_json: bool
) -> None:
    """Say what was queued, who will take it, and what was refused."""
    texts = session.texts
    scene = None
    foreseen: tuple[Finding, ...] = ()
    if desk is not None and done:
        scene = look_around(desk, [each.task for each in done])
        # A runner that waits on this machine has it by now.
        done = [Enqueued(desk.queue.get(task.task_id) or task, is_new) for task, is_new in done]
        foreseen = foresee_refusal(session.engine, [each.task for each in done], scene)
    if as_json:
        tasks = [{**task_shape(each.task, scene), "is_new": each.is_new} for each in done]
        errors = [error_shape(error, texts)["error"] for error in refused]
        print_json({"tasks": tasks, "refused": errors, "warnings": [finding_shape(each, ENGLISH) for each in foreseen]})
        return
    for task, is_new in done:
        facts = {"task_id": task.task_id, "work": work_of(task, texts), "priority": task.priority.value}
        say(texts("queue.added" if is_new else "queue.there", status=task.status.value, **facts))
        if scene is not None and (remark := remark_on(task, scene, texts)):
            say(remark, "  ")
    for finding in foreseen:
        _warn(finding, texts)
    for error in refused:
        show(error)


def _warn(finding: Finding, texts: Texts) -> None:
    """Say what keeps every runner of this checkout from taking a task, and the command that mends it."""
    problem = f"{finding.reason_code}: {texts(f'check.{finding.message}', **dict(finding.facts))}"
    say(texts("queue.nobody_takes", problem=problem), "  ")
    if finding.fix:
        say(finding.fix, "    → ")
