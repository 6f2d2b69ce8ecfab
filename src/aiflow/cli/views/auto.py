"""Auto-run as the person in front of the terminal sees it: what happened, what happens now, and how it ended.

On a terminal lines scroll up above a live area; in a pipe, a log or CI there are only lines, each with its time.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import click

from aiflow.cli.terminal.lines import GREY, Line, LinePart, fitted, local_now, painted, plain
from aiflow.cli.terminal.render import is_watched, say_at_once, terminal_width
from aiflow.cli.views.auto_area import AutoScene, doing_of, draw, last_line
from aiflow.cli.views.auto_lines import Teller, ToldOnce
from aiflow.cli.views.auto_summary import listed_lines, summary_lines
from aiflow.domain.auto.stopping import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from aiflow.cli.terminal.screen import Screen
    from aiflow.domain.auto.session import AutoStatus
    from aiflow.domain.auto.summary import Summary
    from aiflow.domain.runs.run import Run
    from aiflow.messages import Texts


class AutoView:
    """Shows an auto-run; a closed output does not affect the auto-run."""

    def __init__(
        self,
        texts: Texts,
        *,
        is_quiet: bool,
        limits: Limits | None = None,
        clock: Callable[[], datetime] = local_now,
    ) -> None:
        self._texts = texts
        self._is_quiet = is_quiet
        self._clock = clock
        self._is_watched = is_watched()
        self._teller = Teller(texts, limits or Limits())
        self._screen: Screen | None = None
        self._doing: object = None
        # The screen's thread reads these three; each is replaced as a whole, by one thread only.
        self._scene = AutoScene(limits=limits or Limits())
        self._output = ""
        self._notice: str | None = None

    def __enter__(self) -> Self:
        """Begin to show."""
        if self._is_watched and not self._is_quiet:
            from aiflow.cli.terminal.screen import Screen

            self._screen = Screen(self._picture)
            self._screen.start()
        return self

    def __exit__(self, *_how: object) -> None:
        """Take the live area away, however it ended."""
        self._close()

    def observe_auto(self, status: AutoStatus) -> None:
        """Show the state of auto-run."""
        if self._is_quiet:
            return
        now = self._clock()
        before = self._scene.status.running if self._scene.status else None
        scene = replace(self._scene, status=status)
        if status.running is None:
            scene = replace(scene, run=None, request_since=None, doing_since=None)
        elif before is None or before.request_id != status.running.request_id:
            scene = replace(scene, run=None, request_since=now, doing_since=now)
            self._output = ""
        self._scene = scene
        self._tell(self._teller.hear_status(status, now))

    def observe(self, run: Run) -> None:
        """Show what is new in the run."""
        if self._is_quiet:
            return
        now = self._clock()
        doing = doing_of(run)
        if doing != self._doing:
            self._output = ""
            self._scene = replace(self._scene, doing_since=now)
        self._doing = doing
        self._scene = replace(self._scene, run=run)
        self._tell(self._teller.hear_run(run, now))

    def follow(self, data: bytes) -> None:
        """Keep the agent's last line for the live area."""
        if self._screen is not None:
            self._output = last_line(data) or self._output

    def stopping(self, text: str) -> None:
        """Say at once that a person's wish to stop was heard; a signal handler may call this in the middle of anything.

        Nothing is locked and no buffered stream is touched here: the screen's thread shows it, or the system writes it.
        """
        if self._screen is not None:
            self._notice = text
            return
        say_at_once(text)

    def finish(self, summary: Summary) -> None:
        """Report why auto-run ended, what is done, what waits for a person, what was never reached."""
        self._close()
        if self._is_quiet:
            return
        columns = terminal_width() if self._is_watched else None
        with self._unread():
            self._write(summary_lines(summary, self._texts, self._clock(), columns))

    def show_again(self, summary: Summary, standing: str | None) -> None:
        """Show the summary of an earlier auto-run, or the state of one that has not ended."""
        if standing is None:
            self.finish(summary)
            return
        columns = terminal_width() if self._is_watched else None
        with self._unread():
            self._write([(LinePart(standing),), *listed_lines(summary, self._texts, self._clock(), columns)])

    def _picture(self, columns: int) -> list[Line]:
        """Return the live area as it is now."""
        scene = replace(self._scene, output=self._output, notice=self._notice)
        return draw(scene, self._texts, self._clock(), columns)

    def _tell(self, news: Iterable[ToldOnce]) -> None:
        with self._unread():
            for line in (line for told in news for line in self._laid_out(told)):
                if self._screen is not None:
                    self._screen.add(line)
                else:
                    self._write([line])

    def _laid_out(self, told: ToldOnce) -> list[Line]:
        """Return the lines to show for an event."""
        return [self._stamped(told)]

    def _stamped(self, told: ToldOnce) -> Line:
        """Put the time in front; on a terminal the line is cut to its width, a log has the date and everything."""
        at = told.at.astimezone()
        if not self._is_watched:
            return (LinePart(f"{at:%Y-%m-%d %H:%M:%S}  "), *told.line)
        return fitted((LinePart(f"{at:%H:%M:%S}  ", GREY), *told.line), terminal_width())

    def _write(self, lines: Iterable[Line]) -> None:
        has_colours = self._is_watched and not os.environ.get("NO_COLOR")
        for line in lines:
            click.echo(painted(line) if has_colours else plain(line))

    @contextlib.contextmanager
    def _unread(self) -> Iterator[None]:
        """Fall silent once the reader has left, as `| head` or a closed terminal does."""
        try:
            yield
        except OSError:
            self._is_quiet = True

    def _close(self) -> None:
        if self._screen is not None:
            screen, self._screen = self._screen, None
            screen.stop()
