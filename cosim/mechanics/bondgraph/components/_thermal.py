"""Two thermal nodes of a machine, winding and housing, and the resistance that rises with the temperature.

    C_w Ṫ_w = P − (T_w − T_h) / R_wh,  C_h Ṫ_h = (T_w − T_h) / R_wh − T_h / R_ha,  R = R_0 (1 + α T_w)

Temperatures are rises over the ambient temperature, at which R_0 is given; P is the loss of the windings.
"""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import BondGraph, C, Law, R, Sf


@params
class Thermal:
    winding_capacity: float = param(unit="J/K", above=0.0, doc="C_w")
    housing_capacity: float = param(unit="J/K", above=0.0, doc="C_h")
    winding_to_housing: float = param(unit="K/W", above=0.0, doc="R_wh")
    housing_to_ambient: float = param(unit="K/W", above=0.0, doc="R_ha")
    coefficient: float = param(unit="1", min=0.0, default=0.00393, doc="α per kelvin, of copper by default")


def add_windings(graph: BondGraph, meshes: Sequence[str], resistance: float, thermal: Thermal | None) -> None:
    """A resistance in each mesh, `resistance` or `resistance_<mesh>`; with `thermal` the nodes `winding_heat` and
    `housing_heat` that the losses of all heat."""
    names = {mesh: "resistance" if len(meshes) == 1 else f"resistance_{mesh}" for mesh in meshes}
    for mesh, name in names.items():
        graph.add(name, R("electrical", resistance if thermal is None else _hot(resistance, thermal.coefficient)))
        graph.bond(mesh, name)
    if thermal is None:
        return
    graph.junction("winding_node", "0")
    graph.junction("housing_node", "0")
    graph.junction("conduction", "1")
    for mesh, name in names.items():
        loss = Law(lambda e, f: e * f, (f"{name}.effort", f"{name}.flow"))
        graph.add(f"loss_{mesh}", Sf("thermal", loss))
        graph.bond(f"loss_{mesh}", "winding_node")
    graph.add("winding_heat", C("thermal", 1.0 / thermal.winding_capacity))
    graph.add("housing_heat", C("thermal", 1.0 / thermal.housing_capacity))
    graph.add("to_housing", R("thermal", thermal.winding_to_housing))
    graph.add("to_ambient", R("thermal", thermal.housing_to_ambient))
    graph.chain("winding_node", "winding_heat")
    graph.chain("winding_node", "conduction", "housing_node", "housing_heat")
    graph.bond("conduction", "to_housing")
    graph.bond("housing_node", "to_ambient")
    for node in ("winding", "housing"):
        graph.signals[f"{node}_temperature"] = Law(lambda rise: rise, (f"{node}_heat.effort",)), "K"


def _hot(resistance: float, coefficient: float) -> Law:
    def effort(current: Numeric, temperature_rise: Numeric) -> Numeric:
        return resistance * (1.0 + coefficient * temperature_rise) * current

    return Law(effort, ("flow", "winding_heat.effort"))
