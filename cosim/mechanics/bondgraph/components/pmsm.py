"""Permanent-magnet synchronous machine in the axes d and q of its rotor, with saliency and cogging torque.

    L_d i̇_d = u_d − R i_d + p ω L_q i_q        L_q i̇_q = u_q − R i_q − p ω (L_d i_d + ψ)
    M = 3/2 p (ψ i_q + (L_d − L_q) i_d i_q)

(Krause, Wasynczuk, Sudhoff and Pekarek, Analysis of Electric Machinery and Drive Systems.) Inside, currents, voltages
and the flux are √(3/2) times their values in the formulas, so that u i is the power of all three phases. As a bond
graph the magnets and the windings of the other axis modulate a gyrator from each axis to the shaft. The friction of its
bearings is M_B = b ω + (M_0 + μ |M|) s(ω), s(ω) = ω / √(ω² + ω_0²).

Ports: `d` and `q`, the meshes that sources of voltage are bonded to; `shaft`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from cosim.core import ops
from cosim.core.types import Numeric, State, param, params
from cosim.mechanics.bondgraph import GY, BondGraph, C, I, Law, Se
from cosim.mechanics.bondgraph.components import _bearing
from cosim.mechanics.bondgraph.components._current_control import (
    CurrentControl,
    MachineWindings,
    add_current_limit,
    add_observer,
    limited,
    missing,
)
from cosim.mechanics.bondgraph.components._flux_tables import FluxTables
from cosim.mechanics.bondgraph.components._operating_point import LinearFlux
from cosim.mechanics.bondgraph.components._thermal import Thermal, add_windings

# of currents, voltages and fluxes whose product is the power of three phases
SCALE = math.sqrt(1.5)
LOWEST_SPEED = 1e-3  # rad/s, electrical, below which the back-EMF does not limit
SMALLEST_VOLTAGE = 1e-12  # V²
CURRENTS = ("winding_d.flow", "winding_q.flow")
FLUXES = ("winding_d.momentum", "winding_q.momentum")  # of a machine by tables
SQUARE = Law(lambda d, q: (d * d + q * q) / (SCALE * SCALE), CURRENTS)  # of the amplitude of a phase
BACK_EMF = 0.9  # of the limit of the voltage; the rest drives the currents
LARGEST_Q = 0.98  # of the i_q that alone induces that voltage: near it, i_d would change without bound


@params
class Params:
    pole_pairs: int = param(min=1, doc="p")
    resistance: float = param(unit="ohm", above=0.0, doc="R of a phase")
    inductance_d: float = param(unit="H", above=0.0, doc="L_d")
    inductance_q: float = param(unit="H", above=0.0, doc="L_q")
    flux: float = param(unit="V*s", above=0.0, doc="ψ of the magnets in a phase, amplitude")
    inertia: float = param(unit="kg*m^2", min=0.0, default=0.0, doc="of the rotor; 0: given by what is bonded to it")
    viscous: float = _bearing.viscous()
    coulomb: float = _bearing.coulomb()
    load_friction: float = _bearing.load_friction()
    creep_speed: float = _bearing.creep_speed()
    cogging: float = param(unit="N*m", min=0.0, default=0.0, doc="amplitude of the cogging torque")
    cogging_periods: int = param(min=1, default=12, doc="of the cogging torque per turn")
    thermal: Thermal | None = param(default=None, doc="of winding and housing; without it both stay cold")
    flux_tables: FluxTables | None = param(
        default=None, doc="of the machine; its drive goes on knowing `flux` and inductances"
    )

    @property
    def doubts(self) -> list[str]:
        """What a user should know of its parameters."""
        return [] if self.flux_tables is None else self.flux_tables.doubts

    @property
    def domain(self) -> str:
        return "rotational"

    @property
    def electrical_ratio(self) -> float:
        return self.pole_pairs

    @property
    def cogging_rate(self) -> float:
        return self.cogging_periods


class SynchronousMachine(_bearing.WithBearings, Protocol):
    """Parameters of a machine that turns or, translational, pushes. electrical_ratio: electrical angle per travel of
    the rotor, p or π/τ [rad/rad or rad/m]; cogging_rate: angle of the cogging torque per travel."""

    @property
    def domain(self) -> str: ...
    @property
    def electrical_ratio(self) -> float: ...
    @property
    def resistance(self) -> float: ...
    @property
    def inductance_d(self) -> float: ...
    @property
    def inductance_q(self) -> float: ...
    @property
    def flux(self) -> float: ...
    @property
    def inertia(self) -> float: ...
    @property
    def cogging(self) -> float: ...
    @property
    def cogging_rate(self) -> float: ...
    @property
    def thermal(self) -> Thermal | None: ...
    @property
    def flux_tables(self) -> FluxTables | None: ...


def build(params: SynchronousMachine) -> BondGraph:
    graph = BondGraph(ports={"d": "mesh_d", "q": "mesh_q", "shaft": "rotor"})
    for name in ("mesh_d", "mesh_q", "rotor"):
        graph.junction(name, "1")
    torque = _add_windings(graph, params) if params.flux_tables is None else _add_tables(graph, params)
    for axis in ("d", "q"):
        graph.bond(f"mesh_{axis}", f"winding_{axis}")
        graph.chain(f"mesh_{axis}", f"machine_{axis}", "rotor")
    add_windings(graph, ["mesh_d", "mesh_q"], params.resistance, params.thermal)
    if params.inertia:
        graph.add("inertia", I(params.domain, params.inertia))
        graph.bond("rotor", "inertia")
    _bearing.add_bearings(graph, params, torque, params.domain)
    if params.cogging:
        amplitude, n = params.cogging, params.cogging_rate
        torque = Law(lambda angle: amplitude * ops.sin(n * angle), ("displacement",))
        energy = Law(lambda angle: amplitude / n * (1.0 - ops.cos(n * angle)), ("displacement",))
        graph.add("cogging", C(params.domain, torque, energy=energy))
        graph.bond("rotor", "cogging")
    return graph


def _add_windings(graph: BondGraph, params: SynchronousMachine) -> Law:
    """Windings of constant inductances; the law of the torque."""
    p, ld, lq, flux = params.electrical_ratio, params.inductance_d, params.inductance_q, SCALE * params.flux
    graph.add("winding_d", I("electrical", ld))
    graph.add("winding_q", I("electrical", lq))
    graph.add("machine_d", GY("electrical", params.domain, Law(lambda iq: -p * lq * iq, ("winding_q.flow",))))
    graph.add("machine_q", GY("electrical", params.domain, Law(lambda i: p * (ld * i + flux), ("winding_d.flow",))))
    return Law(lambda i_d, i_q: p * (flux + (ld - lq) * i_d) * i_q, CURRENTS)


def _add_tables(graph: BondGraph, params: SynchronousMachine) -> Law:
    """Windings by the energy of their fluxes, which the one of d holds for both; the law of the torque."""
    assert params.flux_tables is not None
    p, energy = params.electrical_ratio, params.flux_tables.energy(SCALE)
    others, none = {"d": "q", "q": "d"}, Law(lambda flux: 0.0 * flux, ("momentum",))
    for k, (axis, other) in enumerate(others.items()):
        uses = ("momentum", f"winding_{other}.momentum")
        if axis == "d":
            current, stored = Law(lambda d, q: energy.currents(d, q)[0], uses), Law(energy.energy, uses)
        else:
            current, stored = Law(lambda q, d: energy.currents(d, q)[1], uses), none
        graph.add(f"winding_{axis}", I("electrical", current, energy.at_rest[k], stored))
    graph.add("machine_d", GY("electrical", params.domain, Law(lambda q: -p * q, (FLUXES[1],))))
    graph.add("machine_q", GY("electrical", params.domain, Law(lambda d: p * d, (FLUXES[0],))))
    return Law(lambda d, q, i_d, i_q: p * (d * i_q - q * i_d), (*FLUXES, *CURRENTS))


def controlled(params: SynchronousMachine, control: CurrentControl, ratio: float) -> BondGraph:
    """The machine on an averaged inverter that closes loops of both currents, with i_d = 0 below the speed at which the
    voltage limits, and field weakening above, or with the least currents of `_operating_point`; port: `shaft`. The
    input `request` is an effort behind gears of this ratio.

    The current in d that keeps the back-EMF at U, 0.9 of the limit of the voltage, is
    i_d = (√((U / pω)² − (L_q i_q)²) − ψ) / L_d, at most 0, where i_q is at most 0.98 U / (pω L_q). Voltages are limited
    as a vector, their direction is kept.
    """
    p, ld, lq, r = params.electrical_ratio, params.inductance_d, params.inductance_q, params.resistance
    flux = SCALE * params.flux
    graph = build(params)

    def commanded(
        request: Numeric, i_d: Numeric, i_q: Numeric, speed: Numeric, lost_d: Numeric, lost_q: Numeric, *rest: Numeric
    ) -> tuple[Numeric, Numeric]:
        """Voltages. rest: what limits the current."""
        largest = SCALE * control.largest_current(*rest)
        d, q = setpoints(params, control, request / (ratio * p * flux), speed, largest)
        u_d = r * d + ld * control.rate * (d - i_d) - p * speed * lq * i_q - lost_d
        u_q = r * q + lq * control.rate * (q - i_q) + p * speed * (ld * i_d + flux) - lost_q
        return within_limit(control, u_d, u_q)

    def expected(
        request: Numeric, i_d: Numeric, i_q: Numeric, speed: Numeric, *rest: Numeric
    ) -> tuple[Numeric, Numeric]:
        u_d, u_q = commanded(request, i_d, i_q, speed, *rest)
        return u_d - r * i_d + p * speed * lq * i_q, u_q - r * i_q - p * speed * (ld * i_d + flux)

    known = ("request", *CURRENTS, "rotor.flow", missing("_d"), missing("_q"), *control.limited_by)
    uses, given = known, commanded
    if control.inverter is not None:
        uses = (*known, "rotor.displacement")

        def given(*known: Numeric) -> tuple[Numeric, Numeric]:
            *others, angle = known
            (u_d, u_q), (_, i_d, i_q, *_) = commanded(*others), others
            return _of_inverter(params, control, u_d, u_q, i_d, i_q, angle)

    add_current_limit(graph, control, SQUARE)
    _supply(graph, [Law(lambda *known, k=k: given(*known)[k], uses) for k in range(2)])
    for k, (axis, inductance) in enumerate({"_d": ld, "_q": lq}.items()):
        add_observer(graph, axis, r, inductance, Law(lambda *signals, k=k: expected(*signals)[k], known))
    return graph


def _of_inverter(
    params: SynchronousMachine,
    control: CurrentControl,
    u_d: Numeric,
    u_q: Numeric,
    i_d: Numeric,
    i_q: Numeric,
    angle: Numeric,
) -> tuple[Numeric, Numeric]:
    """The voltages of an inverter with dead time that is commanded u_d and u_q, at this angle of the rotor [rad]."""
    assert control.inverter is not None
    errors = control.inverter.errors(per_phase(i_d), per_phase(i_q), params.electrical_ratio * angle)
    return u_d + SCALE * errors[0], u_q + SCALE * errors[1]


def setpoints(
    params: SynchronousMachine, control: CurrentControl, wanted: Numeric, speed: Numeric, largest: Numeric
) -> tuple[Numeric, Numeric]:
    """Setpoints of both currents from the speed [rad/s] and the i_q setpoint before its limit; largest: amplitude."""
    p, ld, lq, flux = params.electrical_ratio, params.inductance_d, params.inductance_q, SCALE * params.flux
    limit = SCALE * control.voltage_limit
    if control.currents == "mtpa":
        linkage = math.inf
        if not ops.is_infinite(limit):
            linkage = BACK_EMF * limit / ops.maximum(ops.abs(p * speed), LOWEST_SPEED)
        return LinearFlux(flux, ld, lq).setpoints(wanted * flux, linkage, largest)
    i_q = limited(wanted, largest)
    if ops.is_infinite(limit):
        return 0.0, i_q
    voltage = BACK_EMF * limit / ops.maximum(ops.abs(p * speed), LOWEST_SPEED)
    i_q = limited(i_q, LARGEST_Q * voltage / lq)
    room = ops.sqrt(voltage * voltage - (lq * i_q) * (lq * i_q))
    i_d = ops.clip((room - flux) / ld, -largest, 0.0)
    rest = ops.sqrt(ops.maximum(largest * largest - i_d * i_d, 0.0))
    return i_d, ops.clip(i_q, -rest, rest)


def within_limit(control: CurrentControl, u_d: Numeric, u_q: Numeric) -> tuple[Numeric, Numeric]:
    """The voltages that the inverter can give."""
    limit = SCALE * control.voltage_limit
    if ops.is_infinite(limit):
        return u_d, u_q
    scale = ops.minimum(limit / ops.sqrt(u_d * u_d + u_q * u_q + SMALLEST_VOLTAGE), 1.0)
    return scale * u_d, scale * u_q


def _supply(graph: BondGraph, voltages: Sequence[Law]) -> None:
    """A source of voltage in each axis, and the recorded signals."""
    for axis, voltage in zip(("d", "q"), voltages, strict=True):
        graph.add(f"inverter_{axis}", Se("electrical", voltage))
        graph.bond(f"inverter_{axis}", f"mesh_{axis}")
        graph.signals[f"current_{axis}"] = Law(per_phase, (f"winding_{axis}.flow",)), "A"
        graph.signals[f"voltage_{axis}"] = Law(per_phase, (f"inverter_{axis}.effort",)), "V"


def with_voltages(params: SynchronousMachine, control: CurrentControl) -> BondGraph:
    """The machine on an inverter that is commanded `voltage_d` and `voltage_q`, inputs; port: `shaft`."""
    graph = build(params)
    graph.inputs |= {"voltage_d": "V", "voltage_q": "V"}
    commanded = [Law(lambda voltage: voltage, (f"voltage_{axis}",)) for axis in "dq"]
    if control.inverter is not None:
        uses = ("voltage_d", "voltage_q", *CURRENTS, "rotor.displacement")
        commanded = [Law(lambda *known, k=k: _of_inverter(params, control, *known)[k], uses) for k in range(2)]
    _supply(graph, commanded)
    add_current_limit(graph, control, SQUARE)
    return graph


def windings(params: SynchronousMachine, control: CurrentControl) -> MachineWindings:
    """What a sampled current loop knows of the machine."""
    p, ld, lq, flux = params.electrical_ratio, params.inductance_d, params.inductance_q, SCALE * params.flux

    def induced(currents: tuple[Numeric, ...], speed: Numeric) -> tuple[Numeric, Numeric]:
        i_d, i_q = currents
        return -p * speed * lq * i_q, p * speed * (ld * i_d + flux)

    return MachineWindings(
        axes=("_d", "_q"),
        currents=partial(_currents, params),
        resistance=params.resistance,
        inductances=(ld, lq),
        setpoints=lambda torque, speed, largest: setpoints(
            params, control, torque / (p * flux), speed, SCALE * largest
        ),
        induced=induced,
        limited=lambda voltages: within_limit(control, *voltages),
        largest_torque=partial(_largest_torque, params, control),
        electrical_ratio=p,
        per_amplitude=SCALE,
    )


def _currents(params: SynchronousMachine, x: State) -> tuple[Numeric, ...]:
    """Of the states of the machine."""
    if params.flux_tables is None:
        return tuple(x[name] for name in CURRENTS)
    return params.flux_tables.energy(SCALE).currents(*(x[name] for name in FLUXES))


def _largest_torque(params: SynchronousMachine, control: CurrentControl, largest: Numeric) -> Numeric:
    """At standstill [N·m or N] with this amplitude of a phase [A]."""
    flux = LinearFlux(SCALE * params.flux, params.inductance_d, params.inductance_q)
    if control.currents == "mtpa" and not ops.is_infinite(largest):
        return params.electrical_ratio * flux.torque(*flux.of_amplitude(SCALE * largest))
    return params.electrical_ratio * flux.flux * SCALE * largest


def per_phase(value: Numeric) -> Numeric:
    """The amplitude in a phase of a current or voltage inside the graph."""
    return value / SCALE
