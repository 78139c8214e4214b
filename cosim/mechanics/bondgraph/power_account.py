"""What becomes of the power of a drive, by part: as powers, and as energies since the start.

    Ė = P,  Σ e f over the resistances of a part,  Ė_returned = max(−P, 0) of a supply

The energies are states, so their sum is the balance of energy of the run, whatever the integrator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph.domains import DOMAINS
from cosim.mechanics.bondgraph.elements import C, Element, Law, Sf
from cosim.mechanics.bondgraph.graph import BondGraph

# of a loss -> what it is
LOSSES: Mapping[str, str] = {
    "copper": "the windings",
    "cable": "the cable before a motor",
    "iron": "hysteresis and eddy currents",
    "inverter": "its conduction and switching",
    "gear": "meshes and friction that grows with the load",
    "friction": "bearings and the joint",
    "chopper": "the brake resistor",
    "supply": "inside the supply",
    "hydraulic": "valves, lines and leakage",
    "other": "everything else",
}
ELECTRICAL, RETURNED = "electrical", "returned"
ENERGY = "_energy"  # ends the name of the signal of an energy


def dissipating(graph: BondGraph) -> dict[str, Element]:
    """The resistances that turn power into heat."""
    return {name: e for name, e in graph.elements.items() if e.kind == "R" and DOMAINS[e.domains[0]].product_is_power}


def losses_by_part(graph: BondGraph, part_of: Callable[[str, Element], str]) -> dict[str, list[str]]:
    """Part -> its resistances. part_of: of one that has no `part` of its own, "" for one that is not counted."""
    found: dict[str, list[str]] = {}
    for name, element in dissipating(graph).items():
        if part := element.part or part_of(name, element):
            found.setdefault(part, []).append(name)
    return {part: found[part] for part in LOSSES if part in found}


def add_losses(graph: BondGraph, parts: Mapping[str, Iterable[str]]) -> None:
    """The signals `<part>_loss` [W] and `<part>_energy` [J] of these resistances."""
    for part, elements in parts.items():
        uses = [f"{name}.{side}" for name in elements for side in ("effort", "flow")]
        add_account(graph, part, f"{part}_loss", Law(_sum_of_products, tuple(uses)))


def add_supply(graph: BondGraph, power: Law) -> None:
    """The signals `electrical_power` [W], `electrical_energy` and `returned_energy` [J] of a supply with this power."""
    add_account(graph, ELECTRICAL, f"{ELECTRICAL}_power", power)
    back = Law(lambda *signals: ops.maximum(-power.fn(*signals), 0.0), power.uses)
    add_account(graph, RETURNED, "", back)


def add_account(graph: BondGraph, name: str, power_signal: str, power: Law) -> None:
    """The energy of a power [W] since the start, a state and the signal `<name>_energy`; power_signal: "" for none."""
    node, rate, energy = (f"account_{name}{end}" for end in ("", "_rate", ENERGY))
    graph.junction(node, "0")
    graph.add(rate, Sf("signal", power))
    graph.add(energy, C("signal", 1.0))
    graph.chain(rate, node, energy)
    if power_signal:
        graph.signals[power_signal] = power, "W"
    graph.signals[f"{name}{ENERGY}"] = Law(lambda held: held, (f"{energy}.displacement",)), "J"


def supplied_by(sources: Sequence[str], entered: Sequence[str] = ()) -> Law:
    """The power of sources; entered: of these whose bonds enter them."""

    def power(*signals: Numeric) -> Numeric:
        end = 2 * len(sources)
        return _sum_of_products(*signals[:end]) - _sum_of_products(*signals[end:])

    uses = tuple(f"{name}.{side}" for name in (*sources, *entered) for side in ("effort", "flow"))
    return Law(power if entered else _sum_of_products, uses)


def _sum_of_products(*signals: Numeric) -> Numeric:
    return ops.sum(e * f for e, f in zip(signals[::2], signals[1::2], strict=True))
