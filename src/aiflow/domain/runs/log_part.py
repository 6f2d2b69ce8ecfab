"""A part of a run's log, as a reader gets it (API-3)."""

from __future__ import annotations

from typing import NamedTuple

# How the line begins that says when, by whom and for what the lines after it were written.
HEADING = "=== "


class LogPart(NamedTuple):
    """A part of one log: its bytes from an offset on, where to continue, how long the log is, and whether it may grow.

    `was_cut` says that the log is shorter than the offset that was asked for: then it is read from its start again.
    """

    number: int
    path: str
    offset: int
    data: bytes
    next_offset: int
    size: int
    may_grow: bool = False
    was_cut: bool = False

    @property
    def text(self) -> str:
        """The part as text; what is no UTF-8 is kept as it is."""
        return self.data.decode("utf-8", "surrogateescape")
