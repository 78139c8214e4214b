"""Cable between an inverter and a motor: U_in − U_out = R i + L i̇, with R = n l R' (1 + α ΔT) and L = n l L'.

n conductors of the length l are in series: 2 to a DC machine, there and back, 1 for each phase of a star, also where
the axes α and β stand for the phases. In axes d and q, which turn by the electrical angle φ, the inductance also has

    U_d = R i_d + L i̇_d − φ̇ L i_q,   U_q = R i_q + L i̇_q + φ̇ L i_d,

a gyrator between both meshes without power of its own, since −φ̇ L i_q i_d + φ̇ L i_d i_q = 0.

Port: `conductor`, a 1-junction, from a source and to the mesh of a machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cosim.core.types import param, params
from cosim.mechanics.bondgraph import GY, BondGraph, I, Law, R
from cosim.mechanics.bondgraph.components._switching import weaken_ripple


@params
class Params:
    length: float = param(unit="m", above=0.0, doc="l")
    resistance: float = param(unit="ohm/m", above=0.0, doc="R' of a conductor at the temperature it is given for")
    inductance: float = param(unit="H/m", min=0.0, default=0.0, doc="L' of a conductor")
    conductors: int | None = param(
        min=1, default=None, doc="n, in series; by default 1, in a `drive` as many as its machine needs"
    )
    temperature_rise: float = param(unit="K", default=0.0, doc="ΔT over that temperature")
    coefficient: float = param(unit="1", min=0.0, default=0.00393, doc="α per kelvin, of copper by default")

    def __post_init__(self) -> None:
        if not self.factor > 0.0:
            raise ValueError("so cold that its resistance is 0 or less; raise temperature_rise")

    @property
    def factor(self) -> float:
        """1 + α ΔT"""
        return 1.0 + self.coefficient * self.temperature_rise

    def in_series(self, conductors: int = 1) -> tuple[float, float]:
        """(R [Ω], L [H]); conductors: n where it is not given."""
        length = (self.conductors or conductors) * self.length
        return length * self.resistance * self.factor, length * self.inductance


def build(params: Params) -> BondGraph:
    graph = BondGraph(ports={"conductor": "conductor"})
    graph.junction("conductor", "1")
    resistance, inductance = params.in_series()
    graph.add("resistance", R("electrical", resistance))
    graph.bond("conductor", "resistance")
    if params.inductance:
        graph.add("inductance", I("electrical", inductance))
        graph.bond("conductor", "inductance")
    return graph


def add_before(
    motor: BondGraph, params: Params, meshes: Mapping[str, str], conductors: int, electrical_ratio: float | None
) -> None:
    """The cable before the windings of a motor. meshes: junction -> the winding at it; conductors: n where it is not
    given; electrical_ratio: φ̇ per speed of the rotor of axes d and q [rad/rad or rad/m], None of axes that stand still.

    The ripple of a switched inverter is in the resistance of the cable, as of the winding; beside the inductance, which
    carries the mean of the current as the winding does, it is smaller by that."""
    resistance, inductance = params.in_series(conductors)
    for mesh, winding in meshes.items():
        axis = winding.removeprefix("winding")
        motor.add(f"cable_resistance{axis}", replace(R("electrical", resistance), part="cable"))
        motor.bond(mesh, f"cable_resistance{axis}")
        if params.inductance:
            _add_inductance(motor, winding, f"cable_inductance{axis}", inductance)
    if params.inductance and electrical_ratio is not None:
        d, q = meshes
        turning = Law(lambda speed: -electrical_ratio * inductance * speed, ("rotor.flow",))
        motor.add("cable_turning", GY("electrical", "electrical", turning))
        motor.chain(d, "cable_turning", q)


def _add_inductance(motor: BondGraph, winding: str, name: str, inductance: float) -> None:
    """An inductance in series with a winding, behind the source of its ripple where it has one."""
    weaken_ripple(motor, winding, inductance)
    before = next(bond for bond in motor.bonds if bond.head == winding)
    motor.bonds.remove(before)
    motor.junction(f"{name}_mesh", "1")
    motor.chain(before.tail, f"{name}_mesh", winding)
    motor.add(name, I("electrical", inductance))
    motor.bond(f"{name}_mesh", name)
