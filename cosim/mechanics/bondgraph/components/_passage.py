"""What a fluid flows through, from port `a` to port `b`: elements of one flow between two 0-junctions."""

from __future__ import annotations

from cosim.mechanics.bondgraph import BondGraph, Element


def passage(**elements: Element) -> BondGraph:
    """The elements on the 1-junction `through`. Ports are 0-junctions: bonds of either direction may meet there."""
    graph = BondGraph(ports={"a": "a", "b": "b"})
    for name, kind in {"a": "0", "through": "1", "b": "0"}.items():
        graph.junction(name, kind)
    graph.chain("a", "through", "b")
    for name, element in elements.items():
        graph.add(name, element)
        graph.bond("through", name)
    return graph
