"""Readers that do not read (API-3, SEC): they are dropped, and nobody else loses anything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from aiflow.adapters.memory.journal import MemoryJournal
from aiflow.adapters.memory.time import PlayedTime
from aiflow.api.events import MOST_WAITING, EventHub, EventStream
from aiflow.domain.activity import Activity, ActivityKind, Actor
from aiflow.domain.server.facts import Fact, Sight
from aiflow.ports.server import ServerRecord
from aiflow.usecases.server.watch import CheckoutWatch
from builders import NOW

pytestmark = pytest.mark.spec("API-3")

RECORD = ServerRecord("an-instance", "http://127.0.0.1:1", 1, "/somewhere", NOW, "1.0")
SCOPE = {"type": "http", "asgi": {"spec_version": "2.3"}}


class Eyes:
    def look(self, named: Iterable[tuple[str, str]] = ()) -> Sight:
        return Sight()


@dataclass
class Browser:
    """Somebody at the other end, who reads or does not."""

    reads: asyncio.Event = field(default_factory=asyncio.Event)
    text: bytes = b""
    is_over: bool = False

    async def send(self, message: Any) -> None:
        await self.reads.wait()
        self.text += message.get("body", b"")
        self.is_over = message["type"] == "http.response.body" and not message["more_body"]

    async def receive(self) -> Any:
        await asyncio.Event().wait()


def test_one_that_does_not_read_is_dropped_and_the_others_have_everything() -> None:
    journal = MemoryJournal()
    entries = MOST_WAITING + 5

    async def play() -> tuple[Browser, Browser]:
        hub = EventHub(CheckoutWatch(Eyes(), journal, PlayedTime()), RECORD)
        reader, sleeper = Browser(), Browser()
        reader.reads.set()
        tasks = [
            asyncio.create_task(EventStream(hub, None, lambda: True)(SCOPE, each.receive, each.send))
            for each in (reader, sleeper)
        ]
        sleeper.reads.set()
        while b"auto" not in sleeper.text or b"auto" not in reader.text:
            await asyncio.sleep(0.01)
        sleeper.reads.clear()
        for number in range(entries):
            journal.append(Activity(NOW, ActivityKind.DECISION, Actor.PERSON, f"RQ-{number}"))
            await hub.look_now()
            while f'"RQ-{number}"'.encode() not in reader.text:
                await asyncio.sleep(0)
        assert hub.readers == 1  # the other's place is gone, and what waited for it
        sleeper.reads.set()
        await tasks[1]
        hub.stop()
        await tasks[0]
        return reader, sleeper

    reader, sleeper = asyncio.run(play())
    assert [reader.text.count(f'"RQ-{number}"'.encode()) for number in range(entries)] == [1] * entries
    assert b'event: bye\ndata: {"reason":"stopping"}' in reader.text
    assert sleeper.text.endswith(b'event: bye\ndata: {"reason":"too_slow"}\n\n')
    assert (reader.is_over, sleeper.is_over) == (True, True)


def test_each_fact_is_encoded_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from aiflow.api import events

    journal, encoded, encode = MemoryJournal(), list[str](), events.encode

    def counted(fact: Fact) -> events.StreamItem:
        encoded.append(fact.kind)
        return encode(fact)

    monkeypatch.setattr(events, "encode", counted)

    async def play() -> None:
        hub = EventHub(CheckoutWatch(Eyes(), journal, PlayedTime()), RECORD)
        readers = [await hub.join() for _ in range(20)]
        journal.append(Activity(NOW, ActivityKind.DECISION, Actor.PERSON, "RQ-1"))
        await hub.look_now()
        taken = [await reader.take(1) for reader in readers]
        assert len({id(items[0].data) for items in taken}) == 1
        for reader in readers:
            hub.leave(reader)
        while hub.is_looking:
            await asyncio.sleep(0.01)

    asyncio.run(play())
    assert encoded == ["activity"]
