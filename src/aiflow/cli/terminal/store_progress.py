"""What a person sees while the queue store is opened: nothing, or that it is fetched and started, once."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from aiflow.cli.terminal.render import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress, TaskID

    from aiflow.cli.session import CliSession
    from aiflow.messages import Texts
    from aiflow.ports.tasks import QueueStore


def open_queue_store(
    session: CliSession, *, is_quiet: bool = False, is_to_write: bool = True, is_all_told: bool = False
) -> QueueStore:
    """Open the project's queue store; if this machine's store has to be started, stderr says so.

    Stderr also says that we wait for it: only while it is opened, unless nothing else will report that later.
    """
    from aiflow.wiring import open_store

    with store_progress(session.texts, is_quiet=is_quiet) as progress:
        is_all_told = is_all_told and not is_quiet
        return open_store(session.settings, os.environ, progress, is_to_write=is_to_write, is_all_told=is_all_told)


@contextlib.contextmanager
def store_progress(texts: Texts, *, is_quiet: bool = False) -> Iterator[StoreProgress]:
    """Give what shows the progress: a bar in a terminal, else one line per step."""
    shown = StoreProgress(texts, is_quiet=is_quiet)
    try:
        yield shown
    finally:
        shown.close()


class StoreProgress:
    """Shows each step once, and how far the fetching is."""

    def __init__(self, texts: Texts, *, is_quiet: bool) -> None:
        self._texts = texts
        self._is_quiet = is_quiet
        self._step: str | None = None
        self._bar: tuple[Progress, TaskID] | None = None

    def __call__(self, step: str, fraction: float | None) -> None:
        """Show a step, and how much of it is done where that is known."""
        if self._is_quiet:
            return
        if step != self._step:
            self.close()
            self._step = step
            if fraction is not None and sys.stderr.isatty():
                self._bar = _bar(self._texts(f"store.progress.{step}"))
            else:
                say(self._texts(f"store.progress.{step}"), err=True)
        if self._bar is not None and fraction is not None:
            self._bar[0].update(self._bar[1], completed=fraction)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar[0].stop()
            self._bar = None


def _bar(text: str) -> tuple[Progress, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    progress.start()
    return progress, progress.add_task(text, total=1.0)
