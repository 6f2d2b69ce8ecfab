"""The dependency graph of a backlog (WEB-1): what has to be done before what, as far as it is still open."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aiflow.domain.backlog.layers import lay_out
from aiflow.domain.backlog.selection import queue_order
from aiflow.domain.request import RequestStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aiflow.domain.backlog.selection import Backlog, Selection
    from aiflow.domain.request import Request, RequestId

MOST_NODES = 60
STEPS = 2
_CLOSED = (RequestStatus.DONE, RequestStatus.ARCHIVED)


class GraphNode(NamedTuple):
    """A request in the graph, at its place: `layer` from the left and `row` from above, counted from 0.

    One that `is_missing` has no file, one that `is_broken` a file with a mistake; neither has a status.
    """

    request_id: RequestId
    title: str
    status: RequestStatus | None
    is_runnable: bool
    is_next: bool
    is_missing: bool
    is_broken: bool
    waits_on_missing: bool
    is_chosen: bool
    layer: int
    row: int


class GraphEdge(NamedTuple):
    """What has to be done first, and what then; `is_back` of one that closes a circle."""

    first: RequestId
    then: RequestId
    is_back: bool = False


class DependencyGraph(NamedTuple):
    """Nodes and edges, how many layers and rows they take; `total` is how many nodes there are without a cut.

    One that is too large is cut down to the surroundings of the `chosen` request.
    """

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    layers: int
    rows: int
    total: int
    chosen: RequestId | None = None

    @property
    def left_out(self) -> int:
        """How many nodes are not shown."""
        return self.total - len(self.nodes)


def draw_graph(
    backlog: Backlog, selection: Selection, chosen: RequestId | None = None, *, include_closed: bool = False
) -> DependencyGraph:
    """Draw who waits for whom: the open requests and their neighbours, or all; around one if that is too large."""
    lines = _lines(backlog, include_closed=include_closed)
    ids = dict.fromkeys(request_id for line in lines for request_id in line)
    order = _ordered(ids, backlog)
    total = len(order)
    if total > MOST_NODES:
        chosen = chosen if chosen in ids else _choose(order, selection)
        near = _near(chosen, lines)
        order = [request_id for request_id in order if request_id in near]
        lines = [line for line in lines if line[0] in near and line[1] in near]
    drawing = lay_out(order, lines)
    context = _Context(backlog, frozenset(each.id for each in selection.runnable), selection.next, chosen)
    nodes = tuple(_node(request_id, drawing.places[request_id], context) for request_id in order)
    return DependencyGraph(
        nodes,
        tuple(GraphEdge(first, then, (first, then) in drawing.back) for first, then in lines),
        max((node.layer for node in nodes), default=-1) + 1,
        max((node.row for node in nodes), default=-1) + 1,
        total,
        chosen if chosen in ids else None,
    )


def _lines(backlog: Backlog, *, include_closed: bool) -> list[tuple[RequestId, RequestId]]:
    """Return who has to be done before whom, where one of the two is open."""
    closed = frozenset() if include_closed else {r.id for r in backlog.requests if r.status in _CLOSED}
    waiting = (request for request in backlog.requests if request.depends_on)
    pairs = ((wanted, request.id) for request in waiting for wanted in request.depends_on)
    return list(dict.fromkeys(pair for pair in pairs if not (pair[0] in closed and pair[1] in closed)))


def _ordered(ids: Iterable[RequestId], backlog: Backlog) -> list[RequestId]:
    """Return the nodes in selection order; what has no usable file comes last."""
    known = [backlog.by_id[request_id] for request_id in ids if request_id in backlog.by_id]
    others = sorted(request_id for request_id in ids if request_id not in backlog.by_id)
    return [*(request.id for request in sorted(known, key=queue_order)), *others]


def _choose(order: list[RequestId], selection: Selection) -> RequestId:
    """Return the request to show at first if none was chosen: the one in the graph that runs first."""
    known = set(order)
    return next((request.id for request in selection.runnable if request.id in known), order[0])


def _near(chosen: RequestId, lines: Iterable[tuple[RequestId, RequestId]]) -> set[RequestId]:
    """Return a request's surroundings, two steps each way; the nearest, if that is still too many."""
    before: dict[RequestId, list[RequestId]] = {}
    behind: dict[RequestId, list[RequestId]] = {}
    for first, then in lines:
        behind.setdefault(first, []).append(then)
        before.setdefault(then, []).append(first)
    near = {chosen: None}
    reached = [([chosen], before), ([chosen], behind)]
    for _ in range(STEPS):
        reached = [([each for node in nodes for each in way.get(node, ())], way) for nodes, way in reached]
        near.update((node, None) for nodes, _ in reached for node in nodes)
    return set(list(near)[:MOST_NODES])


class _Context(NamedTuple):
    """What a node has to be known by."""

    backlog: Backlog
    runnable: frozenset[RequestId]
    next: Request | None
    chosen: RequestId | None


def _node(request_id: RequestId, place: tuple[int, int], context: _Context) -> GraphNode:
    by_id: Mapping[RequestId, Request] = context.backlog.by_id
    known, request = context.backlog.known_ids, by_id.get(request_id)
    is_broken = request is None and request_id in known
    return GraphNode(
        request_id,
        request.title if request is not None else "",
        request.status if request is not None else None,
        request_id in context.runnable,
        context.next is not None and context.next.id == request_id,
        request is None and not is_broken,
        is_broken,
        request is not None and not known.issuperset(request.depends_on),
        request_id == context.chosen,
        *place,
    )
