"""One connection with time limits (SEC): for headers that trickle in, and answers that are not read.

uvicorn ends only connections on which nothing is asked; a body's time is the guard's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio


class CallerLimits(NamedTuple):
    """How long a caller is waited for, and how many at once."""

    header_seconds: float = 10.0
    body_seconds: float = 20.0
    write_seconds: float = 20.0
    connections: int = 400


class Connection(H11Protocol):
    """A connection that ends when its caller is too slow; `patience` is the class's own."""

    patience = CallerLimits()
    _header_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin with waiting for headers; one too many is ended at once."""
        super().connection_made(transport)
        if len(self.connections) > self.patience.connections:
            transport.abort()
        else:
            self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        """Count the time until a call's headers are whole, however many pieces they come in."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._wait_for_headers()
        else:
            self._header_timer = _cancelled(self._header_timer)

    def on_response_complete(self) -> None:
        """Make sure that the end of an answer is read, too."""
        super().on_response_complete()
        if self.transport.get_write_buffer_size() and self._write_timer is None:
            self._write_timer = self.loop.call_later(self.patience.write_seconds, self._end_unless_written)

    def pause_writing(self) -> None:
        """Begin to count the time: the caller does not read."""
        super().pause_writing()
        _cancelled(self._write_timer)
        self._write_timer = self.loop.call_later(self.patience.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Continue: the caller has read."""
        super().resume_writing()
        self._write_timer = _cancelled(self._write_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget about it."""
        super().connection_lost(exc)
        self._header_timer, self._write_timer = _cancelled(self._header_timer), _cancelled(self._write_timer)

    def _wait_for_headers(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self.patience.header_seconds, self.transport.abort)

    def _end_unless_written(self) -> None:
        self._write_timer = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: anybody could fill the terminal with it."""


def connection_class(patience: CallerLimits) -> type[Connection]:
    """Return the connections of one server."""
    return type("Connection", (Connection,), {"patience": patience})


def _cancelled(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Cancel a timer, and return that there is none."""
    if timer is not None:
        timer.cancel()
    return None
