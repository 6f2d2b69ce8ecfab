"""The dependency graph as plain data (SPEC §11), the same for the API and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiflow.domain.backlog.graph import DependencyGraph


def graph_shape(graph: DependencyGraph) -> dict[str, Any]:
    """Nodes at their places, edges from what has to be done first, and how much was left out."""
    return {
        "nodes": [node._asdict() for node in graph.nodes],
        "edges": [edge._asdict() for edge in graph.edges],
        "layers": graph.layers,
        "rows": graph.rows,
        "total": graph.total,
        "left_out": graph.left_out,
        "chosen": graph.chosen,
    }
