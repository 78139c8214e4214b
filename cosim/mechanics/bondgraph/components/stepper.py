"""Hybrid step motor: two phases, a toothed rotor with a magnet, and detent torque.

    L i̇_a = u_a − R i_a + K ω sin N θ        L i̇_b = u_b − R i_b − K ω cos N θ
    M = K (i_b cos N θ − i_a sin N θ) − M_d sin 4 N θ

(Zribi and Chiasson, Position control of a PM stepper motor by exact linearization, IEEE Trans. Automatic Control 36(5),
1991) with N teeth: 50 of a motor with steps of 1.8°. A field of i_a = I cos φ, i_b = I sin φ holds the rotor with the
torque T_h sin(φ − N θ), T_h = K I. Under a load M it lags by asin(M / T_h) / N; free it swings at √(N T_h / J) / 2π.
The friction of its bearings is M_B = b ω + (M_0 + μ |M|) s(ω), s(ω) = ω / √(ω² + ω_0²), without the detent torque in M.

Ports: `a` and `b`, the meshes of the phases; `shaft`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from cosim.core import ops
from cosim.core.types import Numeric, State, param, params
from cosim.mechanics.bondgraph import GY, BondGraph, I, Law, Se
from cosim.mechanics.bondgraph.components import _bearing
from cosim.mechanics.bondgraph.components._bridge import TWO_PHASES
from cosim.mechanics.bondgraph.components._current_control import (
    CurrentControl,
    MachineWindings,
    Values,
    add_limits,
    limited,
)
from cosim.mechanics.bondgraph.components._iron import IronLosses
from cosim.mechanics.bondgraph.components._open_loop import FIELD, OpenLoop
from cosim.mechanics.bondgraph.components._rotor import add_rotor
from cosim.mechanics.bondgraph.components._switching import add_ripple, of_full_bridge
from cosim.mechanics.bondgraph.components._synchronous import LOST, SynchronousAxes
from cosim.mechanics.bondgraph.components._thermal import Thermal, add_limits_and_magnets, add_windings

CURRENTS, ANGLE = ("winding_a.flow", "winding_b.flow"), "rotor.displacement"
SQUARE = Law(lambda a, b: a * a + b * b, CURRENTS)  # of the amplitude of a phase
BRIDGE = TWO_PHASES


@params
class Params:
    teeth: int = param(min=1, doc="N, of the rotor; a quarter of the full steps per turn")
    resistance: float = param(unit="ohm", above=0.0, doc="R of a phase")
    inductance: float = param(unit="H", above=0.0, doc="L of a phase")
    torque_constant: float = param(unit="N*m/A", above=0.0, doc="K, holding torque per amplitude of the current")
    inertia: float = param(unit="kg*m^2", min=0.0, default=0.0, doc="of the rotor; 0: given by what is bonded to it")
    viscous: float = _bearing.viscous()
    coulomb: float = _bearing.coulomb()
    load_friction: float = _bearing.load_friction()
    creep_speed: float = _bearing.creep_speed()
    detent: float = param(unit="N*m", min=0.0, default=0.0, doc="M_d, amplitude of the detent torque")
    thermal: Thermal | None = param(default=None, doc="of winding and housing; without it both stay cold")
    iron: IronLosses | None = param(default=None, doc="iron losses")


def build(params: Params) -> BondGraph:
    n, constant = params.teeth, params.torque_constant
    graph = BondGraph(ports={"a": "mesh_a", "b": "mesh_b", "shaft": "rotor"})
    for name in ("mesh_a", "mesh_b", "rotor"):
        graph.junction(name, "1")
    torques: dict[str, Callable[[Numeric], Numeric]] = {
        "a": lambda angle: -constant * ops.sin(n * angle),
        "b": lambda angle: constant * ops.cos(n * angle),
    }
    for phase, torque in torques.items():
        graph.add(f"winding_{phase}", I("electrical", params.inductance))
        graph.add(f"machine_{phase}", GY("electrical", "rotational", Law(torque, (ANGLE,))))
        graph.bond(f"mesh_{phase}", f"winding_{phase}")
        graph.chain(f"mesh_{phase}", f"machine_{phase}", "rotor")
    add_windings(graph, ["mesh_a", "mesh_b"], params.resistance, params.thermal)
    of_currents = Law(lambda a, b, angle: torques["a"](angle) * a + torques["b"](angle) * b, (*CURRENTS, ANGLE))
    add_rotor(graph, params, of_currents, cogging=params.detent, cogging_rate=4 * n)
    magnets = {f"machine_{phase}": Law(torque, (ANGLE,)) for phase, torque in torques.items()}
    add_limits_and_magnets(graph, params.thermal, magnets)
    return graph


def axes(params: Params) -> SynchronousAxes:
    """The machine as a synchronous one of two phases."""
    n, r, inductance = params.teeth, params.resistance, params.inductance
    return SynchronousAxes(n, r, inductance, inductance, params.torque_constant / n, 1.0)


def turned(params: Params, x: Numeric, y: Numeric, angle: Numeric) -> Values:
    """A vector turned by N angle, of the rotor [rad]: of its axes d and q in phases; by −angle of phases in axes."""
    c, s = ops.cos(params.teeth * angle), ops.sin(params.teeth * angle)
    return c * x - s * y, s * x + c * y


def controlled(params: Params, control: CurrentControl, ratio: float) -> BondGraph:
    """The machine on averaged full bridges, its currents controlled along the rotor as of a synchronous machine; port:
    `shaft`. The input `request` is an effort behind gears of this ratio."""
    of = axes(params)

    def along(request: Numeric, a: Numeric, b: Numeric, angle: Numeric) -> tuple[Numeric, Numeric, Numeric]:
        return request / (ratio * params.torque_constant), *turned(params, a, b, -angle)

    def voltages(request: Numeric, a: Numeric, b: Numeric, angle: Numeric, *known: Numeric) -> Values:
        return turned(params, *of.voltages(control, *along(request, a, b, angle), *known), angle)

    def disturbances(
        at_a: Numeric,
        at_b: Numeric,
        request: Numeric,
        a: Numeric,
        b: Numeric,
        angle: Numeric,
        speed: Numeric,
        *known: Numeric,
    ) -> Values:
        """The rate of the currents in axes that turn: L i̇_d is that of the phases, turned, and N ω L i_q more."""
        wanted, i_d, i_q = along(request, a, b, angle)
        at_d, at_q = turned(params, at_a, at_b, -angle)
        turning = params.teeth * speed * params.inductance
        rates = at_d + turning * i_q, at_q - turning * i_d
        return of.disturbances(control, *rates, wanted, i_d, i_q, speed, *known)

    uses = ("request", *CURRENTS, ANGLE, "rotor.flow", *LOST, *control.limited_by)
    graph = _supplied(params, control, voltages, uses)
    of.add_observers(graph, disturbances, ("winding_a.effort", "winding_b.effort", *uses))
    return graph


def with_voltages(params: Params, control: CurrentControl) -> BondGraph:
    """The machine on full bridges that are commanded `voltage_d` and `voltage_q` along the rotor, inputs; port:
    `shaft`."""
    inputs = {"voltage_d": "V", "voltage_q": "V"}
    return _supplied(params, control, lambda *known: turned(params, *known), (*inputs, ANGLE), inputs)


def with_field(params: Params, control: CurrentControl, loop: OpenLoop) -> BondGraph:
    """The machine on choppers that keep the currents of a field, whatever the rotor does; port: `shaft`. Inputs:
    `FIELD`. The voltage of a chopper that keeps i*, averaged, is u = R i* + ω L (i* − i), within its limit. Raises
    ValueError for a loop without steps."""
    if loop.steps is None:
        raise ValueError("a stepper without feedback counts steps; give 'steps'")
    if loop.steps.current > control.current_limit:
        raise ValueError("the current of its steps is beyond current_limit of 'control'; lower it, or raise that")
    n, amplitude = params.teeth, loop.steps.current
    stiffness = params.inductance * control.rate

    def voltages(angle: Numeric, _: Numeric, on: Numeric, a: Numeric, b: Numeric, *limiting: Numeric) -> Values:
        phi, limit = n * angle, control.limits(*limiting).voltage

        def chopped(wanted: Numeric, current: Numeric) -> Numeric:
            return limited(params.resistance * wanted + stiffness * (wanted - current), limit)

        return chopped(on * amplitude * ops.cos(phi), a), chopped(on * amplitude * ops.sin(phi), b)

    return _supplied(params, control, voltages, (*FIELD, *CURRENTS, *control.limited_by), FIELD)


def step_size(params: Params, loop: OpenLoop) -> float:
    """Of the field [rad], in turns of the shaft."""
    assert loop.steps is not None
    return math.pi / (2.0 * params.teeth * loop.steps.microsteps)


def _supplied(
    params: Params,
    control: CurrentControl,
    voltages: Callable[..., Values],
    uses: tuple[str, ...],
    inputs: dict[str, str] | None = None,
) -> BondGraph:
    """The machine with full bridges whose commanded voltages of both phases are a law, and the recorded signals."""
    graph = build(params)
    graph.inputs |= inputs or {}
    limits = len(control.limited_by)
    add_limits(graph, control, SQUARE)
    for k, (phase, current) in enumerate(zip("ab", CURRENTS, strict=True)):

        def given(i: Numeric, *known: Numeric, k: int = k) -> Numeric:
            limiting, others = known[:limits], known[limits:]
            return control.full_bridge(voltages(*others)[k], i, *limiting)

        graph.add(f"bridge_{phase}", Se("electrical", Law(given, (current, *control.limited_by, *uses))))
        graph.bond(f"bridge_{phase}", f"mesh_{phase}")
        flow = current
        if control.switching is not None:
            flow, ripple = f"mesh_{phase}.flow", partial(of_full_bridge, control.switching)
            uses_of_ripple = ("t", f"bridge_{phase}.effort")
            add_ripple(graph, f"mesh_{phase}", f"winding_{phase}", params.inductance, ripple, uses_of_ripple)
        for name, signal, unit in (("current", flow, "A"), ("voltage", f"bridge_{phase}.effort", "V")):
            graph.signals[f"{name}_{phase}"] = Law(lambda value: value, (signal,)), unit
    return graph


def windings(params: Params, control: CurrentControl) -> MachineWindings:
    """What a sampled current loop knows of the machine."""

    def currents(x: State) -> Values:
        a, b = (x[name] for name in CURRENTS)
        return turned(params, a, b, -x[ANGLE])

    return axes(params).windings(control, currents)
