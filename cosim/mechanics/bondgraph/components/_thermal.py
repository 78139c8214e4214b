"""The thermal network of a machine, the resistance that rises with the temperature and the flux that falls with it.

Two nodes, winding and housing, or a network of your own: heat capacities C, resistances 1 / G between them and to the
ambient air.

    C_i Ṫ_i = P_i − Σ_j G_ij (T_i − T_j),  R = R_0 (1 + α T_winding),  ψ = ψ_0 (1 + β T_magnets)

Temperatures are rises over the one at which R_0 and ψ_0 are given; by default the ambient air has that. The losses of
the windings heat the node `winding`, those of the iron the node `iron`, or `housing` where there is none.

`time_to_limit` is in `heated_network.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cosim.core.types import Numeric
from cosim.mechanics.bondgraph import BondGraph, C, Law, R, Se, Sf
from cosim.mechanics.bondgraph.components._heated_network import HeatedNetwork
from cosim.mechanics.bondgraph.components._thermal_network import AMBIENT, HOUSING, WINDING, Thermal, ThermalCoupling
from cosim.mechanics.bondgraph.elements import Value

IRON = "iron"
COPPER = "loss_mesh"  # begins the names of losses in windings


def add_windings(graph: BondGraph, meshes: Sequence[str], resistance: float, thermal: Thermal | None) -> None:
    """A resistance in each mesh, `resistance` or `resistance_<mesh>`; with `thermal` the nodes `<node>_heat`, which the
    losses of all heat."""
    names = {mesh: "resistance" if len(meshes) == 1 else f"resistance_{mesh}" for mesh in meshes}
    for mesh, name in names.items():
        graph.add(name, R("electrical", resistance if thermal is None else _hot(resistance, thermal.coefficient)))
        graph.bond(mesh, name)
    if thermal is None:
        return
    for node in thermal.network_nodes:
        graph.junction(f"{node.name}_node", "0")
    for mesh, name in names.items():
        add_loss(graph, f"loss_{mesh}", name, WINDING)
    start = 0.0 if thermal.ambient is None else float(thermal.ambient.fn(*(0.0 for _ in thermal.ambient.uses)))
    for node in thermal.network_nodes:
        graph.add(f"{node.name}_heat", C("thermal", 1.0 / node.capacity, initial=node.capacity * start))
        graph.bond(f"{node.name}_node", f"{node.name}_heat")
    if thermal.ambient is not None:
        graph.add(AMBIENT, Se("thermal", thermal.ambient))
        graph.junction(f"{AMBIENT}_node", "0")
        graph.bond(AMBIENT, f"{AMBIENT}_node")
    for coupling in thermal.network_couplings:
        _couple(graph, coupling, thermal.ambient is not None)
    for node in thermal.network_nodes:
        graph.signals[f"{node.name}_temperature"] = Law(lambda rise: rise, (f"{node.name}_heat.effort",)), "K"


def _couple(graph: BondGraph, coupling: ThermalCoupling, ambient_node: bool) -> None:
    a, b = sorted(coupling.between, key=lambda name: name == AMBIENT)
    name = f"{a}_to_{b}"
    graph.add(
        name, R("thermal", 1.0 / coupling.heat_per_difference if coupling.resistance is None else coupling.resistance)
    )
    if b == AMBIENT and not ambient_node:
        graph.bond(f"{a}_node", name)
        return
    graph.junction(f"conduction_{name}", "1")
    graph.chain(f"{a}_node", f"conduction_{name}", f"{b}_node")
    graph.bond(f"conduction_{name}", name)


def add_loss(graph: BondGraph, name: str, element: str, node: str) -> None:
    """The heat of a resistance into a node."""
    graph.add(name, Sf("thermal", Law(lambda e, f: e * f, (f"{element}.effort", f"{element}.flow"))))
    graph.bond(name, f"{node}_node")


def refuse_magnets(thermal: Thermal | None) -> None:
    """Raises ValueError for magnets of a machine that has none."""
    if thermal is not None and thermal.flux_coefficient:
        raise ValueError("it has no magnets, whose flux falls; take flux_coefficient out of 'thermal'")


def add_limits_and_magnets(graph: BondGraph, thermal: Thermal | None, magnets: Mapping[str, Value]) -> None:
    """What follows from the temperatures once all losses are there: `time_to_limit`, and the flux of the magnets, which
    has these parts in the ratios of gyrators."""
    if thermal is None:
        return
    if thermal.flux_coefficient:
        node = thermal.node_of(thermal.magnets, IRON, HOUSING)
        for machine, part in magnets.items():
            _weaken(graph, machine, part, thermal.flux_coefficient, node)
    if any(node.limit is not None for node in thermal.network_nodes):
        names = [f"{node.name}_heat.effort" for node in thermal.network_nodes]
        losses = [(tail, head.removesuffix("_node")) for tail, head in graph.bonds if tail.startswith("loss_")]
        copper = tuple(loss.startswith(COPPER) for loss, _ in losses)
        network = HeatedNetwork(thermal, tuple(node for _, node in losses), copper)
        uses = (*(["t"] if thermal.ambient else []), *names, *(f"{loss}.flow" for loss, _ in losses))
        graph.signals["time_to_limit"] = Law(network.time_to_limit, uses), "s"


def _weaken(graph: BondGraph, machine: str, magnets: Value, coefficient: float, node: str) -> None:
    element = graph.elements[machine]
    assert element.value is not None
    cold, part = _law(element.value), _law(magnets)

    def hot(temperature_rise: Numeric, *signals: Numeric) -> Numeric:
        own = len(cold.uses)
        return cold.fn(*signals[:own]) + part.fn(*signals[own:]) * coefficient * temperature_rise

    graph.elements[machine] = replace(element, value=Law(hot, (f"{node}_heat.effort", *cold.uses, *part.uses)))


def _law(value: Value) -> Law:
    return value if isinstance(value, Law) else Law(lambda: value)


def _hot(resistance: float, coefficient: float) -> Law:
    def effort(current: Numeric, temperature_rise: Numeric) -> Numeric:
        return resistance * (1.0 + coefficient * temperature_rise) * current

    return Law(effort, ("flow", "winding_heat.effort"))
