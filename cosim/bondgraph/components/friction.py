"""Friction of a shaft or slide, without and with stiction; port: `body`.

    smooth    F = b v + F_c s(v), s(v) = v / √(v² + v_0²)
    stribeck  F = b v + g(v) s(v), g(v) = F_c + (F_s − F_c) exp(−(v / v_s)²)
    lugre     F = b v + σ₀ z + σ₁ ż, ż = v − σ₀ |v| z / g(v)

Under load the first two creep at rest. The bristles of `lugre` deflect by z and hold (Canudas de Wit, Olsson, Åström
and Lischinsky, IEEE Trans. Automatic Control 40(3), 1995). As a bond graph, the speed v is that of the bristles, on a
compliance σ₀ and a resistance σ₁, plus that of their tips, which slide through a resistance.
"""

from __future__ import annotations

from typing import Literal

from cosim import ops
from cosim.bondgraph import BondGraph, C, Law, R
from cosim.types import Numeric, param, params


@params
class Params:
    coulomb: float = param(unit="joint effort", above=0.0, doc="F_c, while it slides")
    model: Literal["smooth", "stribeck", "lugre"] = param(default="lugre", doc="of the dry friction")
    static: float | None = param(unit="joint effort", above=0.0, default=None, doc="F_s, breakaway; by default F_c")
    stribeck_speed: float = param(unit="joint velocity", above=0.0, default=0.01, doc="v_s")
    viscous: float = param(unit="joint damping", min=0.0, default=0.0, doc="b")
    creep_speed: float = param(unit="joint velocity", above=0.0, default=0.01, doc="v_0, of smooth and stribeck")
    bristle_stiffness: float = param(unit="joint stiffness", above=0.0, default=1e4, doc="σ₀ of lugre")
    bristle_damping: float = param(unit="joint damping", min=0.0, default=0.0, doc="σ₁ of lugre")
    linear: bool = param(default=False, doc="of a slide instead of a shaft")

    def __post_init__(self) -> None:
        if self.static is not None and self.static < self.coulomb:
            raise ValueError(f"static is {self.static:g}, less than coulomb with {self.coulomb:g}; exchange them")

    def dry_friction(self, v: Numeric) -> Numeric:
        """g(v)"""
        if self.static is None or self.model == "smooth":
            return self.coulomb
        ratio = v / self.stribeck_speed
        return self.coulomb + (self.static - self.coulomb) * ops.exp(-(ratio * ratio))


def build(params: Params) -> BondGraph:
    domain = "translational" if params.linear else "rotational"
    graph = BondGraph(ports={"body": "body"})
    graph.junction("body", "1")
    if params.viscous:
        graph.add("viscous", R(domain, params.viscous))
        graph.bond("body", "viscous")
    if params.model != "lugre":
        law = Law(lambda v: params.dry_friction(v) * ops.smooth_sign(v, params.creep_speed), ("flow",))
        graph.add("dry", R(domain, law))
        graph.bond("body", "dry")
        return graph
    graph.junction("contact", "0")
    graph.junction("bristle", "1")
    graph.add("stiffness", C(domain, params.bristle_stiffness))
    slip = Law(lambda v, f: ops.absolute(v) / params.dry_friction(v) * f, ("body.flow", "stiffness.effort"))
    graph.add("slip", R(domain, slip, gives="flow"))
    graph.chain("body", "contact", "bristle", "stiffness")
    graph.bond("contact", "slip")
    if params.bristle_damping:
        graph.add("damping", R(domain, params.bristle_damping))
        graph.bond("bristle", "damping")
    return graph
