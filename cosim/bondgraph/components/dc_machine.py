"""DC machine (theory §9): L i̇ = U − R i − K ω, J ω̇ = K i − b ω − M, with permanent magnets or a field winding.

Ports: `armature`, the mesh that a source of voltage is bonded to; `shaft`. With a field winding K = G i_f, and the port
`field` is the mesh of that winding: L_f i̇_f = U_f − R_f i_f.
"""

from __future__ import annotations

from functools import partial
from operator import mul

from cosim.bondgraph import GY, BondGraph, I, Law, R, Se
from cosim.bondgraph.components._current_control import CurrentControl, limited
from cosim.bondgraph.components._thermal import Thermal, add_windings
from cosim.types import Numeric, param, params


@params
class Params:
    resistance: float = param(unit="ohm", above=0.0, doc="R of the armature")
    inductance: float = param(unit="H", above=0.0, doc="L of the armature")
    inertia: float = param(unit="kg*m^2", min=0.0, default=0.0, doc="J of the rotor; 0: that of what is bonded to it")
    torque_constant: float | None = param(unit="N*m/A", above=0.0, default=None, doc="K, with permanent magnets")
    viscous: float = param(unit="N*m*s/rad", min=0.0, default=0.0, doc="b of the bearings")
    excitation: float | None = param(unit="H", above=0.0, default=None, doc="G: torque per armature and field current")
    field_resistance: float | None = param(unit="ohm", above=0.0, default=None)
    field_inductance: float | None = param(unit="H", above=0.0, default=None)
    thermal: Thermal | None = param(default=None, doc="of winding and housing; without it both stay cold")

    def __post_init__(self) -> None:
        field = (self.excitation, self.field_resistance, self.field_inductance)
        given = [value is not None for value in field]
        if any(given) != all(given):
            raise ValueError("a field winding has excitation, field_resistance and field_inductance; give all three")
        if all(given) == (self.torque_constant is not None):
            raise ValueError("give either torque_constant, or excitation, field_resistance and field_inductance")


def build(params: Params) -> BondGraph:
    graph = BondGraph(ports={"armature": "mesh", "shaft": "rotor"})
    graph.junction("mesh", "1")
    graph.junction("rotor", "1")
    graph.add("winding", I("electrical", params.inductance))
    graph.bond("mesh", "winding")
    add_windings(graph, ["mesh"], params.resistance, params.thermal)
    constant = params.torque_constant
    if params.excitation is not None:
        graph.ports["field"] = "field_mesh"
        graph.junction("field_mesh", "1")
        graph.add("field_winding", I("electrical", params.field_inductance))
        graph.add("field_resistance", R("electrical", params.field_resistance))
        graph.bond("field_mesh", "field_winding")
        graph.bond("field_mesh", "field_resistance")
        constant = Law(partial(mul, params.excitation), ("field_winding.flow",))
    graph.add("machine", GY("electrical", "rotational", constant))
    graph.chain("mesh", "machine", "rotor")
    if params.inertia:
        graph.add("inertia", I("rotational", params.inertia))
        graph.bond("rotor", "inertia")
    if params.viscous:
        graph.add("bearing", R("rotational", params.viscous))
        graph.bond("rotor", "bearing")
    return graph


def controlled(params: Params, control: CurrentControl, ratio: float) -> BondGraph:
    """The machine on a source of voltage that closes a loop of its current; port: `shaft`. The input `request` is an
    effort behind gears of this ratio."""
    graph = build(params)
    constant = params.torque_constant
    if constant is None:
        raise ValueError("a drive controls machines with permanent magnets; give torque_constant")

    def voltage(request: Numeric, current: Numeric, speed: Numeric) -> Numeric:
        target = limited(request / (ratio * constant), control.current_limit)
        windings = params.resistance * target + params.inductance * control.rate * (target - current)
        return limited(windings + constant * speed, control.voltage_limit)

    graph.add("supply", Se("electrical", Law(voltage, ("request", "winding.flow", "rotor.flow"))))
    graph.bond("supply", "mesh")
    for name, signal, unit in (("current", "winding.flow", "A"), ("voltage", "supply.effort", "V")):
        graph.signals[name] = Law(lambda value: value, (signal,)), unit
    return graph
