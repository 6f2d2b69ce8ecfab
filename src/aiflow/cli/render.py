"""Output for people: tables on a terminal, plain aligned text in a pipe."""

from __future__ import annotations

import sys
import unicodedata
from typing import TYPE_CHECKING

import click

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
}


def is_terminal() -> bool:
    """Tell whether a person looks at the output."""
    import os

    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def clean(text: str) -> str:
    """Take the control characters out of a text from a file: it must not command the terminal."""
    if text.isprintable():
        return text
    return "".join(ch if ch.isprintable() else "\ufffd" for ch in text.replace("\t", " "))


def paint(text: str, colour: str | None = None, *, is_bold: bool = False) -> str:
    """Colour a text, on a terminal only."""
    import os

    if not is_terminal() or os.environ.get("NO_COLOR"):
        return text
    return click.style(text, fg=colour, bold=is_bold or None)


def heading(text: str) -> None:
    """Write a line that stands above others."""
    click.echo(paint(text, is_bold=True))


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], colour_column: int | None = None) -> None:
    """Write rows under headers; the last column takes the room that is left."""
    shown = [[clean(cell) for cell in row] for row in rows]
    if is_terminal():
        _rich_table(headers, shown, colour_column)
    else:
        _plain_table(headers, shown)


def _rich_table(headers: Sequence[str], rows: Sequence[Sequence[str]], colour_column: int | None) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index, header in enumerate(headers):
        is_last = index == len(headers) - 1
        grid.add_column(header, no_wrap=not is_last, overflow="fold" if is_last else "ellipsis")
    for row in rows:
        colour = STATUS_COLOURS.get(row[colour_column]) if colour_column is not None else None
        grid.add_row(*(Text(cell, style=colour or "" if i == colour_column else "") for i, cell in enumerate(row)))
    Console(highlight=False).print(grid)


def _plain_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(display_width, column)) for column in zip(headers, *rows, strict=True)]
    for row in (headers, *rows):
        cells = (cell + " " * (width - display_width(cell)) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def display_width(text: str) -> int:
    """Return how many columns a text takes; most Japanese characters take two."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(ch) else 2 if unicodedata.east_asian_width(ch) in "WF" else 1 for ch in text)


def ago(moment: datetime, now: datetime, texts: Texts) -> str:
    """Say how long ago something was, in the largest unit that fits."""
    seconds = max(0, int((now - moment).total_seconds()))
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= length:
            return texts(f"ago.{unit}", count=seconds // length)
    return texts("ago.seconds", count=seconds)
