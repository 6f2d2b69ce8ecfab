"""Looking at the backlog for pages (PRF-7): what is drawn of it is worked out once while it is the same."""

from __future__ import annotations

import pytest

from aiflow.adapters.memory.control import MemoryAutoRecords
from aiflow.adapters.memory.time import PlayedTime
from aiflow.domain.backlog.board import BoardWish
from aiflow.usecases.server.look import BacklogDesk
from memory_engine import MemoryCheckout, MemoryProcess, obliging

pytestmark = pytest.mark.spec("PRF-7", "WEB-1")
RECORDS = MemoryAutoRecords()


def test_who_finds_the_same_backlog_shares_what_is_drawn_of_it() -> None:
    checkout = MemoryCheckout()
    checkout.add("A")
    engine, desk = MemoryProcess(checkout, 7, PlayedTime(), obliging(checkout)).engine(), BacklogDesk()
    board = desk.look(engine, RECORDS)
    assert desk.look(engine, RECORDS) is board
    checkout.add("B", "draft")
    other = desk.look(engine, RECORDS)
    assert other is not board
    assert [row.request.id for row in other.page(BoardWish()).rows] == ["A", "B"]
    checkout.add("A", "done")
    assert [row.request.id for row in desk.look(engine, RECORDS).page(BoardWish()).rows] == ["B"]


def test_what_is_claimed_and_let_go_is_seen() -> None:
    checkout = MemoryCheckout()
    name = checkout.add("A")
    engine, desk = MemoryProcess(checkout, 7, PlayedTime(), obliging(checkout)).engine(), BacklogDesk()
    assert not desk.look(engine, RECORDS).row(engine.source.load(name)).is_locked
    checkout.add("A", "running")
    assert desk.look(engine, RECORDS).waiting == {"A": "RUN_LOST"}  # nobody works on it, and no run is there
