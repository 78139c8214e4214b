"""A double-acting cylinder: two chambers whose volumes follow the piston, leakage past it, friction, end stops.

V_a = V_d + A_a s, V_b = V_d + A_b (l − s) at the extension s, each a `variable_chamber`; the frequency of a mass M is
√((E A_a² / V_a + E A_b² / V_b) / M). An end stop is a spring with the damping of Hunt and Crossley (1975), which is in
proportion to the penetration δ: F = k δ max(1 + c dδ/dt, 0), so it begins without a jump and never pulls.
"""

from __future__ import annotations

from typing import Any

from cosim.core import ops
from cosim.core.errors import SectionError
from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import BondGraph, C, Law, R
from cosim.mechanics.bondgraph.components import _fluid, _passage, ideal_cylinder, variable_chamber

CREEP_SPEED = 1e-3  # m/s, below which Coulomb friction decreases to 0


@params
class Params:
    area_a: float = param(unit="m^2", above=0, doc="of the piston on side a, which pushes the rod out")
    area_b: float = param(unit="m^2", above=0, doc="of the piston on side b, around the rod")
    stroke: float = param(unit="m", above=0, doc="extension at the outer end stop; 0 at the inner one")
    dead_volume: float = param(unit="m^3", above=0, doc="of each chamber at its end stop, with its hose")
    extension: float = param(unit="m", min=0, default=0.0, doc="at the start")
    pressure_a: float = param(unit="Pa", min=0, default=0.0, doc="at the start, above ambient")
    pressure_b: float = param(unit="Pa", min=0, default=0.0, doc="at the start, above ambient")
    bulk_modulus: float = _fluid.bulk_modulus()
    air_content: float = _fluid.air_content()
    leakage: float = _passage.conductance()
    viscous: float = param(unit="N*s/m", min=0, default=0.0, doc="viscous friction")
    coulomb: float = param(unit="N", min=0, default=0.0, doc="Coulomb friction")
    stop_stiffness: float = param(unit="N/m", above=0, default=1e8, doc="of the end stops")
    stop_damping: float = param(unit="s/m", min=0, default=10.0, doc="c of the end stops")


def build(params: Params) -> BondGraph:
    """Ports: `a`, `b`, `rod`. Raises SectionError for a start beyond the stroke."""
    if params.extension > params.stroke:
        raise SectionError("the piston starts beyond its stroke; lower it, or raise 'stroke'", ("extension",))
    graph = BondGraph(ports={"a": "a", "b": "b", "rod": "piston.rod"})
    graph.include("piston", ideal_cylinder.build(ideal_cylinder.Params(params.area_a, params.area_b)))
    sides = {
        "a": (params.area_a * params.extension, params.pressure_a),
        "b": (params.area_b * (params.stroke - params.extension), params.pressure_b),
    }
    graph.junction("across", "1")
    for side, (swept, pressure) in sides.items():
        chamber = variable_chamber.Params(params.dead_volume + swept, pressure, params.bulk_modulus, params.air_content)
        graph.include(f"chamber_{side}", variable_chamber.build(chamber))
        graph.junction(side, "0")
        graph.bond(side, f"chamber_{side}.port")
        graph.bond(f"piston.{side}", f"chamber_{side}.wall")
    graph.add("leakage", _passage.leakage(params.leakage))
    graph.chain("a", "across", "b")
    graph.bond("across", "leakage")
    add_rod(graph, params)
    return graph


def add_rod(graph: BondGraph, params: Any) -> None:
    """Friction and end stops of a piston; params: have the keys of those above."""

    def friction(v: Numeric) -> Numeric:
        return params.viscous * v + params.coulomb * ops.smooth_sign(v, CREEP_SPEED)

    def penetration(s: Numeric) -> Numeric:
        """Into the outer stop; negative: into the inner one."""
        return s - ops.clip(s, 0.0, params.stroke)

    def stop(s: Numeric) -> Numeric:
        return params.stop_stiffness * penetration(s)

    def energy(s: Numeric) -> Numeric:
        return 0.5 * stop(s) * penetration(s)

    def damping(v: Numeric, s: Numeric) -> Numeric:
        """k δ max(c dδ/dt, −1), in the direction of the spring."""
        inwards = v * ops.sign(penetration(s))
        return stop(s) * ops.maximum(params.stop_damping * inwards, -1.0)

    graph.add("friction", R("translational", Law(friction, ("flow",))))
    state = ("displacement",)
    graph.add("stops", C("translational", Law(stop, state), params.extension, Law(energy, state)))
    graph.add("damping", R("translational", Law(damping, ("flow", "stops.displacement"))))
    for name in ("friction", "stops", "damping"):
        graph.bond("piston.rod", name)
