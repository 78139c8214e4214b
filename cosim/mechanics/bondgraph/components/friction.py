"""Friction of a shaft or slide, without and with stiction; port: `body`.

`multibody.friction` has the law. As a bond graph, the speed v of `lugre` is the bristles', on a compliance σ₀ and a
resistance σ₁, plus the speed of their tips, which slide through a resistance.
"""

from __future__ import annotations

from cosim.core.types import param, params
from cosim.mechanics.bondgraph import BondGraph, Law, R
from cosim.mechanics.bondgraph.components._bristles import add_bristles
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
