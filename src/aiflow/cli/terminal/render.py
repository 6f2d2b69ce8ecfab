"""Output for people: tables on a terminal, plain aligned text in a pipe."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.layout import cut, display_width, pad, share_out, wrap
from aiflow.domain.request import UNCLEAN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from aiflow.messages import Texts

STATUS_COLOURS = {
    "draft": "bright_black",
    "ready": "cyan",
    "running": "blue",
    "blocked": "yellow",
    "done": "green",
    "archived": "bright_black",
    "invalid": "red",
    "QUEUED": "cyan",
    "RUNNING": "blue",
    "COMPLETE": "green",
    "ERROR": "red",
    "CANCELLED": "bright_black",
}


# What a title and a note keep when the room is short.
LEAST_TITLE = 14
LEAST_LAST = 22
MOST_INDENT = 26


def is_terminal() -> bool:
    """Return whether a person looks at the output."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def say_at_once(text: str) -> None:
    """Write a line to standard error; for signal handlers: nothing is locked, and no buffered stream is touched."""
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode("utf-8", "backslashreplace"))


def is_watched() -> bool:
    """Return whether a live area makes sense: a person is watching, and the terminal can be redrawn."""
    return is_terminal() and os.environ.get("TERM") != "unknown" and not os.environ.get("CI")


def clean(text: str) -> str:
    """Take the control characters out of a text from a file: it must not command the terminal."""
    return UNCLEAN.sub("\ufffd", text.replace("\t", " ")) if not text.isprintable() else text


def paint(text: str, colour: str | None = None, *, is_bold: bool = False) -> str:
    """Colour a text, on a terminal only."""
    if not is_terminal() or os.environ.get("NO_COLOR"):
        return text
    return click.style(text, fg=colour, bold=is_bold or None)


def heading(text: str) -> None:
    """Write a line above others."""
    click.echo(paint(clean(text), is_bold=True))


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    colour_column: int | None = None,
    *,
    is_last_to_give: bool = False,
) -> None:
    """Write rows under headers: whole in a pipe; on a terminal the last two columns give way, the last one wraps.

    `is_last_to_give` is for a table in which only the last column may shrink.
    """
    shown = [[clean(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(map(display_width, column)) for column in zip(*shown, strict=True)]
    if not is_terminal():
        for row in shown:
            click.echo("  ".join(map(pad, row, widths)).rstrip())
        return
    last = len(widths) - 1
    least = {last: LEAST_LAST} | ({last - 1: LEAST_TITLE} if last > 2 and not is_last_to_give else {})
    widths = share_out(widths, terminal_width(), least)
    for number, row in enumerate(shown):
        write_row(row, widths, colour_column, is_header=number == 0)


def write_row(
    row: Sequence[str], widths: Sequence[int], colour_column: int | None = None, *, is_header: bool = False
) -> None:
    """Write one row, with as many lines as its last cell needs; its name, to be typed again, is never cut."""
    name, *others = row
    if others and display_width(name) > widths[0]:
        click.echo(paint(name, is_bold=True) if is_header else name)
        row = ["", *others]
    cells = [pad(cut(cell, width), width) for cell, width in zip(row[:-1], widths, strict=False)]
    if colour_column is not None and not is_header:
        cells[colour_column] = paint(cells[colour_column], STATUS_COLOURS.get(row[colour_column]))
    indent = sum(widths[:-1]) + 2 * (len(widths) - 1)
    for number, line in enumerate(wrap(row[-1], widths[-1])):
        text = "  ".join((*cells, line)) if number == 0 else " " * indent + line
        click.echo(paint(text.rstrip(), is_bold=True) if is_header else text.rstrip())


def terminal_width() -> int:
    """Return how many columns there are."""
    return shutil.get_terminal_size().columns


def say(text: str, prefix: str = "", *, err: bool = False) -> None:
    """Write a paragraph after a prefix; on a terminal its lines are broken and aligned."""
    stream = sys.stderr if err else sys.stdout
    indent = " " * min(display_width(unpainted(prefix)), MOST_INDENT)
    shown = [clean(line) for line in text.splitlines()] or [""]
    if stream.isatty():
        width = max(20, terminal_width() - display_width(unpainted(prefix)))
        shown = [part for line in shown for part in wrap(line, width) or [""]]
    for number, line in enumerate(shown):
        click.echo((indent if number else prefix) + line, err=err)


def unpainted(text: str) -> str:
    """Take the colours out of a text of our own, to see how wide it is."""
    return click.unstyle(text)


def ago(moment: datetime, now: datetime, texts: Texts) -> str:
    """Say how long ago something was, in the largest unit that fits."""
    seconds = max(0, int((now - moment).total_seconds()))
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= length:
            return texts(f"ago.{unit}", count=seconds // length)
    return texts("ago.seconds", count=seconds)


def with_age(text: str, moment: datetime | None, now: datetime, texts: Texts) -> str:
    """Add to a text how long ago that was, if it is known."""
    return texts("ago.behind", text=text, when=ago(moment, now, texts)) if moment else text
