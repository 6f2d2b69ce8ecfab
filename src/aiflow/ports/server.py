"""What the server needs from the outside: who may call it, where its address is recorded, its child processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    from aiflow.domain.server.facts import Sight
    from aiflow.domain.server.sessions import Session


class Access(Protocol):
    """The user's token, and the sessions of one checkout's server."""

    @property
    def token_file(self) -> str:
        """Where the token is."""

    def token(self) -> str:
        """Return the user's token, made if there is none."""

    def sessions(self) -> tuple[Session, ...]:
        """Return the sessions as they are kept."""

    def change(self, rule: Callable[[tuple[Session, ...]], tuple[Session, ...]]) -> tuple[Session, ...]:
        """Change the sessions in one step, and return them."""


class ServerRecord(NamedTuple):
    """A server that is, or was, at work for a checkout."""

    instance_id: str
    url: str
    pid: int
    root: str
    started_at: datetime
    version: str


class ServerRecords(Protocol):
    """Where the server of a checkout says that it is there, and the user's other servers."""

    def holding(self) -> AbstractContextManager[bool]:
        """Be the one server of this checkout while the block lasts; False if there is another."""

    def write(self, record: ServerRecord) -> None:
        """Say where this server is."""

    def read(self) -> ServerRecord | None:
        """Return what this checkout's server recorded last; it may be gone since."""

    def others(self) -> Sequence[ServerRecord]:
        """Return what the servers of all checkouts said last."""

    def remove(self, instance_id: str) -> None:
        """Take back what a server said."""


class Neighbours(Protocol):
    """The user's other servers."""

    def known(self) -> Sequence[ServerRecord]:
        """Return those that answer, by name; never waits long."""


class ServerDoor(Protocol):
    """A server as the user's own programs call it."""

    def new_link(self, url: str) -> tuple[str, str]:
        """Ask a server for an address with which one browser can sign in; return it and when it is over."""


class Worker(NamedTuple):
    """A process of aiflow's own that the server started, in a session of its own."""

    pid: int
    worker_id: str
    argv: tuple[str, ...]


class Workers(Protocol):
    """Starts aiflow's own commands as processes that outlive the server; what they say is in files."""

    def start(self, argv: Sequence[str], person: str = "") -> Worker:
        """Start a command, on behalf of a person."""

    def exit_code(self, worker: Worker) -> int | None:
        """Return how a worker of this server ended, or None while it works; below 0 is the signal that killed it."""

    def adopt(self) -> tuple[Worker, ...]:
        """Take over the workers that a server before left at work, and return them."""

    def at_work(self) -> tuple[Worker, ...]:
        """Return the workers of this server that still work, those that it took over, too."""

    def end(self, worker: Worker) -> None:
        """Ask a worker to end what it does now, in order."""

    def answer(self, worker: Worker) -> dict[str, object] | None:
        """Return what an ended worker printed as its answer (`--json`); None if that is nothing that can be read."""

    def said(self, worker: Worker) -> str:
        """Return the end of what a worker said besides."""


class CheckoutEyes(Protocol):
    """Looks at a checkout's files without reading more of them than changed."""

    def look(self, named: Iterable[tuple[str, str]] = ()) -> Sight:
        """Return how it is now, of these runs, too; what cannot be looked at is as if it were not there."""


class RunnerChild(Protocol):
    """The runner beside a server: a process that ends after its task when the server has gone, however that went."""

    def start(self) -> None:
        """Start it."""

    def is_working(self) -> bool:
        """Return whether it works."""

    def release(self) -> None:
        """Let it end after its task; one that has ended, or never began, is left alone."""

    def end(self) -> None:
        """Ask it to end what it does now, in order."""

    def said(self) -> str:
        """Return the last line that it said."""
