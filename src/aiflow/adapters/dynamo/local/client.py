"""The client of this machine's store (QUE-2): finds it again on another port, and starts it again if it is gone.

A call that failed stays failed: whether it happened is not known, and who must know asks again, by then of the store
that answers. Nothing is sent on a connection before it is proved that the store has its other end (QUE-2a).
"""

from __future__ import annotations

import shlex
import threading
import time
from typing import TYPE_CHECKING, Any

from aiflow.adapters.dynamo.client import ATTEMPTS, DynamoClient, bare_client
from aiflow.adapters.dynamo.local.proved_connections import prove_connections
from aiflow.domain.next_action import ActionKind, NextAction, shell
from aiflow.errors import AiflowError, EnvironmentProblemError
from aiflow.messages.details import words

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiflow.adapters.dynamo.client import StoreAddress
    from aiflow.adapters.dynamo.local import LocalDynamo

# A store that cannot be started is not tried at every call.
AGAIN_SECONDS = 5.0
# What a person can do where it does not answer.
START = NextAction(ActionKind.STORE_START)


class LocalClient(DynamoClient):
    """Calls to this machine's own store; may be used by several threads at once."""

    def __init__(self, local: LocalDynamo, progress: Callable[[str, float | None], None]) -> None:
        self._local = local
        self._address = local.address(progress)
        super().__init__(self._address, self._proved(self._address), ATTEMPTS)
        self.help = {"start": START}
        self._lock = threading.Lock()
        self._looked_at = -AGAIN_SECONDS

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        """Call one operation (`get_item`, …) and return its answer."""
        used = self._client
        try:
            return super().call(operation, **params)
        except AiflowError as error:
            if error.reason_code == "STORE_UNREACHABLE":
                self._find_again(used)
                self._look_at_disk()
            raise

    def _proved(self, address: StoreAddress) -> Any:
        """Make botocore's client such that it sends nothing to a stranger."""
        client = bare_client(address)
        prove_connections(client, str(address.endpoint), lambda connect: self._local.prove(address, connect))
        return client

    def _look_at_disk(self) -> None:
        """Name a full disk, for which the store reports only that something failed."""
        folder = self._local.full_disk()
        if folder is not None:
            problem, look = words("store_problem.no_space", folder=folder), shell(f"df -h {shlex.quote(folder)}")
            raise EnvironmentProblemError(reason_code="DISK_FULL", path=folder, problem=problem, start=look)

    def _find_again(self, used: object) -> None:
        """Look where the store is by now; one that is gone without having been stopped is started."""
        with self._lock:
            if used is not self._client or time.monotonic() - self._looked_at < AGAIN_SECONDS:
                return
            try:
                status = self._local.status()
                is_gone = status.endpoint is None and not status.is_stopped
                if status.is_running or is_gone:
                    address = self._local.address(lambda _step, _fraction: None)
                    if address != self._address:
                        self._address, self.name, self._client = address, address.name, self._proved(address)
            except AiflowError:
                pass  # the caller learns about its own call
            finally:
                self._looked_at = time.monotonic()
