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

from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import BondGraph, C, Law, R, Se, Sf
from cosim.mechanics.bondgraph.components._heated_network import HeatedNetwork
from cosim.mechanics.bondgraph.elements import Value

AMBIENT, WINDING, HOUSING, IRON = "ambient", "winding", "housing", "iron"
COPPER = "loss_mesh"  # begins the names of losses in windings
STEEPEST_RESISTANCE, STEEPEST_FLUX = 0.02, -0.01  # per kelvin, of any metal and any magnet


@params
class ThermalNode:
    name: str = param(doc="such as `winding`, `iron`, `housing`, `flange`")
    capacity: float = param(unit="J/K", above=0.0, doc="C")
    limit: float | None = param(unit="K", above=0.0, default=None, doc="rise at which `time_to_limit` is 0")


@params
class ThermalCoupling:
    between: tuple[str, str] = param(doc="two nodes, or a node and `ambient`")
    resistance: float | None = param(unit="K/W", above=0.0, default=None, doc="1 / G")
    conductance: float | None = param(unit="W/K", above=0.0, default=None, doc="G, in place of `resistance`")

    def __post_init__(self) -> None:
        if (self.resistance is None) == (self.conductance is None):
            raise ValueError("a coupling has a resistance in K/W or a conductance in W/K; give one of both")

    @property
    def heat_per_difference(self) -> float:
        """G [W/K]."""
        if self.conductance is not None:
            return self.conductance
        assert self.resistance is not None
        return 1.0 / self.resistance


@params
class Thermal:
    winding_capacity: float | None = param(unit="J/K", above=0.0, default=None, doc="C_w")
    housing_capacity: float | None = param(unit="J/K", above=0.0, default=None, doc="C_h")
    winding_to_housing: float | None = param(unit="K/W", above=0.0, default=None, doc="R_wh")
    housing_to_ambient: float | None = param(unit="K/W", above=0.0, default=None, doc="R_ha")
    coefficient: float = param(
        unit="1", min=0.0, default=0.00393, doc="α per kelvin, of copper by default; at most 0.02"
    )
    winding_limit: float | None = param(unit="K", above=0.0, default=None, doc="rise at which `time_to_limit` is 0")
    nodes: tuple[ThermalNode, ...] = param(default=(), doc="instead of both nodes")
    couplings: tuple[ThermalCoupling, ...] = param(default=(), doc="between the `nodes`")
    ambient: Law | None = param(default=None, doc="its rise in K, an expression of the time `t`")
    flux_coefficient: float = param(
        unit="1", max=0.0, default=0.0, doc="β per kelvin, −0.0012 of NdFeB, −0.002 of ferrite; at least −0.01"
    )
    magnets: str | None = param(default=None, doc="the node of the magnets; `iron`, or `housing` without it")

    def __post_init__(self) -> None:
        if self.coefficient > STEEPEST_RESISTANCE:
            most = f"coefficient is per kelvin and at most {STEEPEST_RESISTANCE}"
            raise ValueError(f"{most}, is {self.coefficient:g}; 0.393 % per kelvin is 0.00393")
        if self.flux_coefficient < STEEPEST_FLUX:
            least = f"flux_coefficient is per kelvin and at least {STEEPEST_FLUX}"
            raise ValueError(f"{least}, is {self.flux_coefficient:g}; -0.12 % per kelvin is -0.0012")
        two = (self.winding_capacity, self.housing_capacity, self.winding_to_housing, self.housing_to_ambient)
        if any(value is not None for value in two) and (self.nodes or self.couplings):
            raise ValueError("give the capacities of winding and housing, or nodes and couplings, not both")
        if not self.nodes and None in two:
            raise ValueError("two nodes have both capacities and both resistances; give all four, or nodes")
        if self.winding_limit is not None and self.nodes:
            raise ValueError("a node has its own limit; give it in nodes")
        if self.ambient is not None and set(self.ambient.uses) - {"t"}:
            raise ValueError("the ambient temperature depends on the time t alone; use no other signal")
        names = [node.name for node in self.network_nodes]
        if len(set(names)) < len(names) or AMBIENT in names:
            raise ValueError(f"each node has a name of its own, other than {AMBIENT}; rename one")
        if WINDING not in names:
            raise ValueError(f"the losses of the windings heat the node '{WINDING}'; give one of this name")
        for name in [name for coupling in self.network_couplings for name in coupling.between]:
            if name not in (*names, AMBIENT):
                raise ValueError(f"there is no node '{name}'; name one of {', '.join((*names, AMBIENT))}")
        if self.magnets is not None and self.magnets not in names:
            raise ValueError(f"there is no node '{self.magnets}' of the magnets; name one of {', '.join(names)}")
        if alone := sorted(set(names) - self._reached):
            raise ValueError(f"no way leads from node '{alone[0]}' to {AMBIENT}; couple it")

    @property
    def network_nodes(self) -> tuple[ThermalNode, ...]:
        if self.nodes:
            return self.nodes
        assert self.winding_capacity is not None and self.housing_capacity is not None
        winding = ThermalNode(WINDING, self.winding_capacity, self.winding_limit)
        return winding, ThermalNode(HOUSING, self.housing_capacity)

    @property
    def network_couplings(self) -> tuple[ThermalCoupling, ...]:
        if self.nodes:
            return self.couplings
        assert self.winding_to_housing is not None and self.housing_to_ambient is not None
        inside = ThermalCoupling((WINDING, HOUSING), self.winding_to_housing)
        return inside, ThermalCoupling((HOUSING, AMBIENT), self.housing_to_ambient)

    @property
    def _reached(self) -> set[str]:
        """The nodes from which heat can leave."""
        found, before = {AMBIENT}, 0
        while len(found) > before:
            before = len(found)
            for a, b in (coupling.between for coupling in self.network_couplings):
                found |= {a, b} if {a, b} & found else set()
        return found

    def node_of(self, *wanted: str | None) -> str:
        """The first of these nodes that there is, else the one of the windings."""
        names = [node.name for node in self.network_nodes]
        return next((name for name in wanted if name in names), WINDING)


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
