"""Hydraulic graphs of several tests: components between a pump and a tank, a cylinder with a mass."""

from typing import Any

from cosim.mechanics.bondgraph import BondGraph, I, Law, Se
from cosim.mechanics.bondgraph.components import cylinder, orifice, pressure_pump, spool_valve
from tests.bondgraph.graphs import graph_of

AREA, STROKE, MASS, FORCE, SUPPLY = 0.0201, 1.0, 6000.0, 15e3, 1e6  # SI units, of both worked models
OPENING = 1.2566e-4  # m²
H = "hydraulic"


def built(component: Any, **keys: Any) -> BondGraph:
    """The graph of a component, by its module and the keys of its parameters."""
    return component.build(component.Params(**keys))


def supplied(pressure: float = SUPPLY) -> BondGraph:
    """`pump.port` and `tank`."""
    return graph_of(pump=built(pressure_pump, pressure=pressure), tank=Se(H, 0.0))


def between(component: BondGraph, pressure: float) -> BondGraph:
    """A component with the ports a and b, `item`, between pump and tank."""
    graph = supplied(pressure)
    graph.include("item", component)
    graph.chain("pump.port", "item.a")
    graph.chain("item.b", "tank")
    return graph


def throttled(graph: BondGraph) -> BondGraph:
    """With orifices before and behind the cylinder of the graph."""
    for name, (before, behind) in {"inlet": ("pump.port", "cylinder.a"), "outlet": ("cylinder.b", "tank")}.items():
        graph.include(name, built(orifice, area=OPENING))
        graph.bond(before, f"{name}.a")
        graph.bond(f"{name}.b", behind)
    return graph


def pushed_cylinder(graph: BondGraph, component: BondGraph, force: float = -FORCE, mass: float = MASS) -> BondGraph:
    """Adds `cylinder`, a mass and a force on its rod."""
    graph.include("cylinder", component)
    graph.add("mass", I("translational", mass))
    graph.add("force", Se("translational", force))
    graph.bond("cylinder.rod", "mass")
    graph.bond("force", "cylinder.rod")
    return graph


def loaded_cylinder(graph: BondGraph, force: float = -FORCE, mass: float = MASS, **keys: Any) -> BondGraph:
    """keys: of the cylinder, beside the worked models'."""
    worked = {"area_a": AREA, "area_b": AREA, "stroke": STROKE, "extension": 0.5, "dead_volume": 1e-4}
    return pushed_cylinder(graph, built(cylinder, **{**worked, **keys}), force, mass)


def throttled_cylinder(**keys: Any) -> BondGraph:
    """The cylinder between two orifices."""
    return throttled(loaded_cylinder(supplied(), **keys))


def valve_cylinder(opening: float = 0.002, valve: dict[str, Any] | None = None, **keys: Any) -> BondGraph:
    """The cylinder behind a four-way valve; valve: further keys of it."""
    graph = loaded_cylinder(supplied(), **keys)
    given = {"diameter": 0.02, "max_opening": 0.003, "command": Law(lambda: opening), **(valve or {})}
    graph.include("valve", built(spool_valve, **given))
    graph.bond("pump.port", "valve.p")
    graph.bond("valve.t", "tank")
    graph.bond("valve.a", "cylinder.a")
    graph.bond("valve.b", "cylinder.b")
    return graph
