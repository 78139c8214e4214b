"""A battery: a voltage over its state of charge, behind an internal resistance.

    u = U(s) − R i,  ṡ = −i / Q

U is linear between the points of the table and constant beyond them. The energy in it is Q ∫ U ds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from cosim.core import ops
from cosim.core.interpolation import interpolated
from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import BondGraph, C, Law, R


@params
class Params:
    capacity: float = param(unit="C", above=0.0, doc="Q")
    charges: tuple[float, ...] = param(unit="1", min=0.0, max=1.0, doc="states of charge s of the table, increasing")
    voltages: tuple[float, ...] = param(unit="V", above=0.0, doc="U at these, without load")
    resistance: float = param(unit="ohm", above=0.0, doc="R")
    charge: float = param(unit="1", min=0.0, max=1.0, default=0.8, doc="s at the start")

    def __post_init__(self) -> None:
        if len(self.charges) != len(self.voltages) or not self.charges:
            raise ValueError("charges and voltages are one table; give as many of each")
        if any(a >= b for a, b in pairwise(self.charges)):
            raise ValueError("the charges of a table increase; sort them")
        if any(y > z for y, z in pairwise(self.voltages)):
            raise ValueError(
                "the voltage of a battery does not fall with its charge; give voltages in the order of charges"
            )

    @property
    def nominal(self) -> float:
        """The voltage of a link without load [V]."""
        return float(self.at(self.charge))

    def at(self, charge: Numeric) -> Numeric:
        """U at a state of charge [V]."""
        return interpolated(charge, self.charges, self.voltages.__getitem__)


def integral(x: Numeric, points: Sequence[float], values: Sequence[float]) -> Numeric:
    """∫ of `interpolated` from 0 to x."""
    found = values[0] * x
    for (a, b), (y, z) in zip(pairwise(points), pairwise(values), strict=True):
        within, beyond = ops.clip(x, a, b) - a, ops.maximum(x - b, 0.0)
        found = found + (z - y) / (b - a) * (0.5 * within * within + (b - a) * beyond)
    return found


def build(params: Params) -> BondGraph:
    """Port: `output`."""
    capacity = params.capacity
    state = ("displacement",)
    graph = BondGraph(ports={"output": "output"})
    graph.junction("output", "0")
    graph.junction("path", "1")
    cells = C(
        "electrical",
        Law(lambda q: params.at(q / capacity), state),
        initial=params.charge * capacity,
        energy=Law(lambda q: capacity * integral(q / capacity, params.charges, params.voltages), state),
    )
    graph.add("cells", cells)
    graph.add("internal", R("electrical", params.resistance))
    graph.chain("output", "path", "cells")
    graph.bond("path", "internal")
    graph.signals["current"] = Law(lambda charging: -charging, ("internal.flow",)), "A"
    graph.signals["state_of_charge"] = Law(lambda q: q / capacity, ("cells.displacement",)), "1"
    return graph
