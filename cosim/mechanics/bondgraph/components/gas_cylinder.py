"""A double-acting pneumatic cylinder: two chambers of air whose volumes follow the piston, friction, end stops.

V_a = V_d + A_a s, V_b = V_d + A_b (l − s) at the extension s, each a `gas_chamber` with a wall; F = A_a (p_a − p0) −
A_b (p_b − p0) with the ambient pressure p0. Closed and isothermal, a chamber has the stiffness p A² / V, and γ times as
much if it is adiabatic. End stops and friction are those of `cylinder`.
"""

from __future__ import annotations

from cosim.core.errors import SectionError
from cosim.core.types import param, params
from cosim.mechanics.bondgraph import BondGraph
from cosim.mechanics.bondgraph.components import _gas, cylinder, gas_chamber, ideal_cylinder


@params
class Params:
    area_a: float = param(unit="m^2", above=0, doc="of the piston on side a, which pushes the rod out")
    area_b: float = param(unit="m^2", above=0, doc="of the piston on side b, around the rod")
    stroke: float = param(unit="m", above=0, doc="extension at the outer end stop; 0 at the inner one")
    dead_volume: float = param(unit="m^3", above=0, doc="of each chamber at its end stop, with its hose")
    extension: float = param(unit="m", min=0, default=0.0, doc="at the start")
    pressure_a: float = _gas.pressure("at the start")
    pressure_b: float = _gas.pressure("at the start")
    temperature: float = _gas.temperature()
    thermal_resistance: float | None = param(
        unit="K/W", above=0, default=None, doc="of the shell of each chamber; adiabatic without"
    )
    ambient_temperature: float = _gas.temperature("around the shell")
    isothermal: bool = param(default=False, doc="the air keeps its temperature")
    viscous: float = param(unit="N*s/m", min=0, default=0.0, doc="viscous friction")
    coulomb: float = param(unit="N", min=0, default=0.0, doc="Coulomb friction")
    stop_stiffness: float = param(unit="N/m", above=0, default=1e6, doc="of the end stops")
    stop_damping: float = param(unit="s/m", min=0, default=10.0, doc="c of the end stops")

    def __post_init__(self) -> None:
        gas_chamber.check_heat(self.isothermal, self.thermal_resistance)


def build(params: Params) -> BondGraph:
    """Ports: `a`, `b`, `rod`. Raises SectionError for a start beyond the stroke."""
    if params.extension > params.stroke:
        raise SectionError("the piston starts beyond its stroke; lower it, or raise 'stroke'", ("extension",))
    graph = BondGraph(ports={"rod": "piston.rod"})
    graph.include("piston", ideal_cylinder.build(ideal_cylinder.Params(params.area_a, params.area_b)))
    sides = {
        "a": (params.area_a * params.extension, params.pressure_a),
        "b": (params.area_b * (params.stroke - params.extension), params.pressure_b),
    }
    air = params.temperature, params.thermal_resistance, params.ambient_temperature, params.isothermal
    for side, (swept, pressure) in sides.items():
        of_side = gas_chamber.Params(params.dead_volume + swept, pressure, *air)
        graph.include(f"chamber_{side}", gas_chamber.chamber(of_side, moves=True))
        graph.ports[side] = f"chamber_{side}.port"
        graph.bond(f"piston.{side}", f"chamber_{side}.wall")
    cylinder.add_rod(graph, params)
    return graph
