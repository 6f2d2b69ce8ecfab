"""The HTTP server itself: one process, one port, ended in order."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from typing import TYPE_CHECKING

import uvicorn

from aiflow.api.connection import CallerLimits, connection_class
from aiflow.errors import AiflowError, BadInputError, EnvironmentProblemError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.types import ASGIApp

STOP_SECONDS = 2
MAX_HEADER_BYTES = 32_768
PORTS_TRIED = 20


class HttpServer(uvicorn.Server):
    """A server that leaves signals to its starter, and says when it answers."""

    def __init__(
        self,
        app: ASGIApp,
        ready: Callable[[], None],
        stopping: Callable[[], None],
        patience: CallerLimits = CallerLimits(),  # noqa: B008 - a value that never changes
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                log_level="error",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                lifespan="off",
                ws="none",
                http=connection_class(patience),
                h11_max_incomplete_event_size=MAX_HEADER_BYTES,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=STOP_SECONDS,
            )
        )
        self._ready = ready
        self._stopping = stopping

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams first: they would be waited for."""
        self._stopping()
        await super().shutdown(sockets)

    def work(self, listening: socket.socket) -> None:
        """Answer calls until asked to stop."""
        asyncio.run(self.serve([listening]))


def listen(host: str, port: int, *, is_ours: Callable[[str, int], bool]) -> socket.socket:
    """Listen on a port; one that another checkout's server has is left to it, and the next free one taken.

    `is_ours` returns whether it is aiflow that answers there.
    """
    for tried in range(port, port + PORTS_TRIED if port else 1):
        try:
            return _listen(host, tried)
        except OSError as error:
            is_taken = error.errno == errno.EADDRINUSE
            if not is_taken or (tried == port and not is_ours(host, tried)):  # a later one that is taken is skipped
                raise _refusal(f"{host}:{tried}", tried, error, is_taken=is_taken) from error
    raise EnvironmentProblemError(reason_code="PORT_IN_USE", port=port, path=f"{host}:{port}", problem="")


def _refusal(address: str, port: int, error: OSError, *, is_taken: bool) -> AiflowError:
    """Say why there is no listening: the port is taken, or the address is none of this machine's, or not for us."""
    problem = error.strerror or str(error)
    if is_taken:
        return EnvironmentProblemError(reason_code="PORT_IN_USE", path=address, port=port, problem=problem)
    return BadInputError(detail=words("up.cannot_listen", address=address, problem=problem))


def _listen(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(256)
    except OSError:
        made.close()
        raise
    made.setblocking(False)  # noqa: FBT003
    return made
