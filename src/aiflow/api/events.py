"""The event stream (API-3): one watcher for all readers, each fact encoded once, a bounded queue for each reader.

Without listeners, nothing is watched. A listener that does not read is disconnected; others lose nothing. It comes
back with the id of the last event that it had, and gets what it missed, or learns that there is a gap.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.responses import StreamingResponse

from aiflow.domain.server.facts import Fact
from aiflow.errors import AiflowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from starlette.types import Send

    from aiflow.ports.server import ServerRecord
    from aiflow.usecases.server.watch import CheckoutWatch

T = TypeVar("T")
BUSY_SECONDS = 0.12
QUIET_SECONDS = 0.3
# A client that hears nothing for a few of these knows that the server hangs or the connection is gone. It is an
# event, not a comment: a page in a browser does not hear comments.
STILL_SECONDS = 1.5
# So often it is asked whether the reader may still read; a session that is ended is known at once.
WELCOME_SECONDS = 15.0
# A browser that lost the stream comes back after this.
RETRY_MS = 1000
# So many looks may wait for a reader that does not read: half a minute of a busy checkout.
MOST_WAITING = 256


class StreamItem(NamedTuple):
    """A fact as it is sent: its cursor, its kind, and its bytes."""

    cursor: str | None
    kind: str
    data: bytes


def encode(fact: Fact) -> StreamItem:
    """Write a fact as an event; its JSON is ASCII in one line."""
    head = f"id: {fact.cursor}\n" if fact.cursor else ""
    text = json.dumps(fact.ids, separators=(",", ":"), default=str)
    return StreamItem(fact.cursor, fact.kind, f"{head}event: {fact.kind}\ndata: {text}\n\n".encode())


STILL = encode(Fact("still", {}))


class Reader:
    """One open stream: what waits for it."""

    def __init__(self) -> None:
        self._waiting: deque[Sequence[StreamItem]] = deque()
        self._wake = asyncio.Event()
        self.is_dropped = False

    def give(self, items: Sequence[StreamItem]) -> bool:
        """Add what is new; False if it has not read for too long."""
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.clear()
            self.is_dropped = True
        else:
            self._waiting.append(items)
        self._wake.set()
        return not self.is_dropped

    def wake(self) -> None:
        """Have it look up."""
        self._wake.set()

    async def take(self, seconds: float) -> list[StreamItem]:
        """Return what is new; nothing if for some time nothing is."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return []
        self._wake.clear()
        taken = [item for items in self._waiting for item in items]
        self._waiting.clear()
        return taken


class EventHub:
    """Has one watcher look while there are readers, and gives each of them what it saw; used on the event loop only."""

    def __init__(self, watch: CheckoutWatch, record: ServerRecord) -> None:
        self.watch = watch
        self.record = record
        self.is_stopping = False
        self._readers: set[Reader] = set()
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._threads: CapacityLimiter | None = None

    @property
    def readers(self) -> int:
        """How many listen."""
        return len(self._readers)

    @property
    def is_looking(self) -> bool:
        """Whether the watcher is at work."""
        return self._task is not None

    def stop(self) -> None:
        """Have every stream say goodbye and end."""
        self.is_stopping = True
        for reader in self._readers:
            reader.wake()

    async def join(self) -> Reader:
        """Listen from now on; existing entries of the journal are not sent, but can be replayed."""
        async with self._turn:
            if self._task is None or self._task.done():
                await self.beside(self.watch.begin)
                self._task = asyncio.create_task(self._keep_looking())
            else:
                await self._look()
            reader = Reader()
            self._readers.add(reader)
        return reader

    async def look_now(self) -> None:
        """Look without waiting for the next turn."""
        async with self._turn:
            await self._look()

    def leave(self, reader: Reader) -> None:
        """Listen no more."""
        self._readers.discard(reader)

    async def beside(self, ask: Callable[[], T]) -> T:
        """Ask something that takes a moment, beside the calls at work: those may all wait for something."""
        self._threads = self._threads or CapacityLimiter(4)
        return await to_thread.run_sync(ask, limiter=self._threads)

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(BUSY_SECONDS if self.watch.is_busy else QUIET_SECONDS)
            async with self._turn:
                if not self._readers:
                    self._task = None
                    return
                await self._look()

    async def _look(self) -> None:
        """Look once; what cannot be looked at now is looked at again."""
        try:
            facts = await self.beside(self.watch.look)
        except (AiflowError, OSError) as error:
            logging.getLogger(__name__).debug("not to be looked at: %s", error)
            return
        if facts:
            items = tuple(encode(fact) for fact in facts)
            for reader in [each for each in self._readers if not each.give(items)]:
                self._readers.discard(reader)


class EventStream(StreamingResponse):
    """One reader's stream: hello, what they missed, how things are, and then whatever happens."""

    def __init__(self, hub: EventHub, after: str | None, is_welcome: Callable[[], bool]) -> None:
        super().__init__(
            iter(()), media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        self._hub = hub
        self._after = after
        self._is_welcome = is_welcome

    async def stream_response(self, send: Send) -> None:
        """Send until the reader goes, does not read, may no longer, or the server stops."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        reader = await self._hub.join()
        try:
            told = await self._begin(send)
            reason = await self._go_on(reader, told, send)
            await _send(send, [_event("bye", {"reason": reason})])
        finally:
            self._hub.leave(reader)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _begin(self, send: Send) -> set[str]:
        """Say hello, what they missed, and how things are; return which entries of the journal that were."""
        hub, record = self._hub, self._hub.record
        hello = {"instance_id": record.instance_id, "version": record.version}
        begin = [StreamItem(None, "retry", f"retry: {RETRY_MS}\n\n".encode())]
        cursor = hub.watch.cursor
        if self._after is None:
            await _send(send, [*begin, _event("hello", hello, cursor)])
            told: set[str] = set()
        else:
            await _send(send, [*begin, _event("hello", hello)])
            after = self._after
            missed = await hub.beside(lambda: hub.watch.replay(after))
            if missed.has_gap:
                await _send(send, [_event("gap", {}, cursor)])
            await _send(send, [encode(fact) for fact in missed.facts])
            told = {fact.cursor for fact in missed.facts if fact.cursor}
        await _send(send, [encode(fact) for fact in await hub.beside(hub.watch.now)])
        return told

    async def _go_on(self, reader: Reader, told: set[str], send: Send) -> str:
        """Send what happens, and while nothing does, that the server is there; return why that ends."""
        clock = asyncio.get_running_loop().time
        asked = clock()
        while True:
            items = await reader.take(STILL_SECONDS)
            if reader.is_dropped:
                return "too_slow"
            if told:  # what was replayed may be among what was seen since
                items = [item for item in items if item.cursor not in told]
            await _send(send, items or [STILL])
            if self._hub.is_stopping:
                return "stopping"
            if clock() - asked > WELCOME_SECONDS or any(item.kind == "sessions" for item in items):
                asked = clock()
                if not await self._hub.beside(self._is_welcome):
                    return "signed_out"


def _event(kind: str, ids: Mapping[str, object], cursor: str | None = None) -> StreamItem:
    return encode(Fact(kind, ids, cursor))


async def _send(send: Send, items: Iterable[StreamItem]) -> None:
    data = b"".join(item.data for item in items)
    if data:
        await send({"type": "http.response.body", "body": data, "more_body": True})
