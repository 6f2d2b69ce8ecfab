"""An address as a QR code on a terminal: black on white whatever the theme, two rows of it in a line."""

from __future__ import annotations

import os
import shutil
import sys
from itertools import groupby
from typing import TYPE_CHECKING

import click

from aiflow.domain.server.guard import far_link

if TYPE_CHECKING:
    from aiflow.settings import Settings

QUIET_ZONE = 2
_DARK, _LIGHT = 16, 231  # of the 256 colours, where no theme changes them
_UPPER_HALF = "\u2580"


def show_phone_code(link: str, url: str, settings: Settings) -> None:
    """Show a link to the server at `url` as a QR code, if the settings name it as another device can reach it."""
    far = far_link(link, url, settings.text("server.url"), settings.texts("server.hosts"))
    if far:
        show_qr_code(far)


def show_qr_code(text: str) -> None:
    """Show a QR code if a person looks at a terminal that is wide enough and has colours; else nothing."""
    if not sys.stdout.isatty() or os.environ.get("TERM") in ("dumb", None) or os.environ.get("NO_COLOR"):
        return
    lines = qr_lines(text)
    if len(lines[0]) <= shutil.get_terminal_size().columns:
        for line in lines:
            click.echo("  " + _painted(line))


def qr_lines(text: str) -> list[list[tuple[bool, bool]]]:
    """Return the lines of a QR code: for each column whether its upper and its lower half are dark."""
    import segno

    rows = [[bool(each) for each in row] for row in segno.make_qr(text, error="l").matrix_iter(border=QUIET_ZONE)]
    rows += [[False] * len(rows[0])] if len(rows) % 2 else []
    return [list(zip(upper, lower, strict=True)) for upper, lower in zip(rows[::2], rows[1::2], strict=True)]


def _painted(line: list[tuple[bool, bool]]) -> str:
    parts = []
    for (upper, lower), same in groupby(line):
        colours = f"38;5;{_DARK if upper else _LIGHT};48;5;{_DARK if lower else _LIGHT}"
        parts.append(f"\x1b[{colours}m{_UPPER_HALF * len(list(same))}")
    return "".join(parts) + "\x1b[0m"
