"""The keys of the thermal network of a machine: its nodes, and the ways of the heat between them. See `_thermal.py`."""

from __future__ import annotations

from cosim.core.types import param, params
from cosim.mechanics.bondgraph import Law

AMBIENT, WINDING, HOUSING = "ambient", "winding", "housing"
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
