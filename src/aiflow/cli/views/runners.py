"""Runners as people read them: which are running, what each works on, and since when the others were silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.layout import display_width, pad
from aiflow.cli.terminal.render import ago, clean, is_terminal, paint, say, table, terminal_width

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from aiflow.domain.queue.runner import Runner
    from aiflow.messages import Texts

ALIVE, OTHERWISE = "●", "○"
GAP = "  "
INDENT = "    "
# So many of the last columns have a line of their own on a terminal.
BELOW = 2
COLOURS = {
    "working": "green",
    "idle": "green",
    "held_up": "yellow",
    "stopping": "yellow",
    "silent": "red",
    "dead": "red",
    "stopped": "bright_black",
}


def show_runners(
    runners: Sequence[tuple[Runner, str]], now: datetime, texts: Texts, *, has_namespaces: bool = False
) -> None:
    """List runners, each with its state: whole lines in a pipe; on a terminal, its checkout is below it."""
    names = ["runner", "state", "heartbeat", "task", "version", "where", "note"]
    rows = []
    for runner, state in runners:
        dot = OTHERWISE if state in ("silent", "dead", "stopped") else ALIVE
        name = f"{dot} {runner.runner_id}"
        said = [texts(f"runner_state.{state}"), ago(runner.last_heartbeat, now, texts)]
        where = f"{runner.namespace}  {runner.checkout.id}" if has_namespaces else runner.checkout.id
        note = (runner.held_up or "") if state == "held_up" else ""
        rows.append([name, *said, runner.task_id or "-", runner.version or "-", where, note])
    headers = [texts(f"column.{name}") for name in names]
    if not is_terminal():
        table(headers, rows)
        return
    _show_blocks(headers, rows, [state for _, state in runners])


def _show_blocks(headers: list[str], rows: list[list[str]], states: list[str]) -> None:
    shown = [[clean(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(map(display_width, column)) for column in zip(*shown, strict=True)][:-BELOW]
    is_narrow = sum(widths) + len(GAP) * (len(widths) - 1) > terminal_width()
    if not is_narrow:
        click.echo(paint(GAP.join(map(pad, shown[0][:-BELOW], widths)).rstrip(), is_bold=True))
    for row, state in zip(shown[1:], states, strict=True):
        cells = [*row[:-BELOW]] if is_narrow else list(map(pad, row[:-BELOW], widths))
        cells[1] = paint(cells[1], COLOURS[state])
        if is_narrow:
            click.echo(cells[0])
            say(GAP.join(cells[2:]), INDENT + cells[1] + GAP)
        else:
            click.echo(GAP.join(cells).rstrip())
        for below in filter(None, row[-BELOW:]):
            say(below, INDENT)
