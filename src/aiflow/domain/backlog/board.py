"""The backlog as a list to look through (WEB-1, PRF-7): filtered, counted, cut into pages before anything is shaped."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.forecast import positions
from aiflow.domain.backlog.graph import draw_graph
from aiflow.domain.backlog.looks import Mark, Why, is_held, mark_of, why_not_now
from aiflow.domain.backlog.selection import queue_order, select_next
from aiflow.domain.request import Priority, RequestStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiflow.domain.backlog.graph import DependencyGraph
    from aiflow.domain.backlog.selection import Backlog, Selection
    from aiflow.domain.request import InvalidRequest, Request, RequestId

ROWS = 50
# So many ways to look are remembered; and so many labels are offered to choose from, the most used.
MOST_REMEMBERED = 32
MOST_LABELS = 100
_CLOSED = (RequestStatus.DONE, RequestStatus.ARCHIVED)


class Shelf(StrEnum):
    """Which requests are looked at, by where they stand."""

    OPEN = "open"
    READY = "ready"
    WAITING = "waiting"
    DRAFT = "draft"
    FOUND = "found"
    DONE = "done"
    ALL = "all"


class BoardWish(NamedTuple):
    """What somebody wants to see: a shelf, and of it what has these words, this priority, this label."""

    shelf: Shelf = Shelf.OPEN
    words: str = ""
    priority: Priority | None = None
    label: str = ""

    @property
    def is_narrow(self) -> bool:
        """Whether something is left out of the shelf."""
        return bool(self.words or self.priority or self.label)


class Row(NamedTuple):
    """One request in the list: its turn tonight (0 is now, None never), its state, and why it does not run."""

    request: Request
    turn: int | None
    is_next: bool
    mark: Mark
    why: Why
    run_id: str | None
    is_locked: bool


class BoardPage(NamedTuple):
    """A page of the list; `first` is the place of its first row, counted from 1, `groups` how many each group has."""

    rows: tuple[Row, ...]
    broken: tuple[InvalidRequest, ...]
    number: int
    pages: int
    first: int
    total: int
    groups: Mapping[Priority, int]
    broken_total: int
    counts: Mapping[Shelf, int]

    @property
    def last(self) -> int:
        """The place of its last row."""
        return self.first + len(self.rows) + len(self.broken) - 1


class _Matches(NamedTuple):
    requests: Sequence[Request]
    broken: Sequence[InvalidRequest]
    groups: Mapping[Priority, int]
    counts: Mapping[Shelf, int]


class Board:
    """A backlog at one moment with everything that pages draw from it, each worked out at most once."""

    def __init__(self, backlog: Backlog, waiting: Mapping[RequestId, str]) -> None:
        self.backlog = backlog
        self.waiting = waiting
        self._found: dict[BoardWish, _Matches] = {}
        self._drawn: dict[tuple[RequestId | None, bool], DependencyGraph] = {}

    @cached_property
    def selection(self) -> Selection:
        """What runs next."""
        return select_next(self.backlog)

    @cached_property
    def positions(self) -> Mapping[RequestId, int]:
        """Tonight's position of each request that will be reached; what is continued comes first."""
        first = {name: place for place, name in enumerate(self.backlog.continued, 1)}
        later = positions(self.backlog, self.selection)
        return {name: place + len(first) for name, place in later.items()} | first

    @cached_property
    def ordered(self) -> Sequence[Request]:
        """Every request in selection order."""
        return sorted(self.backlog.requests, key=queue_order)

    @cached_property
    def labels(self) -> Sequence[str]:
        """The labels there are, the most used ones, by name."""
        used = Counter(label for request in self.backlog.requests for label in request.labels)
        return sorted(label for label, _ in used.most_common(MOST_LABELS))

    @cached_property
    def waited_for_by(self) -> Mapping[RequestId, Sequence[RequestId]]:
        """Who waits for whom: of each request those that need it and are still open."""
        found: dict[RequestId, list[RequestId]] = {}
        for request in self.ordered:
            if request.depends_on and request.status not in _CLOSED:
                for wanted in request.depends_on:
                    found.setdefault(wanted, []).append(request.id)
        return found

    @cached_property
    def found_in(self) -> Mapping[RequestId, Sequence[RequestId]]:
        """What was found in whose runs: of each request those that agents proposed while they worked on it (REQ-10)."""
        found: dict[RequestId, list[RequestId]] = {}
        for request in self.ordered:
            if request.found_in is not None:
                found.setdefault(request.found_in, []).append(request.id)
        return found

    @cached_property
    def follow_ups(self) -> int:
        """How many drafts that agents proposed wait for a person's decision."""
        return sum(request.is_follow_up for request in self.backlog.requests)

    def page(self, wish: BoardWish, number: int = 1) -> BoardPage:
        """Return a page; a number after the last page returns the last."""
        found = self._find(wish)
        total = len(found.requests) + len(found.broken)
        pages = max(1, -(-total // ROWS))
        number = max(1, min(number, pages))
        start, stop = (number - 1) * ROWS, number * ROWS
        at = max(0, start - len(found.requests))
        return BoardPage(
            tuple(self.row(request) for request in found.requests[start:stop]),
            tuple(found.broken[at : max(at, stop - len(found.requests))]),
            number,
            pages,
            start + 1 if total else 0,
            total,
            found.groups,
            len(found.broken),
            found.counts,
        )

    def row(self, request: Request) -> Row:
        """Return what a line of the list shows for one request."""
        mark, continued = self.mark(request), self.backlog.continued
        chosen = continued[0] if continued else self.selection.next.id if self.selection.next else None
        lock, run = self.backlog.locks.get(request.id), self.backlog.runs.get(request.id)
        is_locked = is_held(request.id, self.backlog)
        run_id = lock.run_id if is_locked and lock is not None else run.run_id if run else None
        return Row(
            request,
            0 if mark is Mark.RUN else self.positions.get(request.id),
            request.id == chosen,
            mark,
            why_not_now(request, self.backlog, self.waiting),
            run_id,
            is_locked,
        )

    def graph(self, chosen: RequestId | None = None, *, include_closed: bool = False) -> DependencyGraph:
        """Draw who waits for whom."""
        known = self._drawn.get((chosen, include_closed))
        if known is None:
            if len(self._drawn) >= MOST_REMEMBERED:
                self._drawn.clear()
            known = draw_graph(self.backlog, self.selection, chosen, include_closed=include_closed)
            self._drawn[chosen, include_closed] = known
        return known

    def mark(self, request: Request) -> Mark:
        """Return the state of a request."""
        return mark_of(request, self.backlog, self.waiting)

    def _find(self, wish: BoardWish) -> _Matches:
        known = self._found.get(wish)
        if known is None:
            if len(self._found) >= MOST_REMEMBERED:
                self._found.clear()
            known = self._found[wish] = self._look_through(wish)
        return known

    def _look_through(self, wish: BoardWish) -> _Matches:
        narrowed = [request for request in self.ordered if _takes(request, wish)] if wish.is_narrow else self.ordered
        broken = [file for file in self.backlog.invalid if _takes_broken(file, wish)]
        found = [request for request in narrowed if self._is_on(request, wish.shelf)]
        has_broken = wish.shelf in (Shelf.OPEN, Shelf.ALL)
        groups = Counter(request.priority for request in found)
        return _Matches(found, broken if has_broken else (), groups, self._counts(narrowed, len(broken)))

    def _counts(self, requests: Sequence[Request], broken: int) -> Mapping[Shelf, int]:
        by_status = Counter(request.status for request in requests)
        closed = sum(by_status[status] for status in _CLOSED)
        return {
            Shelf.OPEN: len(requests) - closed + broken,
            Shelf.READY: by_status[RequestStatus.READY],
            Shelf.WAITING: sum(request.id in self.waiting for request in requests) if self.waiting else 0,
            Shelf.DRAFT: by_status[RequestStatus.DRAFT],
            Shelf.FOUND: sum(request.is_follow_up for request in requests) if self.follow_ups else 0,
            Shelf.DONE: by_status[RequestStatus.DONE],
            Shelf.ALL: len(requests) + broken,
        }

    def _is_on(self, request: Request, shelf: Shelf) -> bool:
        if shelf is Shelf.ALL:
            return True
        if shelf is Shelf.OPEN:
            return request.status not in _CLOSED
        if shelf is Shelf.FOUND:
            return request.is_follow_up
        return request.id in self.waiting if shelf is Shelf.WAITING else request.status.value == shelf.value


def _takes(request: Request, wish: BoardWish) -> bool:
    """Return whether a request has the label, the priority, and each of the words in its id, title or labels."""
    if wish.priority is not None and request.priority is not wish.priority:
        return False
    if wish.label and wish.label not in request.labels:
        return False
    if not wish.words:
        return True
    text = "\n".join((request.id, request.title, *request.labels)).casefold()
    return all(word in text for word in wish.words.casefold().split())


def _takes_broken(file: InvalidRequest, wish: BoardWish) -> bool:
    if wish.priority is not None or wish.label:
        return False
    text = f"{file.id}\n{file.where}".casefold()
    return all(word in text for word in wish.words.casefold().split())
