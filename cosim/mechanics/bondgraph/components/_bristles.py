"""Bristles between a body and what it slides on: they deflect and hold, and slip at their ends."""

from __future__ import annotations

from cosim.mechanics.bondgraph import BondGraph, C, Law, R


def add_bristles(graph: BondGraph, domain: str, stiffness: float, damping: float, slip: Law) -> None:
    """On the junction `body` of the graph. slip: the speed of their ends, by the `stiffness.effort` that they hold."""
    graph.junction("contact", "0")
    graph.junction("bristle", "1")
    graph.add("stiffness", C(domain, stiffness))
    graph.add("slip", R(domain, slip, gives="flow"))
    graph.chain("body", "contact", "bristle", "stiffness")
    graph.bond("contact", "slip")
    if damping:
        graph.add("damping", R(domain, damping))
        graph.bond("bristle", "damping")


def bristles(domain: str, stiffness: float, damping: float, slip: Law) -> BondGraph:
    """A graph of its own; port: `body`."""
    graph = BondGraph(ports={"body": "body"})
    graph.junction("body", "1")
    add_bristles(graph, domain, stiffness, damping, slip)
    return graph
