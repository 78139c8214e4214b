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
from dataclasses import replace
from functools import partial
from typing import Protocol

from cosim.core.types import Numeric, State, param, params
from cosim.mechanics.bondgraph import GY, BondGraph, I, Law, Se
from cosim.mechanics.bondgraph.components import _bearing
from cosim.mechanics.bondgraph.components._bridge import THREE_PHASES
from cosim.mechanics.bondgraph.components._current_control import (
    CurrentControl,
    MachineWindings,
    Values,
    add_limits,
)
from cosim.mechanics.bondgraph.components._flux_tables import FluxTables
from cosim.mechanics.bondgraph.components._iron import IronLosses
from cosim.mechanics.bondgraph.components._rotor import WithRotor, add_rotor
from cosim.mechanics.bondgraph.components._synchronous import LOST, SynchronousAxes
from cosim.mechanics.bondgraph.components._thermal import Thermal, add_limits_and_magnets, add_windings

# of currents, voltages and fluxes whose product is the power of three phases
SCALE = math.sqrt(1.5)
CURRENTS = ("winding_d.flow", "winding_q.flow")
FLUXES = ("winding_d.momentum", "winding_q.momentum")  # of a machine by tables
SQUARE = Law(lambda d, q: (d * d + q * q) / (SCALE * SCALE), CURRENTS)  # of the amplitude of a phase
BRIDGE = THREE_PHASES


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
    iron: IronLosses | None = param(default=None, doc="iron losses")
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


class SynchronousMachine(WithRotor, Protocol):
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
    add_rotor(graph, params, torque, params.domain, params.cogging, params.cogging_rate)
    add_limits_and_magnets(graph, params.thermal, {"machine_q": params.electrical_ratio * SCALE * params.flux})
    return graph


def axes(params: SynchronousMachine) -> SynchronousAxes:
    """What controls the machine."""
    p, r, ld, lq = params.electrical_ratio, params.resistance, params.inductance_d, params.inductance_q
    return SynchronousAxes(p, r, ld, lq, SCALE * params.flux, SCALE)


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
    input `request` is an effort behind gears of this ratio."""
    graph, of = build(params), axes(params)

    def wanted(request: Numeric) -> Numeric:
        return request / (ratio * of.electrical_ratio * of.flux)

    def commanded(request: Numeric, *known: Numeric) -> tuple[Numeric, Numeric]:
        return of.voltages(control, wanted(request), *known)

    def disturbances(at_d: Numeric, at_q: Numeric, request: Numeric, *known: Numeric) -> tuple[Numeric, Numeric]:
        return of.disturbances(control, at_d, at_q, wanted(request), *known)

    known = ("request", *CURRENTS, "rotor.flow", *LOST, *control.limited_by)
    uses, given = known, commanded
    if control.inverter is not None:
        uses = (*known, "rotor.displacement")

        def given(*known: Numeric) -> tuple[Numeric, Numeric]:
            *others, angle = known
            (u_d, u_q), (_, i_d, i_q, *_) = commanded(*others), others
            limiting = others[len(others) - len(control.limited_by) :]
            return _of_inverter(params, control, u_d, u_q, i_d, i_q, angle, *limiting)

    add_limits(graph, control, SQUARE)
    _supply(graph, control, [Law(lambda *known, k=k: given(*known)[k], uses) for k in range(2)])
    of.add_observers(graph, disturbances, ("winding_d.effort", "winding_q.effort", *known))
    return graph


def _of_inverter(
    params: SynchronousMachine,
    control: CurrentControl,
    u_d: Numeric,
    u_q: Numeric,
    i_d: Numeric,
    i_q: Numeric,
    angle: Numeric,
    *limiting: Numeric,
) -> tuple[Numeric, Numeric]:
    """The voltages of an inverter with dead time that is commanded u_d and u_q, at this angle of the rotor [rad]."""
    assert control.inverter is not None
    link, turned = control.limits(*limiting).link, params.electrical_ratio * angle
    errors = control.inverter.errors(per_phase(i_d), per_phase(i_q), turned, link)
    return u_d + SCALE * errors[0], u_q + SCALE * errors[1]


def _supply(graph: BondGraph, control: CurrentControl, voltages: Sequence[Law]) -> None:
    """A source of voltage in each axis, and the recorded signals. Raises ValueError for a switched inverter."""
    if control.switching is not None:
        raise ValueError("the inverter of a pmsm or linear_motor is averaged; take 'switched' out of 'control'")
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
        uses = ("voltage_d", "voltage_q", *CURRENTS, "rotor.displacement", *control.limited_by)
        commanded = [Law(lambda *known, k=k: _of_inverter(params, control, *known)[k], uses) for k in range(2)]
    _supply(graph, control, commanded)
    add_limits(graph, control, SQUARE)
    return graph


def windings(params: SynchronousMachine, control: CurrentControl) -> MachineWindings:
    """What a sampled current loop knows of the machine."""
    read, of = partial(_states, CURRENTS), axes(params)
    if params.flux_tables is not None:
        fluxes, energy = partial(_states, FLUXES), params.flux_tables.energy(SCALE)

        def read(x: State) -> Values:
            return energy.currents(*fluxes(x))

    return replace(of.windings(control, read), electrical_ratio=of.electrical_ratio)


def _states(names: Sequence[str], x: State) -> Values:
    return tuple(x[name] for name in names)


def per_phase(value: Numeric) -> Numeric:
    """The amplitude in a phase of a current or voltage inside the graph."""
    return value / SCALE
