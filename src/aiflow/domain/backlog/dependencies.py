"""Dependency cycles (REQ-4): who waits for itself, and along which way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from aiflow.domain.request import RequestId

Edges = Mapping[RequestId, Sequence[RequestId]]

# In a knot larger than this one cycle is named for all, not each request's own: that would grow with the square.
LARGE_KNOT = 200


def find_cycles(edges: Edges) -> dict[RequestId, tuple[RequestId, ...]]:
    """Return, for every request that waits for itself, a cycle: `(a, b, c)` is a waits for b, b for c, c for a."""
    cycles: dict[RequestId, tuple[RequestId, ...]] = {}
    edges = _without_loose_ends(edges)
    for knot in _knots(edges):
        members = frozenset(knot)
        if len(knot) > LARGE_KNOT:
            shared = _cycle_through(min(knot), edges, members)
            cycles.update(dict.fromkeys(knot, shared))
        else:
            cycles.update({member: _cycle_through(member, edges, members) for member in knot})
    return cycles


def _without_loose_ends(edges: Edges) -> Edges:
    """Repeatedly remove requests that wait for no other: those that remain reach a cycle; usually none do."""
    waiting: dict[RequestId, int] = {}
    waited_for_by: dict[RequestId, list[RequestId]] = {}
    free: list[RequestId] = []
    for node, targets in edges.items():
        count = 0
        for target in targets:
            if target in edges:
                count += 1
                waited_for_by.setdefault(target, []).append(node)
        if count:
            waiting[node] = count
        else:
            free.append(node)
    for node in free:  # grows while it is walked
        for waiter in waited_for_by.get(node, ()):
            waiting[waiter] -= 1
            if not waiting[waiter]:
                free.append(waiter)
    return {node: edges[node] for node, count in waiting.items() if count}


def _knots(edges: Edges) -> list[list[RequestId]]:
    """Return the strongly connected components that contain a cycle."""
    walk = _Walk(edges)
    for root in edges:
        if root not in walk.order:
            walk.visit(root)
    return walk.knots


class _Walk:
    """Tarjan's algorithm with an explicit stack: a chain of 100,000 dependencies is no deeper than one of two."""

    def __init__(self, edges: Edges) -> None:
        self.edges = edges
        self.order: dict[RequestId, int] = {}
        self.knots: list[list[RequestId]] = []
        self._low: dict[RequestId, int] = {}
        self._path: list[RequestId] = []
        self._on_path: set[RequestId] = set()
        self._work: list[tuple[RequestId, Iterator[RequestId]]] = []

    def visit(self, root: RequestId) -> None:
        """Walk everything that can be reached from one request."""
        self._enter(root)
        while self._work:
            node, targets = self._work[-1]
            child = self._next_unseen(node, targets)
            if child is not None:
                self._enter(child)
            else:
                self._leave(node)

    def _enter(self, node: RequestId) -> None:
        self.order[node] = self._low[node] = len(self.order)
        self._path.append(node)
        self._on_path.add(node)
        self._work.append((node, iter(self.edges[node])))

    def _next_unseen(self, node: RequestId, targets: Iterator[RequestId]) -> RequestId | None:
        for target in targets:
            if target in self._on_path:
                self._low[node] = min(self._low[node], self.order[target])
            elif target in self.edges and target not in self.order:
                return target
        return None

    def _leave(self, node: RequestId) -> None:
        self._work.pop()
        if self._work:
            parent = self._work[-1][0]
            self._low[parent] = min(self._low[parent], self._low[node])
        if self._low[node] == self.order[node]:
            self._close(node)

    def _close(self, node: RequestId) -> None:
        """Take one finished component off the path and keep it if it holds a cycle."""
        at = len(self._path) - 1
        while self._path[at] != node:
            at -= 1
        knot = self._path[at:]
        del self._path[at:]
        self._on_path.difference_update(knot)
        if len(knot) > 1 or node in self.edges[node]:
            self.knots.append(knot)


def _cycle_through(start: RequestId, edges: Edges, members: frozenset[RequestId]) -> tuple[RequestId, ...]:
    """Return a shortest cycle through one member of a knot (breadth first)."""
    came_from: dict[RequestId, RequestId] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for target in edges[node]:
            if target == start:
                cycle = [node]
                while cycle[-1] != start:
                    cycle.append(came_from[cycle[-1]])
                return tuple(reversed(cycle))
            if target in members and target not in came_from:
                came_from[target] = node
                queue.append(target)
    raise AssertionError("a member of a knot always lies on a cycle")  # pragma: no cover
