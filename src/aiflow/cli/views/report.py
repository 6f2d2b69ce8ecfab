"""A run's report as people read it: in a pipe the Markdown as it was written, on a terminal with its tables drawn."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.render import clean, heading, is_terminal, say, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HEADING = re.compile(r"#{1,6} +(.*)")
_INDENT = re.compile(r"(?:[ >]|- )*")
_BETWEEN = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\|(?:-{3,}:?\|)+")


def show_report(text: str) -> None:
    """Write a report without what aiflow notes in it for itself."""
    lines = [line for line in text.splitlines() if not line.startswith("<!-- aiflow:")]
    if not is_terminal():
        click.echo("\n".join(clean(line) for line in lines))
        return
    for is_table, block in groupby(lines, key=lambda line: line.startswith("|")):
        if is_table:
            _show_table(list(block))
        else:
            _show_lines(block)


def _show_table(lines: Sequence[str]) -> None:
    rows = [_cells(line) for line in lines if not _RULE.fullmatch(line)]
    columns = max(map(len, rows), default=0)
    if columns:
        header, *others = ([*row, *[""] * (columns - len(row))] for row in rows)
        table(header, others)


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _BETWEEN.split(line.strip())[1:-1]]


def _show_lines(lines: Iterator[str]) -> None:
    for line in lines:
        if title := _HEADING.fullmatch(line):
            heading(title[1])
        else:
            start = _INDENT.match(line)
            prefix = start[0] if start else ""
            say(line[len(prefix) :], prefix)
