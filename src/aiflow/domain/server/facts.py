"""What the event stream says (API-3): small facts, drawn from the journal and from comparing two looks at a checkout.

A fact of the journal has the journal's cursor and is sent once. Every other one says how something is now, so that it
can be sent again to callers that connect later; two equal looks give none.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Distinguishes one state of a file from another without reading it; nothing if there is none.
Mark = tuple[int, ...]
# So many requests are named in one fact; who hears of more looks at all of them.
MOST_NAMED = 50
# What a fact takes of a journal entry: never its words.
_TOLD = ("at", "kind", "actor", "request_id", "run_id", "reason_code")


class Fact(NamedTuple):
    """Something to report: what kind of thing, its ids, and the journal's cursor if it is an entry of it."""

    kind: str
    ids: Mapping[str, object]
    cursor: str | None = None


class HeldLock(NamedTuple):
    """A lock that is held, and whether its holder is known to be gone."""

    request_id: str | None
    run_id: str | None
    is_stale: bool


@dataclass(frozen=True, slots=True)
class Sight:
    """How a checkout is at one moment, as far as its files show it; runs and logs only of what is being worked on.

    `marks` are for things of which only a change is reported: the runs' folder, the settings, who
    is signed in.
    """

    requests: Mapping[str, Mark] = field(default_factory=dict)
    runs: Mapping[tuple[str, str], tuple[Mark, str | None]] = field(default_factory=dict)
    logs: Mapping[tuple[str, str, int], int] = field(default_factory=dict)
    locks: tuple[HeldLock, ...] = ()
    auto: tuple[Mark, str | None] = ((), None)
    marks: Mapping[str, Mark] = field(default_factory=dict)

    @property
    def is_busy(self) -> bool:
        """Whether somebody is at work."""
        return any(not lock.is_stale for lock in self.locks)


def facts_now(look: Sight) -> Iterator[Fact]:
    """Return the facts for the whole state, for a caller that knows nothing yet."""
    yield Fact("requests", {"version": version_of(look.requests), "changed": None})
    yield from (_version(name, mark) for name, mark in look.marks.items())
    yield _locks(look)
    yield Fact("auto", {"state": look.auto[1]})
    for (request_id, run_id), (_, state) in look.runs.items():
        yield Fact("run", {"request_id": request_id, "run_id": run_id, "state": state})
    yield from (_log(key, size) for key, size in look.logs.items())


def facts_between(before: Sight, after: Sight) -> Iterator[Fact]:
    """Say what is different; that something is no longer looked at says nothing about it."""
    if after.requests is not before.requests and after.requests != before.requests:
        yield _requests(before.requests, after.requests)
    yield from (_version(name, mark) for name, mark in after.marks.items() if before.marks.get(name) != mark)
    for key, (mark, state) in after.runs.items():
        if before.runs.get(key) != (mark, state):
            yield Fact("run", {"request_id": key[0], "run_id": key[1], "state": state})
    yield from (_log(key, size) for key, size in after.logs.items() if before.logs.get(key) != size)
    if after.locks != before.locks:
        yield _locks(after)
    if after.auto != before.auto:
        yield Fact("auto", {"state": after.auto[1]})


def fact_of_entry(entry: Mapping[str, object], cursor: str) -> Fact:
    """Say what the journal recorded: what kind of thing and whose, and nothing that anybody wrote."""
    return Fact("activity", {name: entry[name] for name in _TOLD if name in entry}, cursor)


def version_of(marks: Mapping[str, Mark]) -> str:
    """Return a word that is another one for other files; the same on every start of the server."""
    return _short(*sorted(marks.items()))


def _requests(before: Mapping[str, Mark], after: Mapping[str, Mark]) -> Fact:
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    named = changed if len(changed) <= MOST_NAMED else None
    return Fact("requests", {"version": version_of(after), "changed": named})


def _version(name: str, mark: Mark) -> Fact:
    return Fact(name, {"version": _short(mark)})


def _locks(look: Sight) -> Fact:
    return Fact("locks", {"held": [lock._asdict() for lock in look.locks]})


def _log(key: tuple[str, str, int], size: int) -> Fact:
    request_id, run_id, number = key
    return Fact("log", {"request_id": request_id, "run_id": run_id, "n": number, "size": size})


def _short(*values: object) -> str:
    return f"{zlib.crc32(repr(values).encode('utf-8', 'backslashreplace')):08x}"
