"""Which ready issue starts next (ISS-12): in the order of selection, and one that was refused lets the others go first.

A start can be refused for what concerns all (uncommitted edits, a program that is missing) or for what concerns this
issue alone (a conversation that is locked). So it is tried again, with pauses that grow, and keeps no other issue back.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiflow.domain.request import RequestId

FIRST_PAUSE_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 60.0


class StartMemory(NamedTuple):
    """How often each issue's start was refused, and when the next start may be tried."""

    refused: Mapping[RequestId, int] = MappingProxyType({})
    due_at: float = float("-inf")
    pause: float = FIRST_PAUSE_SECONDS


def choose(ready: Sequence[RequestId], memory: StartMemory, at: float) -> RequestId | None:
    """Return the issue that is started now; `ready` are those that could be, in the order of selection."""
    if at < memory.due_at:
        return None
    return min(ready, key=lambda each: memory.refused.get(each, 0), default=None)


def after_refusal(memory: StartMemory, request_id: RequestId, at: float) -> StartMemory:
    """Remember that a start was refused."""
    refused = {**memory.refused, request_id: memory.refused.get(request_id, 0) + 1}
    return StartMemory(refused, at + memory.pause, min(memory.pause * 2, LONGEST_PAUSE_SECONDS))


def after_run(memory: StartMemory, request_id: RequestId) -> StartMemory:
    """Remember that an issue ran: what kept others back may be over, too."""
    return StartMemory({name: count for name, count in memory.refused.items() if name != request_id})
