"""The HTTP server in a thread, so that its starter can handle signals and everything else."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from aiflow.errors import AiflowError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from aiflow.api.serve import HttpServer

# What is not over by then, streams included, ends with the process.
END_SECONDS = 10.0


@contextlib.contextmanager
def serving(make: Callable[[Callable[[], None]], HttpServer], listening: socket.socket) -> Iterator[Callable[[], bool]]:
    """Answer calls while the block lasts; it begins once the server answers, and is given whether it still does.

    A server that cannot start, or that ended for another reason than ours, is raised.
    """
    turn, failed = threading.Event(), list[BaseException]()
    http = make(turn.set)

    def work() -> None:
        try:
            http.work(listening)
        except BaseException as error:  # noqa: BLE001 - uvicorn leaves by SystemExit
            failed.append(error)
        finally:
            turn.set()

    thread = threading.Thread(target=work, name="server", daemon=True)
    thread.start()
    turn.wait()
    try:
        if thread.is_alive() and not failed:
            yield thread.is_alive
        if not thread.is_alive():
            raise AiflowError(detail=f"server: {failed[0]!r}" if failed else "server")
    finally:
        http.should_exit = True
        thread.join(END_SECONDS)
