"""The half bridges of an inverter: what they give of the voltage of their link, and what they lose.

Averaged over the switching periods a half bridge that carries i drops V s(i) + R i, whichever of its switches and
diodes conducts, and takes f_s t_s U |i| of its link of the voltage U: a change of the switches at a current that falls
linearly while the voltage rises, and back, takes U |i| t_s (Mohan, Undeland and Robbins, Power Electronics, ch. 2).

A full bridge has two of them in series. Of three phases the means over an electrical turn are used: the drop is 4/π V
along the current, and the sum of |i| is 6/π times its amplitude; of two phases with a full bridge each
they are 8/π V and 8/π times. Of three legs of which one is open, the other two conduct the current in series.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph import BondGraph, Law, R, Se
from cosim.mechanics.bondgraph.components._current_control import Inverter
from cosim.mechanics.bondgraph.components._phases import in_phases


class InverterBridge(NamedTuple):
    """needed: (voltages in the graph) of the link that gives them [V]; per_link: largest amplitude of a phase per
    voltage of the link, to the middle of the link of legs without a star of their own; scale: of currents and voltages
    in the graph per amplitude; drop, currents: of V, and Σ |i|, per amplitude of the current; resistances: in series
    with each winding in the graph; conductors: of a cable, in series with each winding there."""

    needed: Callable[[Sequence[Numeric]], Numeric]
    per_link: float
    scale: float
    drop: float
    currents: float
    resistances: float
    conductors: int

    def size(self, inverter: Inverter, *currents: Numeric) -> Numeric:
        """The current in the graph, rounded around 0."""
        least = self.scale * inverter.rounding_current
        return ops.sqrt(ops.sum(i * i for i in currents) + least * least)

    def conduction(self, inverter: Inverter, k: int, *currents: Numeric) -> Numeric:
        """The drop in winding k [V]."""
        along = self.scale * self.drop * inverter.on_voltage / self.size(inverter, *currents)
        return (along + self.resistances * inverter.on_resistance) * currents[k]

    def switched(self, inverter: Inverter, *currents: Numeric) -> Numeric:
        """The current out of the link [A]."""
        size = ops.sum(i * i for i in currents) / self.size(inverter, *currents) / self.scale
        return inverter.switching_frequency * inverter.switching_time * self.currents * size


def _largest(voltages: Sequence[Numeric]) -> Numeric:
    """Of full bridges, one for each."""
    return reduce(ops.maximum, map(ops.abs, voltages))


def _between_legs(voltages: Sequence[Numeric]) -> Numeric:
    """Of legs whose voltages have these α and β: the largest between two of them."""
    legs = in_phases(*voltages)
    return reduce(ops.maximum, legs) - reduce(ops.minimum, legs)


def _by_space_vectors(voltages: Sequence[Numeric]) -> Numeric:
    """Of three legs that give a vector in every direction, √3 times its amplitude: √2 times its size in the graph."""
    return ops.sqrt(2.0 * ops.sum(u * u for u in voltages) + 1e-24)


TWO_LEGS = InverterBridge(_between_legs, 0.5, math.sqrt(2.0), 1.0, 2.0, 1.0, 1)  # the third one is open
FULL_BRIDGE = InverterBridge(_largest, 1.0, 1.0, 2.0, 2.0, 2.0, 2)
TWO_PHASES = InverterBridge(_largest, 1.0, 1.0, 8.0 / math.pi, 8.0 / math.pi, 2.0, 2)
THREE_PHASES = InverterBridge(
    _by_space_vectors, 1.0 / math.sqrt(3.0), math.sqrt(1.5), 4.0 / math.pi, 6.0 / math.pi, 1.0, 1
)


def windings_of(motor: BondGraph) -> dict[str, Law]:
    """The sources of the voltages of its windings."""
    return {
        name: element.value
        for name, element in motor.elements.items()
        if element.kind == "Se" and element.domains == ("electrical",) and isinstance(element.value, Law)
    }


def add_conduction(motor: BondGraph, bridge: InverterBridge, inverter: Inverter | None) -> None:
    """A resistance `conduction_<source>` in series with each source of a voltage."""
    if inverter is None or not (inverter.on_voltage or inverter.on_resistance):
        return
    sources = list(windings_of(motor))
    uses = tuple(f"conduction_{source}.flow" for source in sources)
    for k, source in enumerate(sources):
        law = Law(lambda *currents, k=k: bridge.conduction(inverter, k, *currents), uses)
        motor.add(f"conduction_{source}", replace(R("electrical", law), part="inverter"))
        motor.bond(next(head for tail, head in motor.bonds if tail == source), f"conduction_{source}")


def add_switching(
    motor: BondGraph, bridge: InverterBridge, inverter: Inverter | None, meshes: tuple[str, ...], link: str
) -> None:
    """A resistance `switching` at the junction `link`; at a source `switching_supply` of its own, where that is "".
    meshes: the junctions of the windings."""
    if inverter is None or not inverter.switching_time:
        return
    uses = tuple(f"{mesh}.flow" for mesh in meshes)
    law = Law(lambda *currents: bridge.switched(inverter, *currents), uses)
    motor.add("switching", replace(R("electrical", law, gives="flow"), part="inverter"))
    if not link:
        link = motor.add("switching_supply", Se("electrical", inverter.supply_voltage))
    motor.bond(link, "switching")


def meshes_of(motor: BondGraph) -> tuple[str, ...]:
    """The junctions of the windings."""
    return tuple(next(head for tail, head in motor.bonds if tail == source) for source in windings_of(motor))
