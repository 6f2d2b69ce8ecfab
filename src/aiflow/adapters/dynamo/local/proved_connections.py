"""Botocore's connections to this machine's store (QUE-2a), each of them proved before it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiflow.messages.details import Words, words

if TYPE_CHECKING:
    import socket

    from aiflow.adapters.dynamo.local.proof import Prove
    from aiflow.domain.queue.store_obstacles import Obstacles


class UnprovedError(Exception):
    """The connection does not end at the store; nothing was sent."""

    def __init__(self, problem: Obstacles) -> None:
        [told] = problem.each
        self.words: Words = words(f"obstacle.{told.kind}", **dict(told.facts))
        super().__init__(self.words)


def prove_connections(client: Any, endpoint: str, prove: Prove) -> None:
    """Have a client of botocore's prove each connection that it makes to an endpoint."""
    from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool

    class ProvedConnection(AWSHTTPConnection):  # type: ignore[misc]
        """A connection that is open only if it ends where it should."""

        def connect(self) -> None:
            """Connect, and hang up on a stranger."""

            def connected() -> socket.socket:
                super(ProvedConnection, self).connect()
                found: socket.socket = self.sock
                return found

            problem: Obstacles | None = None
            is_proved = False
            try:
                problem = prove(connected)
                is_proved = problem is None
            finally:
                if not is_proved:
                    self.close()
            if problem is not None:
                raise UnprovedError(problem)

    class ProvedPool(AWSHTTPConnectionPool):  # type: ignore[misc]
        """Has proved connections only."""

        ConnectionCls = ProvedConnection

    manager = client._endpoint.http_session._manager  # noqa: SLF001 (botocore has no public way)
    manager.pool_classes_by_scheme = {"http": ProvedPool}
    if manager.connection_from_url(endpoint).ConnectionCls is not ProvedConnection:
        raise RuntimeError("this version of urllib3 makes connections in another way")
