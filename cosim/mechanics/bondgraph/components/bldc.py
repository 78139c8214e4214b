"""Brushless DC machine: three phases in a star, trapezoidal back-EMF, and commutation in six steps by Hall sensors.

    L i̇_k = u_k − u_n − R i_k − K ω f(p θ − 2π k / 3)      Σ i_k = 0      M = K Σ f(p θ − 2π k / 3) i_k

(Pillay and Krishnan, Modeling, simulation, and analysis of permanent-magnet motor drives, part II, IEEE Trans. Industry
Applications 25(2), 1989). f is 1 and −1 on flat parts and linear between them; parts of 120° give M = 2 K I.

In each sector of 60° one leg of the inverter gives u, a second one −u, and the third one is open: its current goes on
through a diode to the far rail until it is 0. At a commutation the currents change at (Carlson, Lajoie-Mazenc and
Fagundes, Analysis of torque ripple due to phase commutation in brushless DC machines, IEEE Trans. Industry Applications
28(3), 1992), with legs at ± U, E = K ω and without resistance,

    outgoing −2 (U + E) / 3 L,    incoming 2 (2 U − E) / 3 L,    the third one −2 (U − 2 E) / 3 L,

so the torque dips where the motor is fast. An open leg has 1000 times the resistance of a phase.

Inside, the axes α and β of the stator stand for the phases, so scaled that u i is the power of all three. Ports:
`alpha` and `beta`, the meshes that sources of voltage are bonded to; `shaft`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cosim.core import ops
from cosim.core.types import Numeric, State, param, params
from cosim.core.units import TURN
from cosim.mechanics.bondgraph import GY, BondGraph, I, Law, Se
from cosim.mechanics.bondgraph.components import _bearing
from cosim.mechanics.bondgraph.components._bridge import TWO_LEGS
from cosim.mechanics.bondgraph.components._current_control import (
    PHASES,
    CurrentControl,
    MachineWindings,
    PhaseLimits,
    Values,
    add_limits,
    limited,
)
from cosim.mechanics.bondgraph.components._iron import IronLosses
from cosim.mechanics.bondgraph.components._phases import in_axes, in_phases
from cosim.mechanics.bondgraph.components._rotor import add_rotor
from cosim.mechanics.bondgraph.components._switching import add_ripple, of_leg
from cosim.mechanics.bondgraph.components._thermal import Thermal, add_limits_and_magnets, add_windings

CURRENTS, ANGLE = ("winding_alpha.flow", "winding_beta.flow"), "rotor.displacement"
SQUARE = Law(lambda a, b: (a * a + b * b) / 2.0, CURRENTS)  # of the current in two phases
BRIDGE = TWO_LEGS
OPEN = 1000.0  # resistance of an open leg over the resistance of a phase
BEGIN = math.sin(math.pi / 6.0)  # of the sectors, 30° after a zero of f


@params
class Params:
    pole_pairs: int = param(min=1, doc="p")
    resistance: float = param(unit="ohm", above=0.0, doc="R of a phase")
    inductance: float = param(unit="H", above=0.0, doc="L of a phase, less the mutual one")
    back_emf: float = param(unit="V*s/rad", above=0.0, doc="K of a phase, at the flat parts")
    flat: float = param(unit="rad", min=0.0, max=3.0, default=2.0 * math.pi / 3.0, doc="of f, electrical angle")
    inertia: float = param(unit="kg*m^2", min=0.0, default=0.0, doc="of the rotor; 0: given by what is bonded to it")
    viscous: float = _bearing.viscous()
    coulomb: float = _bearing.coulomb()
    load_friction: float = _bearing.load_friction()
    creep_speed: float = _bearing.creep_speed()
    cogging: float = param(unit="N*m", min=0.0, default=0.0, doc="amplitude of the cogging torque")
    cogging_periods: int = param(min=1, default=12, doc="of the cogging torque per turn")
    thermal: Thermal | None = param(default=None, doc="of winding and housing; without it both stay cold")
    iron: IronLosses | None = param(default=None, doc="iron losses")

    def shape(self, angle: Numeric) -> Numeric:
        """f of an electrical angle [rad], with zeros where a sine has them."""
        turned = (angle + math.pi / 2.0) / TURN
        triangle = math.pi / 2.0 - ops.abs(TURN * (turned - ops.floor(turned)) - math.pi)
        return ops.clip(2.0 * triangle / (math.pi - self.flat), -1.0, 1.0)

    def constants(self, angle: Numeric) -> Values:
        """Torque per current [N·m/A] of both axes inside, at an angle of the rotor [rad]."""
        return in_axes([self.back_emf * self.shape(self.pole_pairs * angle - phase) for phase in PHASES])


def build(params: Params) -> BondGraph:
    graph = BondGraph(ports={"alpha": "mesh_alpha", "beta": "mesh_beta", "shaft": "rotor"})
    graph.junction("rotor", "1")
    machines = {}
    for k, axis in enumerate(("alpha", "beta")):
        graph.junction(f"mesh_{axis}", "1")
        graph.add(f"winding_{axis}", I("electrical", params.inductance))
        torque = Law(lambda angle, k=k: params.constants(angle)[k], (ANGLE,))
        machines[f"machine_{axis}"] = torque
        graph.add(f"machine_{axis}", GY("electrical", "rotational", torque))
        graph.bond(f"mesh_{axis}", f"winding_{axis}")
        graph.chain(f"mesh_{axis}", f"machine_{axis}", "rotor")
    add_windings(graph, ["mesh_alpha", "mesh_beta"], params.resistance, params.thermal)

    def torque_of(angle: Numeric, a: Numeric, b: Numeric) -> Numeric:
        of_a, of_b = params.constants(angle)
        return of_a * a + of_b * b

    of_currents = Law(torque_of, (ANGLE, *CURRENTS))
    add_rotor(graph, params, of_currents, cogging=params.cogging, cogging_rate=params.cogging_periods)
    add_limits_and_magnets(graph, params.thermal, machines)
    return graph


def directions(params: Params, angle: Numeric) -> list[Numeric]:
    """Of each leg in the sector of an angle of the rotor [rad]: 1 and −1 where it is at u and −u, 0 where open."""
    sines = [ops.sin(params.pole_pairs * angle - phase) for phase in PHASES]
    return [ops.where(s > BEGIN, 1.0, ops.where(s < -BEGIN, -1.0, 0.0)) for s in sines]


def current(params: Params, angle: Numeric, alpha: Numeric, beta: Numeric) -> Numeric:
    """In the two legs that are not open, at an angle of the rotor [rad]: half the difference [A]."""
    pairs = zip(directions(params, angle), in_phases(alpha, beta), strict=True)
    return ops.sum(direction * value for direction, value in pairs) / 2.0


def legs(
    params: Params, control: CurrentControl, limits: PhaseLimits, u: Numeric, angle: Numeric, a: Numeric, b: Numeric
) -> list[Numeric]:
    """The voltages of all legs to the middle of the supply, of commanded ± u."""
    rail, given = limits.voltage, []
    for direction, value in zip(directions(params, angle), in_phases(a, b), strict=True):
        switched = direction * u + (0.0 if control.inverter is None else control.inverter.error(value, limits.link))
        is_open = ops.clip(-OPEN * params.resistance * value, -rail, rail)
        given.append(ops.where(ops.abs(direction) > 0.5, switched, is_open))
    return given


def controlled(params: Params, control: CurrentControl, ratio: float) -> BondGraph:
    """The machine on an averaged inverter that commutates by Hall sensors and closes a loop of the current in both
    legs; port: `shaft`. The input `request` is an effort behind gears of this ratio. Raises ValueError without a limit
    of the voltage."""

    def voltage(
        request: Numeric, a: Numeric, b: Numeric, angle: Numeric, speed: Numeric, *limiting: Numeric
    ) -> Numeric:
        limits = control.limits(*limiting)
        wanted = limited(request / (ratio * 2.0 * params.back_emf), limits.current)
        driving = params.inductance * control.rate * (wanted - current(params, angle, a, b))
        return limited(params.resistance * wanted + driving + params.back_emf * speed, limits.voltage)

    return _supplied(params, control, voltage, ("request", *CURRENTS, ANGLE, "rotor.flow", *control.limited_by))


def with_voltages(params: Params, control: CurrentControl) -> BondGraph:
    """The machine on an inverter that commutates by Hall sensors, its legs at ± `voltage`, an input; port: `shaft`.
    Raises ValueError without a limit of the voltage."""
    return _supplied(params, control, lambda voltage: voltage, ("voltage",), {"voltage": "V"})


def _supplied(
    params: Params,
    control: CurrentControl,
    voltage: Callable[..., Numeric],
    uses: tuple[str, ...],
    inputs: dict[str, str] | None = None,
) -> BondGraph:
    """The machine with an inverter whose legs are at ± a law, and the recorded signals."""
    if math.isinf(control.voltage_limit) and "voltage" not in control.varying_limits:
        raise ValueError(
            "the current of an open leg goes on to a rail; give 'voltage_limit' in 'control', half the supply"
        )
    graph = build(params)
    graph.inputs |= inputs or {}
    add_limits(graph, control, SQUARE)
    known, count = (*CURRENTS, ANGLE, *control.limited_by), len(control.limited_by)

    def given(a: Numeric, b: Numeric, angle: Numeric, *others: Numeric) -> list[Numeric]:
        limits = control.limits(*others[:count])
        return legs(params, control, limits, voltage(*others[count:]), angle, a, b)

    for k, axis in enumerate(("alpha", "beta")):
        graph.add(f"inverter_{axis}", Se("electrical", Law(lambda *x, k=k: in_axes(given(*x))[k], (*known, *uses))))
        graph.bond(f"inverter_{axis}", f"mesh_{axis}")
    flows = CURRENTS
    if control.switching is not None:
        flows = ("mesh_alpha.flow", "mesh_beta.flow")
        inverter = control.switching

        def ripples(t: Numeric, a: Numeric, b: Numeric, angle: Numeric, *others: Numeric) -> list[Numeric]:
            switched = zip(directions(params, angle), given(a, b, angle, *others), strict=True)
            return [ops.abs(direction) * of_leg(inverter, t, leg) for direction, leg in switched]

        for k, axis in enumerate(("alpha", "beta")):
            law, signals = (lambda *x, k=k: in_axes(ripples(*x))[k]), ("t", *known, *uses)
            add_ripple(graph, f"mesh_{axis}", f"winding_{axis}", params.inductance, law, signals)
    graph.signals["current"] = Law(lambda a, b, angle: current(params, angle, a, b), (*flows, ANGLE)), "A"
    for k, phase in enumerate("abc"):
        graph.signals[f"current_{phase}"] = Law(lambda a, b, k=k: in_phases(a, b)[k], flows), "A"
        graph.signals[f"voltage_{phase}"] = Law(lambda *x, k=k: given(*x)[k], (*known, *uses)), "V"
    return graph


def windings(params: Params, control: CurrentControl) -> MachineWindings:
    """What a sampled current loop knows of the machine."""
    constant = 2.0 * params.back_emf

    def currents(x: State) -> Values:
        a, b = (x[name] for name in CURRENTS)
        return (current(params, x[ANGLE], a, b),)

    return MachineWindings(
        axes=("",),
        currents=currents,
        resistance=params.resistance,
        inductances=(params.inductance,),
        setpoints=lambda _, torque, speed, limits: (limited(torque / constant, limits.current),),
        induced=lambda _, currents, speed: (params.back_emf * speed,),
        limited=lambda voltages, limits: (limited(voltages[0], limits.voltage),),
        largest_torque=lambda largest: constant * largest,
    )
