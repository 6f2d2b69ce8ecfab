"""Who answers at the store's port (QUE-2a): found out for each connection, before anything is sent on it.

Our requests name the key, and anyone who knows it can read the queue. Another user's program may listen at its port.
So the other end of a connection must belong to the process that was recorded: then nothing can come between
that and the request, for if the store ends, the connection ends with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from aiflow.adapters.processes.sockets import ends_of
from aiflow.domain.queue.store_obstacles import ObstacleKind, Obstacles

if TYPE_CHECKING:
    import socket

    from aiflow.adapters.dynamo.local.folder import Record

# Connects, proves, and returns why nothing may be sent; None if all is well.
Connect = Callable[[], "socket.socket"]
Prove = Callable[[Connect], Obstacles | None]

ACCEPT_SECONDS = 2.0
_LOOK_SECONDS = 0.002


def by_process(record: Record) -> Prove:
    """Prove that a connection ends at the process that was written down."""

    def prove(connect: Connect) -> Obstacles | None:
        connection = connect()
        until = time.monotonic() + ACCEPT_SECONDS
        while True:
            ends = ends_of(record.pid or 0, connection)
            if not record.is_process_alive():  # looked at last: by now its number may be somebody else's
                return Obstacles.of(ObstacleKind.PROCESS_GONE, pid=record.pid)
            if ends.has_peer:
                return None
            if not ends.is_listening:
                return stranger(record.port)
            if time.monotonic() > until:
                raise TimeoutError("timed out")  # it listens, and does not take what comes
            time.sleep(_LOOK_SECONDS)

    return prove


def stranger(port: int) -> Obstacles:
    """Name that somebody else answers there."""
    return Obstacles.of(ObstacleKind.STRANGER, port=port)
