"""DC machine: L i̇ = U − R i − K ω, J ω̇ = K i − M_B − M, with permanent magnets or a field winding.

The friction of its bearings is M_B = b ω + (M_0 + μ |K i|) s(ω), s(ω) = ω / √(ω² + ω_0²).

Ports: `armature`, the mesh that a source of voltage is bonded to; `shaft`. With a field winding K = G i_f, and the port
`field` is the mesh of that winding: L_f i̇_f = U_f − R_f i_f.
"""

from __future__ import annotations

from functools import partial
from operator import mul

from cosim.core.types import Numeric, param, params
from cosim.mechanics.bondgraph import GY, BondGraph, I, Law, R, Se
from cosim.mechanics.bondgraph.components import _bearing
from cosim.mechanics.bondgraph.components._bridge import FULL_BRIDGE
from cosim.mechanics.bondgraph.components._current_control import (
    CurrentControl,
    MachineWindings,
    add_limits,
    add_observer,
    limited,
    missing,
)
from cosim.mechanics.bondgraph.components._iron import IronLosses
from cosim.mechanics.bondgraph.components._rotor import add_rotor
from cosim.mechanics.bondgraph.components._switching import add_ripple, of_full_bridge
from cosim.mechanics.bondgraph.components._thermal import Thermal, add_limits_and_magnets, add_windings, refuse_magnets

BRIDGE = FULL_BRIDGE
SQUARE = Law(lambda current: current * current, ("winding.flow",))


@params
class Params:
    resistance: float = param(unit="ohm", above=0.0, doc="R of the armature")
    inductance: float = param(unit="H", above=0.0, doc="L of the armature")
    inertia: float = param(unit="kg*m^2", min=0.0, default=0.0, doc="J of the rotor; 0: given by what is bonded to it")
    torque_constant: float | None = param(unit="N*m/A", above=0.0, default=None, doc="K, with permanent magnets")
    viscous: float = _bearing.viscous()
    coulomb: float = _bearing.coulomb()
    load_friction: float = _bearing.load_friction()
    creep_speed: float = _bearing.creep_speed()
    excitation: float | None = param(unit="H", above=0.0, default=None, doc="G: torque per armature and field current")
    field_resistance: float | None = param(unit="ohm", above=0.0, default=None)
    field_inductance: float | None = param(unit="H", above=0.0, default=None)
    thermal: Thermal | None = param(default=None, doc="of winding and housing; without it both stay cold")
    iron: IronLosses | None = param(default=None, doc="iron losses")

    def __post_init__(self) -> None:
        field = (self.excitation, self.field_resistance, self.field_inductance)
        given = [value is not None for value in field]
        if any(given) != all(given):
            raise ValueError("a field winding has excitation, field_resistance and field_inductance; give all three")
        if all(given) == (self.torque_constant is not None):
            raise ValueError("give either torque_constant, or excitation, field_resistance and field_inductance")
        if self.torque_constant is None:
            refuse_magnets(self.thermal)


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
    of_current = Law(partial(mul, params.torque_constant), ("winding.flow",))
    if params.excitation is not None:
        excitation = params.excitation
        of_current = Law(lambda i, field: excitation * field * i, ("winding.flow", "field_winding.flow"))
    add_rotor(graph, params, of_current)
    magnets = {} if params.torque_constant is None else {"machine": params.torque_constant}
    add_limits_and_magnets(graph, params.thermal, magnets)
    return graph


def _constant(params: Params) -> float:
    if params.torque_constant is None:
        raise ValueError("a drive controls machines with permanent magnets; give torque_constant")
    return params.torque_constant


def controlled(params: Params, control: CurrentControl, ratio: float) -> BondGraph:
    """The machine on a source of voltage that closes a loop of its current; port: `shaft`. The input `request` is an
    effort behind gears of this ratio."""
    graph = build(params)
    constant = _constant(params)

    resistance, inductance = params.resistance, params.inductance

    def commanded(request: Numeric, current: Numeric, speed: Numeric, lost: Numeric, *limiting: Numeric) -> Numeric:
        limits = control.limits(*limiting)
        target = limited(request / (ratio * constant), limits.current)
        windings = resistance * target + inductance * control.rate * (target - current) - lost
        return limited(windings + constant * speed, limits.voltage)

    def given(request: Numeric, current: Numeric, speed: Numeric, lost: Numeric, *limiting: Numeric) -> Numeric:
        voltage = commanded(request, current, speed, lost, *limiting)
        return control.full_bridge(voltage, current, *limiting)

    def disturbance(at: Numeric, request: Numeric, current: Numeric, speed: Numeric, *others: Numeric) -> Numeric:
        return at - (commanded(request, current, speed, *others) - resistance * current - constant * speed)

    uses = ("request", "winding.flow", "rotor.flow", missing(""), *control.limited_by)
    add_limits(graph, control, SQUARE)
    _supply(graph, params, control, Law(given, uses))
    add_observer(graph, "", resistance, inductance, Law(disturbance, ("winding.effort", *uses)))
    return graph


def _supply(graph: BondGraph, params: Params, control: CurrentControl, voltage: Law) -> None:
    """A source of voltage, and the recorded signals."""
    graph.add("supply", Se("electrical", voltage))
    graph.bond("supply", "mesh")
    current = "winding.flow"
    if control.switching is not None:
        current, ripple = "mesh.flow", partial(of_full_bridge, control.switching)
        add_ripple(graph, "mesh", "winding", params.inductance, ripple, ("t", "supply.effort"))
    for name, signal, unit in (("current", current, "A"), ("voltage", "supply.effort", "V")):
        graph.signals[name] = Law(lambda value: value, (signal,)), unit


def with_voltages(params: Params, control: CurrentControl) -> BondGraph:
    """The machine on an inverter that is commanded the voltage `voltage`, an input; port: `shaft`."""
    graph = build(params)
    graph.inputs["voltage"] = "V"
    _supply(graph, params, control, Law(control.full_bridge, ("voltage", "winding.flow", *control.limited_by)))
    add_limits(graph, control, SQUARE)
    return graph


def windings(params: Params, control: CurrentControl) -> MachineWindings:
    """What a sampled current loop knows of the machine. Raises ValueError for one without permanent magnets."""
    constant = _constant(params)
    return MachineWindings(
        axes=("",),
        currents=lambda x: (x["winding.flow"],),
        resistance=params.resistance,
        inductances=(params.inductance,),
        setpoints=lambda _, torque, speed, limits: (limited(torque / constant, limits.current),),
        induced=lambda _, currents, speed: (constant * speed,),
        limited=lambda voltages, limits: (limited(voltages[0], limits.voltage),),
        largest_torque=lambda largest: constant * largest,
    )
