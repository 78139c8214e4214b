"""Hydraulic graphs of several tests: components between a pump and a tank, a cylinder with a mass."""

from __future__ import annotations

from typing import Any

from cosim.bondgraph import BondGraph, I, Law, Se
from cosim.bondgraph.components import cylinder, orifice, pressure_pump, spool_valve

AREA, STROKE, MASS, FORCE, SUPPLY = 0.0201, 1.0, 6000.0, 15e3, 1e6  # SI units, of both worked models
OPENING = 1.2566e-4  # m²


def built(component: Any, **keys: Any) -> BondGraph:
    """The graph of a component, by its module and the keys of its parameters."""
    return component.build(component.Params(**keys))


def supplied(pressure: float = SUPPLY) -> BondGraph:
    """`pump.port` and `tank`."""
    graph = BondGraph()
    graph.include("pump", built(pressure_pump, pressure=pressure))
    graph.add("tank", Se("hydraulic", 0.0))
    return graph


def between(component: BondGraph, pressure: float) -> BondGraph:
    """A component with the ports a and b, `item`, between pump and tank."""
    graph = supplied(pressure)
    graph.include("item", component)
    graph.bond("pump.port", "item.a")
    graph.bond("item.b", "tank")
    return graph


def loaded_cylinder(graph: BondGraph, force: float = -FORCE, mass: float = MASS, **keys: Any) -> BondGraph:
    """Adds `cylinder`, a mass and a force on its rod; keys: of the cylinder beside those of the worked models."""
    worked = {"area_a": AREA, "area_b": AREA, "stroke": STROKE, "extension": 0.5, "dead_volume": 1e-4}
    graph.include("cylinder", built(cylinder, **{**worked, **keys}))
    graph.add("mass", I("translational", mass))
    graph.add("force", Se("translational", force))
    graph.bond("cylinder.rod", "mass")
    graph.bond("force", "cylinder.rod")
    return graph


def throttled_cylinder(**keys: Any) -> BondGraph:
    """The cylinder between two orifices."""
    graph = loaded_cylinder(supplied(), **keys)
    for name in ("inlet", "outlet"):
        graph.include(name, built(orifice, area=OPENING))
    graph.chain("pump.port", "inlet.a")
    graph.chain("inlet.b", "cylinder.a")
    graph.chain("cylinder.b", "outlet.a")
    graph.chain("outlet.b", "tank")
    return graph


def valve_cylinder(opening: float = 0.002, valve: dict[str, Any] | None = None, **keys: Any) -> BondGraph:
    """The cylinder behind a four-way valve; valve: further keys of it."""
    graph = loaded_cylinder(supplied(), **keys)
    command = Law(lambda: opening)
    graph.include("valve", built(spool_valve, diameter=0.02, max_opening=0.003, command=command, **(valve or {})))
    graph.bond("pump.port", "valve.p")
    graph.bond("valve.t", "tank")
    graph.bond("valve.a", "cylinder.a")
    graph.bond("valve.b", "cylinder.b")
    return graph
