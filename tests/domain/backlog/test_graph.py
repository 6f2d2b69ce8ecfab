"""The dependency graph: who is in it, where each stands, and what is shown of a large one."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.domain.backlog.graph import MOST_NODES, DependencyGraph, draw_graph
from aiflow.domain.backlog.layers import lay_out
from aiflow.domain.backlog.selection import select_next
from aiflow.domain.request import InvalidRequest, Request, RequestId
from builders import backlog, request

pytestmark = pytest.mark.spec("WEB-1")


def draw(*requests: Request, chosen: str | None = None, is_all: bool = False) -> DependencyGraph:
    broken = InvalidRequest(RequestId("BROKEN"), "requests/BROKEN.md", ())
    known = backlog(*requests, invalid=(broken,))
    return draw_graph(known, select_next(known), RequestId(chosen) if chosen else None, include_closed=is_all)


def places(graph: DependencyGraph) -> dict[str, tuple[int, int]]:
    return {node.request_id: (node.layer, node.row) for node in graph.nodes}


def test_only_who_has_or_is_a_dependency_and_is_open_or_beside_one() -> None:
    graph = draw(
        request("A", "done"),
        request("B", depends_on=["A"]),
        request("C", depends_on=["B"]),
        request("ALONE"),
        request("OLD", "archived"),
        request("OLDER", "done", depends_on=["OLD", "A"]),
    )
    assert places(graph) == {"A": (0, 0), "B": (1, 0), "C": (2, 0)}
    assert [tuple(edge) for edge in graph.edges] == [("A", "B", False), ("B", "C", False)]
    assert (graph.layers, graph.rows, graph.total, graph.left_out, graph.chosen) == (3, 1, 3, 0, None)
    with_closed = draw(request("A", "done"), request("B", "done", depends_on=["A"]), is_all=True)
    assert len(with_closed.nodes) == 2


def test_what_is_known_of_a_node() -> None:
    graph = draw(
        request("A", depends_on=["GONE"]),
        request("B", depends_on=["BROKEN"]),
        request("C"),
        request("D", depends_on=["C"]),
    )
    nodes = {str(node.request_id): node for node in graph.nodes}
    assert [name for name, node in nodes.items() if node.is_missing] == ["GONE"]
    assert [name for name, node in nodes.items() if node.is_broken] == ["BROKEN"]
    assert [name for name, node in nodes.items() if node.waits_on_missing] == ["A"]
    assert [name for name, node in nodes.items() if node.is_runnable] == ["C"]
    assert [name for name, node in nodes.items() if node.is_next] == ["C"]
    assert (nodes["GONE"].status, nodes["D"].status, nodes["D"].title) == (None, "ready", "D")


def test_a_circle_is_drawn_with_one_line_back_and_what_is_behind_it_is_not_in_it() -> None:
    graph = draw(
        request("A", depends_on=["Z"]),
        request("X", depends_on=["Y"]),
        request("Y", depends_on=["Z"]),
        request("Z", depends_on=["X"]),
        request("SELF", depends_on=["SELF"]),
    )
    assert [(edge.first, edge.then) for edge in graph.edges if edge.is_back] == [("Y", "X"), ("SELF", "SELF")]
    assert places(graph)["A"] == (2, 0)


def test_lines_are_untangled() -> None:
    lines = [("a", "y"), ("b", "x"), ("c", "z")]
    drawing = lay_out(["a", "b", "c", "x", "y", "z"], lines)
    rows = {node: row for node, (_, row) in drawing.places.items()}
    assert all(rows[first] == rows[then] for first, then in lines)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40))
def test_every_line_leads_to_the_right_but_those_that_close_a_circle(pairs: list[tuple[int, int]]) -> None:
    nodes = [str(number) for number in range(13)]
    lines = [(str(first), str(then)) for first, then in pairs]
    drawing = lay_out(nodes, lines)
    for first, then in lines:
        is_right = drawing.places[first][0] < drawing.places[then][0]
        assert is_right or (first, then) in drawing.back
    assert len(set(drawing.places.values())) == len(nodes)
    # Each layer is filled from above, and without the lines that lead back the longest way to a node is its layer.
    kept = [line for line in lines if line not in drawing.back]
    for node, (layer, _) in drawing.places.items():
        assert layer == max((drawing.places[first][0] + 1 for first, then in kept if then == node), default=0)


def many(count: int) -> list[Request]:
    """A long chain with a branch at every node."""
    chain = [request("N0")]
    for number in range(1, count):
        chain.append(request(f"N{number}", depends_on=[f"N{number - 1}"]))
        chain.append(request(f"B{number}", depends_on=[f"N{number}"]))
    return chain


def test_a_large_graph_is_cut_down_to_two_steps_each_way() -> None:
    graph = draw(*many(100), chosen="N50")
    shown = set(places(graph))
    assert shown == {"N48", "N49", "N50", "N51", "N52", "B50", "B51"}
    assert [node.request_id for node in graph.nodes if node.is_chosen] == ["N50"]
    assert (graph.total, graph.left_out, graph.chosen) == (199, 192, "N50")
    # Without a choice it is what runs next, and a request that is not in the graph is no choice.
    assert draw(*many(100)).chosen == draw(*many(100), chosen="ALONE").chosen == "N0"
    assert len(draw(*many(10), chosen="N5").nodes) == 19


def test_a_hub_shows_its_nearest() -> None:
    graph = draw(request("HUB"), *(request(f"S{number:03}", depends_on=["HUB"]) for number in range(500)), chosen="HUB")
    assert (len(graph.nodes), graph.left_out) == (MOST_NODES, 501 - MOST_NODES)


@pytest.mark.timing
def test_a_thousand_nodes_take_a_moment(allowed: Callable[[float], float]) -> None:
    nodes = [f"N{number}" for number in range(1000)]
    lines = [(f"N{number}", f"N{number * 7 % 997 + 3}") for number in range(900)]
    lines += [(f"N{number}", f"N{number + 40}") for number in range(900)]
    begun = perf_counter()
    lay_out(nodes, lines)
    assert perf_counter() - begun < allowed(0.1)
