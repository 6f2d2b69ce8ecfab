"""A live area below lines that scroll up, drawn by a separate thread: the work does not wait for a paused terminal.

The only module that knows how a terminal is redrawn; rich is imported when a screen is really started (PRF-6).
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, TextIO

from aiflow.cli.terminal.lines import Line, parts_of, width_of
from aiflow.cli.terminal.render import clean, terminal_width

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

FRAME_SECONDS = 0.25
# A terminal that is held (Ctrl-S) is not waited for longer than this.
STOP_SECONDS = 2.0


class Screen:
    """Shows lines as they come and, below them, what `picture` returns for the width of the moment."""

    def __init__(self, picture: Callable[[int], list[Line]]) -> None:
        self._picture = picture
        self._lines: deque[Line] = deque()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._show, name="screen", daemon=True)
        self._streams: tuple[TextIO, TextIO] = sys.stdout, sys.stderr
        self._console, self._live = _make(sys.stdout)
        self._shown: list[Line] = []
        self._columns = 0

    def start(self) -> None:
        """Begin to show; what others print meanwhile appears among the lines and does not tear the area."""
        sys.stdout = _Between(self._streams[0], self.add)
        if sys.stderr.isatty():
            sys.stderr = _Between(self._streams[1], self.add)
        self._thread.start()

    def add(self, line: Line) -> None:
        """Show one more line; a signal handler may call this: nothing is locked here."""
        self._lines.append(line)

    def stop(self) -> None:
        """Take the area away, the lines stay."""
        sys.stdout, sys.stderr = self._streams
        self._end.set()
        self._thread.join(STOP_SECONDS)

    def _show(self) -> None:
        """Draw until the end; a terminal that has gone away is left alone."""
        try:
            self._live.start()
            # A killed process leaves the cursor as it is: it is never hidden.
            self._console.show_cursor(show=True)
            while not self._end.wait(FRAME_SECONDS):
                self._draw()
            self._write_lines()
            self._live.stop()
        except OSError:
            self._lines.clear()

    def _draw(self) -> None:
        columns = terminal_width()
        if columns < self._columns:
            self._clear_broken(columns)
        self._columns = columns
        self._write_lines()
        self._shown = self._picture(columns)
        self._live.update(_as_text(*self._shown), refresh=True)

    def _write_lines(self) -> None:
        while self._lines:
            self._console.print(_as_text(self._lines.popleft()), soft_wrap=True)

    def _clear_broken(self, columns: int) -> None:
        """Clear the rows that a narrower terminal made of lines it broke: rich only knows of the lines."""
        from rich.control import Control
        from rich.segment import ControlType

        rows = sum(-(-width_of(line) // columns) - 1 for line in self._shown if width_of(line) > columns)
        clear = (ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))
        self._console.control(*(Control(*clear) for _ in range(rows)))


def _make(stream: TextIO) -> tuple[Console, Live]:
    from rich.console import Console
    from rich.live import Live

    console = Console(
        file=stream,
        force_terminal=True,
        color_system=None if os.environ.get("NO_COLOR") else "standard",
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    # The streams are turned here and not by rich: what is printed must not wait for the terminal either.
    live = Live(
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        vertical_overflow="crop",
    )
    return console, live


def _as_text(*lines: Line) -> Text:
    """Hand lines over to rich: as they are, never as its markup."""
    from rich.text import Text

    text = Text(no_wrap=True, overflow="crop", end="")
    for number, line in enumerate(lines):
        text.append("\n" if number else "")
        for part in line:
            text.append(clean(part.text), f"{'bold ' if part.is_bold else ''}{part.colour or 'default'}")
    return text


class _Between(io.TextIOBase):
    """Replaces a stream while an area is shown: whole lines appear among the others."""

    encoding = "utf-8"

    def __init__(self, stream: TextIO, add: Callable[[Line], None]) -> None:
        self._stream = stream
        self._add = add
        self._begun = ""

    def write(self, text: str) -> int:
        """Take a text; a line without its end waits for it."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._add(parts_of(line))
        return len(text)

    def flush(self) -> None:
        """Show what has no end yet as well."""
        if self._begun:
            self.write("\n")

    def isatty(self) -> bool:
        """Return that a person looks at it."""
        return True

    def fileno(self) -> int:
        """Return the stream's own descriptor."""
        return self._stream.fileno()
