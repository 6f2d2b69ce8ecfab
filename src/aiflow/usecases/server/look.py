"""Look at the backlog as pages show it (PRF-7): read once a call, worked out once while it stays the same.

Nothing is trusted that was not read for this very call: what is the same is known by comparing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.backlog.board import Board
from aiflow.usecases.auto.summary import read_open, waiting_requests

if TYPE_CHECKING:
    from aiflow.domain.backlog.selection import Backlog
    from aiflow.usecases.engine import Engine


class BacklogDesk:
    """Gives the backlog to any number of callers and threads; two that find it the same share what is drawn of it."""

    def __init__(self) -> None:
        self._last: Board | None = None

    def look(self, engine: Engine) -> Board:
        """Read the backlog, with the runs of what is open, and return it with what is known of it."""
        backlog, last = read_open(engine), self._last
        if last is not None and _is_same(last.backlog, backlog):
            return last
        waiting = {request.id: code for request, _, code in waiting_requests(backlog)}
        board = self._last = Board(backlog, waiting)
        return board


def _is_same(one: Backlog, other: Backlog) -> bool:
    """Tell whether two backlogs are equal: what was not read again is the same thing, so this takes no time."""
    return (
        one.requests == other.requests
        and one.invalid == other.invalid
        and one.runs == other.runs
        and one.locks == other.locks
        and one.queue_lock == other.queue_lock
        and one.interrupted == other.interrupted
        and one.lost == other.lost
        and one.drafted == other.drafted
        and one.dead_locks == other.dead_locks
    )
