"""Look at the backlog as pages show it (PRF-7): read once a call, worked out once while it stays the same.

Nothing is trusted that was not read for this very call: what is the same is known by comparing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiflow.domain.backlog.board import Board
from aiflow.usecases.auto.standing import read_standing
from aiflow.usecases.auto.summary import waiting_requests

if TYPE_CHECKING:
    from aiflow.ports import AutoRecords
    from aiflow.usecases.engine import Engine


class BacklogDesk:
    """Gives the backlog to any number of callers and threads; two that find it the same share what is drawn of it."""

    def __init__(self) -> None:
        self._last: Board | None = None

    def look(self, engine: Engine, records: AutoRecords) -> Board:
        """Read the backlog, with the runs of what is open, and return it with what is known of it."""
        backlog, last = read_standing(engine, records), self._last
        if last is not None and last.backlog == backlog:  # what was not read again is the same thing: no time
            return last
        waiting = {request.id: code for request, _, code in waiting_requests(backlog)}
        board = self._last = Board(backlog, waiting)
        return board
