"""Friction of a shaft or slide, without and with stiction; port: `body`.

`multibody.friction` has the law. As a bond graph, the speed v of `lugre` is that of bristles between the body and what
it slides on, which deflect and hold, a compliance σ₀ and a resistance σ₁, plus the speed of their tips, which slide
through a resistance.
"""

from __future__ import annotations

from cosim.core.types import param, params
from cosim.mechanics.bondgraph import BondGraph, C, Law, R
from cosim.mechanics.multibody.friction import Friction


@params
class Params(Friction):
    linear: bool = param(default=False, doc="of a slide instead of a shaft")


def build(params: Params) -> BondGraph:
    domain = "translational" if params.linear else "rotational"
    graph = BondGraph(ports={"body": "body"})
    graph.junction("body", "1")
    if params.viscous:
        graph.add("viscous", R(domain, params.viscous))
        graph.bond("body", "viscous")
    if not params.sticks:
        graph.add("dry", R(domain, Law(params.sliding_effort, ("flow",))))
        graph.bond("body", "dry")
        return graph
    slip = Law(params.slip, ("body.flow", "stiffness.effort"))
    add_bristles(graph, domain, params.bristle_stiffness, params.bristle_damping, slip)
    return graph


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
