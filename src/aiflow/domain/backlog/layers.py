"""A layered drawing of a graph: dependencies are further left, and lines cross as little as is cheap."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SWEEPS = 4
Line = tuple[str, str]


class Drawing(NamedTuple):
    """The layer and the row of each node, counted from 0, and the lines that lead back, for they close a circle."""

    places: Mapping[str, tuple[int, int]]
    back: frozenset[Line]


def lay_out(nodes: Sequence[str], lines: Iterable[Line]) -> Drawing:
    """Place nodes; a line leads from what comes first to what comes then. The order of the nodes breaks ties."""
    known = set(nodes)
    wanted = dict.fromkeys(line for line in lines if line[0] in known and line[1] in known)
    layer_of, back = _layers(nodes, wanted)
    before: dict[str, list[str]] = {node: [] for node in nodes}
    behind: dict[str, list[str]] = {node: [] for node in nodes}
    for first, then in wanted:
        if (first, then) not in back:
            behind[first].append(then)
            before[then].append(first)
    rows = _rows(nodes, layer_of, before, behind)
    return Drawing({node: (layer_of[node], rows[node]) for node in nodes}, frozenset(back))


def _layers(nodes: Sequence[str], lines: Iterable[Line]) -> tuple[dict[str, int], set[Line]]:
    """Give each node the length of the longest way to it; a circle is opened before the node that comes first."""
    waits: dict[str, dict[str, None]] = {node: {} for node in nodes}
    behind: dict[str, list[str]] = {node: [] for node in nodes}
    for first, then in lines:
        waits[then][first] = None
        behind[first].append(then)
    rank = {node: number for number, node in enumerate(nodes)}
    layer_of: dict[str, int] = dict.fromkeys(nodes, 0)
    back: set[Line] = set()
    free = [node for node in nodes if not waits[node]]
    waiting = {node: None for node in nodes if waits[node]}
    while free or waiting:
        if not free:
            first, then = _closing_line(next(iter(waiting)), waits, rank)
            back.add((first, then))
            _let_go(first, then, waits, waiting, free)
            continue
        node = free.pop()
        for then in behind[node]:
            if node in waits[then]:
                layer_of[then] = max(layer_of[then], layer_of[node] + 1)
                _let_go(node, then, waits, waiting, free)
    return layer_of, back


def _let_go(
    first: str, then: str, waits: Mapping[str, dict[str, None]], waiting: dict[str, None], free: list[str]
) -> None:
    """Have a node wait for one fewer."""
    del waits[then][first]
    if not waits[then]:
        del waiting[then]
        free.append(then)


def _closing_line(start: str, waits: Mapping[str, dict[str, None]], rank: Mapping[str, int]) -> Line:
    """Find a circle that keeps a node waiting, and return its line to the one of its nodes that comes first."""
    way: dict[str, int] = {}
    node = start
    while node not in way:
        way[node] = len(way)
        node = next(iter(waits[node]))
    circle = list(way)[way[node] :]  # each waits for the next, the last for the first
    place = min(range(len(circle)), key=lambda number: rank[circle[number]])
    return circle[(place + 1) % len(circle)], circle[place]


def _rows(
    nodes: Sequence[str],
    layer_of: Mapping[str, int],
    before: Mapping[str, list[str]],
    behind: Mapping[str, list[str]],
) -> dict[str, int]:
    """Order each layer by the mean row of its neighbours, from the left and from the right in turn."""
    layers: list[list[str]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for node in nodes:
        layers[layer_of[node]].append(node)
    rows = {node: row for layer in layers for row, node in enumerate(layer)}
    for sweep in range(SWEEPS):
        neighbours = before if sweep % 2 == 0 else behind
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            means = {node: _mean(neighbours[node], rows, rows[node]) for node in layer}
            layer.sort(key=means.__getitem__)
            rows.update((node, row) for row, node in enumerate(layer))
    return rows


def _mean(neighbours: Sequence[str], rows: Mapping[str, int], own: int) -> float:
    return sum([rows[each] for each in neighbours]) / len(neighbours) if neighbours else own
