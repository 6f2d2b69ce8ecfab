"""Tasks as people read them: one line each with what is worth a remark below it, or one of them in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.layout import cut, display_width, pad
from aiflow.cli.terminal.render import (
    STATUS_COLOURS,
    ago,
    clean,
    heading,
    is_terminal,
    paint,
    say,
    table,
    terminal_width,
)
from aiflow.domain.queue.task import TaskAction
from aiflow.domain.untrusted import reveal
from aiflow.usecases.shapes.task_words import remark_on, work_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from aiflow.domain.queue.task import Checkout, Task
    from aiflow.domain.queue.why_waiting import QueueScene
    from aiflow.messages import Texts

GAP = "  "
INDENT = "    "
FACT_WIDTH = 16


def show_tasks(tasks: Sequence[tuple[Task, QueueScene]], texts: Texts, *, has_namespaces: bool = False) -> None:
    """List tasks: whole lines in a pipe; on a terminal the remark is below its task, and an id is never cut."""
    names = ["task", "status", "priority", "age", "work"]
    rows = [
        [
            task.task_id,
            task.status.value,
            task.priority.value,
            ago(task.created_at, scene.now, texts),
            work_of(task, texts),
        ]
        for task, scene in tasks
    ]
    remarks = [remark_of(task, scene, texts) for task, scene in tasks]
    if has_namespaces:
        names.insert(0, "namespace")
        rows = [[task.namespace, *row] for (task, _), row in zip(tasks, rows, strict=True)]
    headers = [texts(f"column.{name}") for name in names]
    if not is_terminal():
        table([*headers, texts("column.note")], [[*row, remark] for row, remark in zip(rows, remarks, strict=True)])
        return
    _show_blocks(headers, rows, remarks, status_at=names.index("status"))


def remark_of(task: Task, scene: QueueScene, texts: Texts) -> str:
    """Say why a task is not taken, who works on it, or how it ended."""
    return remark_on(task, scene, texts, lambda at: ago(at, scene.now, texts))


def _show_blocks(headers: list[str], rows: list[list[str]], remarks: list[str], status_at: int) -> None:
    """Write each task on a line, or on two where the terminal is too narrow for that, and its remark below."""
    shown = [[clean(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(map(display_width, column)) for column in zip(*shown, strict=True)]
    room = terminal_width() - sum(widths[:-1]) - len(GAP) * (len(widths) - 1)
    is_narrow = room < display_width(headers[-1]) + len(GAP)
    if not is_narrow:
        click.echo(paint(GAP.join(map(pad, shown[0], widths)).rstrip(), is_bold=True))
    for row, remark in zip(shown[1:], remarks, strict=True):
        cells = row if is_narrow else list(map(pad, row[:-1], widths))
        cells[status_at] = paint(cells[status_at], STATUS_COLOURS.get(row[status_at]))
        if is_narrow:
            click.echo(GAP.join(cells[:status_at]))
            facts = INDENT + GAP.join(cells[status_at:-1]) + GAP
            click.echo(facts + cut(row[-1], max(1, terminal_width() - display_width(facts))))
        else:
            click.echo(GAP.join([*cells, cut(row[-1], room)]))
        if remark:
            say(remark, INDENT)


def show_task(task: Task, prompt: str, scene: QueueScene, texts: Texts, place: Checkout | None = None) -> None:
    """Show one task in full; `place` is the checkout that its work is in."""
    heading(f"{task.task_id}  {work_of(task, texts)}")
    status = paint(task.status.value, STATUS_COLOURS.get(task.status.value))
    click.echo(GAP + pad(texts("fact.status"), FACT_WIDTH) + status)
    if remark := remark_of(task, scene, texts):
        _fact("", remark)
    _fact(texts("fact.priority"), task.priority.value)
    _fact(texts("fact.namespace"), task.namespace)
    where = place or task.checkout
    _fact(texts("fact.checkout"), where.id if where else texts("task.anybody"))
    for name, value in (
        ("request_id", "" if task.action is TaskAction.AUTO_RUN else task.request_id),
        ("run", task.run_id),
        ("runner", task.claimed_by),
        ("options", ", ".join(f"{name}={value}" for name, value in task.options.items())),
        ("predecessor", task.predecessor),
        ("successor", task.successor),
    ):
        if value:
            _fact(texts(f"fact.{name}"), value)
    for name, moment in (("created_at", task.created_at), ("updated_at", task.updated_at)):
        _fact(texts(f"column.{name}"), _moment(moment, scene.now, texts))
    if prompt:
        click.echo()
        click.echo("\n".join(map(clean, reveal(prompt).strip("\r\n").splitlines())))


def _moment(moment: datetime, now: datetime, texts: Texts) -> str:
    return texts("fact.moment", moment=f"{moment.astimezone():%Y-%m-%d %H:%M:%S}", ago=ago(moment, now, texts))


def _fact(name: str, value: str) -> None:
    say(value, GAP + pad(name, FACT_WIDTH))
