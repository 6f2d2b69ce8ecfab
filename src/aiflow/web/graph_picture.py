"""The dependency graph as a picture: where each box and each arrow is, in the units of the picture itself."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.looks import Mark, mark_by_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiflow.domain.backlog.board import Board
    from aiflow.domain.backlog.graph import DependencyGraph, GraphEdge, GraphNode

EDGE, WIDTH, HEIGHT, ACROSS, DOWN = 24, 208, 44, 288, 60
# So wide is a title in a box, counted in letters of the alphabet; one of Japanese counts twice. An id is wider.
TITLE_LETTERS = 30
ID_LETTERS = 20
# The mark of what was cut is as wide as a letter of Japanese beside such.
MARK_LETTERS = 2
LEAST_WIDTH = 1080


class Box(NamedTuple):
    """One request: its place, its words cut to fit, how it stands, and what has to be done before it."""

    node: GraphNode
    mark: Mark
    x: int
    y: int
    name: str
    title: str
    after: tuple[str, ...]


class Arrow(NamedTuple):
    """From what has to be done first to what waits for it; `kind` is done, bad or nothing special."""

    path: str
    kind: str


class Picture(NamedTuple):
    """Boxes and arrows, and how large the picture is."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    width: int
    height: int


def picture_of(graph: DependencyGraph, board: Board) -> Picture:
    """Lay a graph out in units."""
    before: dict[str, list[str]] = {}
    for edge in graph.edges:
        before.setdefault(edge.then, []).append(edge.first)
    boxes: dict[str, Box] = {
        node.request_id: _box(node, board, tuple(before.get(node.request_id, ()))) for node in graph.nodes
    }
    return Picture(
        tuple(boxes.values()),
        tuple(_arrows(graph.edges, boxes)),
        max(LEAST_WIDTH, 2 * EDGE + WIDTH + max(0, graph.layers - 1) * ACROSS),
        2 * EDGE + HEIGHT + max(0, graph.rows - 1) * DOWN,
    )


def _box(node: GraphNode, board: Board, after: tuple[str, ...]) -> Box:
    return Box(
        node,
        mark_by_id(node.request_id, board.backlog, board.waiting),
        EDGE + node.layer * ACROSS,
        EDGE + node.row * DOWN,
        cut(node.request_id, ID_LETTERS),
        cut(node.title, TITLE_LETTERS),
        after,
    )


def _arrows(edges: tuple[GraphEdge, ...], boxes: Mapping[str, Box]) -> Iterator[Arrow]:
    for edge in edges:
        first, then = boxes[edge.first], boxes[edge.then]
        x, y, to_x, to_y = first.x + WIDTH, first.y + HEIGHT // 2, then.x - 6, then.y + HEIGHT // 2
        is_bad = edge.is_back or first.mark in (Mark.MISSING, Mark.BROKEN)
        kind = "bad" if is_bad else "done" if first.mark is Mark.DONE else ""
        yield Arrow(f"M{x} {y}C{x + 40} {y} {to_x - 34} {to_y} {to_x} {to_y}", kind)


def cut(text: str, letters: int) -> str:
    """Cut a text to a width, with a mark that it continues; the mark fits in, too."""
    ends, room = 0, letters
    for at, character in enumerate(text):
        if room >= MARK_LETTERS:
            ends = at
        room -= 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if room < 0:
            return f"{text[:ends].rstrip()}…"
    return text
