"""Induction machine with a cage, in the axes α and β of its stator.

    u_s = R_s i_s + L_σ i̇_s + ψ̇_R        ψ̇_R = R_R (i_s − i_M) + j p ω ψ_R        M = 3/2 p (ψ_R × i_s)
    i_M = ψ_R / L_M · (1 + (|ψ_R| / ψ_S)^S)

This inverse-Γ form has the currents, voltages and torque of the T form of the parameters: with k = L_m / (L_m + L_rσ),
L_M = k L_m, L_σ = L_m + L_sσ − L_M, R_R = k² R_r (Slemon, Modelling of induction machines for electric drives, IEEE
Trans. Industry Applications 25(6), 1989). Without leakage of the rotor the T form is the inverse-Γ form itself, without
leakage of the stator the Γ form. The saturation of the magnetising inductance is after Qu, Ranta, Hinkkanen and Luomi,
Loss-minimizing flux level control of induction motor drives, IEEE Trans. Industry Applications 48(3), 2012, here of the
rotor flux.

Inside, currents, voltages and fluxes are √(3/2) times their values in the formulas, so that u i is the power of all
three phases. As a bond graph the magnetising inductance is a storage field of both fluxes, which modulate a gyrator
from each rotor mesh to the shaft.

Ports: `alpha` and `beta`, the meshes of the stator that sources of voltage are bonded to; `shaft`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cosim.core import ops
from cosim.core.types import Numeric, State, param, params
from cosim.core.units import TURN
from cosim.mechanics.bondgraph import GY, IC, BondGraph, C, I, Law, R, Se, Sf
from cosim.mechanics.bondgraph.components import _bearing
from cosim.mechanics.bondgraph.components._bridge import THREE_PHASES
from cosim.mechanics.bondgraph.components._current_control import (
    CurrentControl,
    MachineWindings,
    PhaseLimits,
    Values,
    add_limits,
    left_beside,
    limited,
)
from cosim.mechanics.bondgraph.components._iron import IronLosses
from cosim.mechanics.bondgraph.components._open_loop import FIELD, OpenLoop
from cosim.mechanics.bondgraph.components._rotor import add_rotor
from cosim.mechanics.bondgraph.components._switching import add_ripples
from cosim.mechanics.bondgraph.components._synchronous import BACK_EMF, LOWEST_SPEED, limited_vector
from cosim.mechanics.bondgraph.components._thermal import Thermal, add_limits_and_magnets, add_windings, refuse_magnets
from cosim.mechanics.bondgraph.elements import Stored

SCALE = math.sqrt(1.5)  # of currents, voltages and fluxes whose product is the power of three phases
CURRENTS, FLUXES = ("winding_alpha.flow", "winding_beta.flow"), ("magnetising.alpha", "magnetising.beta")
ESTIMATED = ("observer_alpha.displacement", "observer_beta.displacement")  # fluxes of the rotor, by model
SQUARE = Law(lambda a, b: (a * a + b * b) / (SCALE * SCALE), CURRENTS)  # of the amplitude of a phase
BRIDGE = THREE_PHASES
LOWEST_FLUX = 0.1  # of the flux, below which the drive gives less torque than requested
UNDIRECTED = 1e-9  # of the flux: one that is smaller has the direction of α


@params
class Params:
    pole_pairs: int = param(min=1, doc="p")
    stator_resistance: float = param(unit="ohm", above=0.0, doc="R_s of a phase")
    rotor_resistance: float = param(unit="ohm", above=0.0, doc="R_r of a phase, seen from the stator")
    magnetising_inductance: float = param(unit="H", above=0.0, doc="L_m, without saturation")
    stator_leakage: float = param(unit="H", min=0.0, default=0.0, doc="L_sσ")
    rotor_leakage: float = param(unit="H", min=0.0, default=0.0, doc="L_rσ, seen from the stator")
    saturation_flux: float = param(unit="V*s", above=0.0, default=math.inf, doc="ψ_S, amplitude, where L_M has halved")
    saturation_exponent: float = param(min=2.0, default=7.0, doc="S")
    inertia: float = param(unit="kg*m^2", min=0.0, default=0.0, doc="of the rotor; 0: given by what is bonded to it")
    viscous: float = _bearing.viscous()
    coulomb: float = _bearing.coulomb()
    load_friction: float = _bearing.load_friction()
    creep_speed: float = _bearing.creep_speed()
    flux: float | None = param(unit="V*s", above=0.0, default=None, doc="ψ_R that a drive keeps, amplitude")
    excited: bool = param(default=False, doc="whether it has this flux at t = 0")
    thermal: Thermal | None = param(default=None, doc="of stator winding and housing; without it both stay cold")

    def __post_init__(self) -> None:
        if not self.stator_leakage + self.rotor_leakage > 0.0:
            raise ValueError("a machine without leakage has no limit of its current; give a leakage")
        if self.excited and self.flux is None:
            raise ValueError("it is excited to its flux; give 'flux'")
        refuse_magnets(self.thermal)

    @property
    def iron(self) -> IronLosses | None:
        """Iron losses are of a machine with magnets."""
        return None

    @property
    def transformation(self) -> float:
        """k, of the inverse-Γ form"""
        return self.magnetising_inductance / (self.magnetising_inductance + self.rotor_leakage)

    @property
    def main(self) -> float:
        """L_M without saturation [H]"""
        return self.transformation * self.magnetising_inductance

    @property
    def leakage(self) -> float:
        """L_σ [H]"""
        return self.magnetising_inductance + self.stator_leakage - self.main

    @property
    def rotor(self) -> float:
        """R_R [Ω]"""
        return self.transformation * self.transformation * self.rotor_resistance

    @property
    def kept(self) -> float:
        """The flux that a drive keeps, inside [V·s]. Raises ValueError for a machine without it."""
        if self.flux is None:
            raise ValueError("a drive keeps the flux of its machine; give 'flux'")
        return SCALE * self.flux

    def saturation(self, square: Numeric) -> Numeric:
        """L_M without saturation over L_M at a square of the flux inside, |ψ|² [V²s²]."""
        if math.isinf(self.saturation_flux):
            return 1.0
        limit = SCALE * self.saturation_flux
        return 1.0 + ops.power(square / (limit * limit), self.saturation_exponent / 2.0)

    def energy(self, alpha: Numeric, beta: Numeric) -> Numeric:
        """∫ i_M dψ_R [J] of the fluxes inside."""
        square = alpha * alpha + beta * beta
        share = 2.0 / (self.saturation_exponent + 2.0)
        return square / (2.0 * self.main) * (1.0 + share * (self.saturation(square) - 1.0))


def build(params: Params) -> BondGraph:
    p = params.pole_pairs
    graph = BondGraph(ports={"alpha": "mesh_alpha", "beta": "mesh_beta", "shaft": "rotor"})
    graph.junction("rotor", "1")
    start = (params.kept if params.excited else 0.0, 0.0)
    winding: tuple[str, Stored] = ("electrical", "momentum")
    graph.add("magnetising", IC([winding, winding], params.energy, start, ("alpha", "beta")))
    torques = {"alpha": Law(lambda beta: -p * beta, FLUXES[1:]), "beta": Law(lambda alpha: p * alpha, FLUXES[:1])}
    for axis, torque in torques.items():
        graph.junction(f"mesh_{axis}", "1")
        graph.junction(f"gap_{axis}", "0")
        graph.junction(f"cage_{axis}", "1")
        current = params.kept / params.main * params.saturation(params.kept**2) if params.excited else 0.0
        graph.add(f"winding_{axis}", I("electrical", params.leakage, current if axis == "alpha" else 0.0))
        graph.add(f"cage_resistance_{axis}", R("electrical", params.rotor))
        graph.add(f"machine_{axis}", GY("electrical", "rotational", torque))
        graph.bond(f"mesh_{axis}", f"winding_{axis}")
        graph.chain(f"mesh_{axis}", f"gap_{axis}", f"cage_{axis}", f"machine_{axis}", "rotor")
        graph.bond(f"gap_{axis}", f"magnetising.{axis}")
        graph.bond(f"cage_{axis}", f"cage_resistance_{axis}")
    add_windings(graph, ["mesh_alpha", "mesh_beta"], params.stator_resistance, params.thermal)
    of_currents = Law(lambda a, b, i_a, i_b: p * (a * i_b - b * i_a), (*FLUXES, *CURRENTS))
    add_rotor(graph, params, of_currents)
    add_limits_and_magnets(graph, params.thermal, {})
    return graph


# --- along the observed flux of the rotor ---


def _add_observer(graph: BondGraph, params: Params) -> None:
    """The flux of the rotor from its speed and the currents by the model, ψ' = R_R (i_s − i_M) + j p ω ψ. Raises
    ValueError for a machine without `flux`."""
    p, rotor, main, kept = params.pole_pairs, params.rotor, params.main, params.kept

    for axis, other, sign in (("alpha", "beta", -1.0), ("beta", "alpha", 1.0)):

        def rate(current: Numeric, own: Numeric, other: Numeric, speed: Numeric, sign: float = sign) -> Numeric:
            decay = rotor / main * params.saturation(own * own + other * other)
            return rotor * current - decay * own + sign * p * speed * other

        uses = (f"winding_{axis}.flow", f"observer_{axis}.effort", f"observer_{other}.effort", "rotor.flow")
        start = kept if params.excited and axis == "alpha" else 0.0
        graph.junction(f"flux_{axis}", "0")
        graph.add(f"observer_rate_{axis}", Sf("signal", Law(rate, uses)))
        graph.add(f"observer_{axis}", C("signal", 1.0, start))
        graph.chain(f"observer_rate_{axis}", f"flux_{axis}", f"observer_{axis}")


def _polar(params: Params, alpha: Numeric, beta: Numeric) -> tuple[Numeric, Values]:
    """(Size, (cos, sin) of the angle) of an observed flux."""
    x = alpha + UNDIRECTED * params.kept
    size = ops.sqrt(x * x + beta * beta)
    return size, (x / size, beta / size)


def _along(direction: Values, x: Numeric, y: Numeric) -> Values:
    """A vector in α and β in the axes d and q of a direction."""
    c, s = direction
    return c * x + s * y, c * y - s * x


def setpoints(params: Params, torque: Numeric, flux: Numeric, speed: Numeric, limits: PhaseLimits) -> Values:
    """Setpoints of both currents from the torque [N·m], the flux now and the speed [rad/s].

    Where the voltage limits, the flux and i_q keep the voltage that they induce, p ω |ψ_R + L_σ i_s|, at U, 0.9 of the
    limit: ψ_R = L_M / (L_M + L_σ) √((U / pω)² − (L_σ i_q)²), where i_q is at most U / (√2 pω L_σ)."""
    p, main, leakage, kept = params.pole_pairs, params.main, params.leakage, params.kept
    i_q = torque / (p * ops.maximum(flux, LOWEST_FLUX * kept))
    largest, limit, wanted = SCALE * limits.current, SCALE * limits.voltage, kept
    if not ops.is_infinite(limit):
        linked = BACK_EMF * limit / ops.maximum(ops.abs(p * speed), LOWEST_SPEED)
        i_q = limited(i_q, linked / (math.sqrt(2.0) * leakage))
        room = ops.sqrt(linked * linked - (leakage * i_q) * (leakage * i_q))
        wanted = ops.minimum(kept, main / (main + leakage) * room)
    i_d = limited(wanted / main * params.saturation(wanted * wanted), largest)
    if ops.is_infinite(largest):
        return i_d, i_q
    rest = left_beside(i_d, largest, limits.circle)
    return i_d, ops.clip(i_q, -rest, rest)


def induced(params: Params, flux: Numeric, currents: Values, speed: Numeric) -> Values:
    """Voltages of both axes that are none of R_s + R_R and L_σ."""
    (i_d, i_q), p, rotor = currents, params.pole_pairs, params.rotor
    turning = p * speed + rotor * i_q / ops.maximum(flux, LOWEST_FLUX * params.kept)
    linked = rotor / params.main * params.saturation(flux * flux) * flux
    return -turning * params.leakage * i_q - linked, turning * params.leakage * i_d + p * speed * flux


def controlled(params: Params, control: CurrentControl, ratio: float) -> BondGraph:
    """The machine on an averaged inverter that closes loops of both currents along the observed flux of the rotor, with
    field weakening where the voltage limits; port: `shaft`. The input `request` is an effort behind gears of this
    ratio. Raises ValueError for a machine without `flux`."""
    resistance = params.stator_resistance + params.rotor

    def voltages(request: Numeric, a: Numeric, b: Numeric, *known: Numeric) -> Values:
        alpha, beta, speed, *limiting = known
        flux, direction = _polar(params, alpha, beta)
        limits = control.limits(*limiting)
        now = _along(direction, a, b)
        wanted = setpoints(params, request / ratio, flux, speed, limits)
        given = [
            resistance * target + params.leakage * control.rate * (target - current) + other
            for target, current, other in zip(wanted, now, induced(params, flux, now, speed), strict=True)
        ]
        c, s = direction
        return _along((c, -s), *limited_vector(SCALE * limits.voltage, given[0], given[1]))

    graph = build(params)
    _add_observer(graph, params)
    _supply(graph, params, control, voltages, ("request", *CURRENTS, *ESTIMATED, "rotor.flow", *control.limited_by))
    _record_axes(graph, params, control)
    return graph


def with_voltages(params: Params, control: CurrentControl) -> BondGraph:
    """The machine on an inverter that is commanded `voltage_d` and `voltage_q` along the observed flux, inputs; port:
    `shaft`. Raises ValueError for a machine without `flux`."""

    def voltages(d: Numeric, q: Numeric, alpha: Numeric, beta: Numeric) -> Values:
        _, (c, s) = _polar(params, alpha, beta)
        return _along((c, -s), d, q)

    graph = build(params)
    graph.inputs |= {"voltage_d": "V", "voltage_q": "V"}
    _add_observer(graph, params)
    _supply(graph, params, control, voltages, ("voltage_d", "voltage_q", *ESTIMATED))
    _record_axes(graph, params, control)
    return graph


def windings(params: Params, control: CurrentControl) -> MachineWindings:
    """What a sampled current loop knows of the machine. Raises ValueError for a machine without `flux`."""
    kept = params.kept

    def estimated(x: State) -> tuple[Numeric, Values]:
        alpha, beta = (x[name] for name in ESTIMATED)
        return _polar(params, alpha, beta)

    def currents(x: State) -> Values:
        a, b = (x[name] for name in CURRENTS)
        return _along(estimated(x)[1], a, b)

    def of_torque(x: State, torque: Numeric, speed: Numeric, limits: PhaseLimits) -> Values:
        return setpoints(params, torque, estimated(x)[0], speed, limits)

    def largest_torque(largest: Numeric) -> Numeric:
        exciting = kept / params.main * float(params.saturation(kept * kept)) / SCALE
        return params.pole_pairs * kept * SCALE * ops.sqrt(ops.maximum(largest * largest - exciting * exciting, 0.0))

    return MachineWindings(
        axes=("_d", "_q"),
        currents=currents,
        resistance=params.stator_resistance + params.rotor,
        inductances=(params.leakage, params.leakage),
        setpoints=of_torque,
        induced=lambda x, currents, speed: induced(params, estimated(x)[0], currents, speed),
        limited=lambda voltages, limits: limited_vector(SCALE * limits.voltage, *voltages),
        largest_torque=largest_torque,
    )


# --- without feedback ---


def with_field(params: Params, control: CurrentControl, loop: OpenLoop) -> BondGraph:
    """The machine on voltages that turn by p of the field's angle, of an amplitude over its frequency (V/f), whatever
    the rotor does; port: `shaft`. Inputs: `FIELD`. While it is off its currents are driven to 0. Raises ValueError for
    a loop without the curve of the voltage."""
    curve = loop.volts_per_hertz
    if curve is None:
        raise ValueError(
            "an induction machine without feedback has a voltage over its frequency; give 'volts_per_hertz'"
        )
    p = params.pole_pairs

    def voltages(angle: Numeric, speed: Numeric, on: Numeric, a: Numeric, b: Numeric, *limiting: Numeric) -> Values:
        limit = control.limits(*limiting).voltage
        amplitude = SCALE * ops.minimum(curve.amplitude(ops.abs(p * speed) / TURN), limit)
        off = (on - 1.0) * params.leakage * control.rate
        return (
            on * amplitude * ops.cos(p * angle) + off * a,
            on * amplitude * ops.sin(p * angle) + off * b,
        )

    graph = build(params)
    graph.inputs |= FIELD
    _supply(graph, params, control, voltages, (*FIELD, *CURRENTS, *control.limited_by))
    for name, signals, unit in (("current", CURRENTS, "A"), ("voltage", _VOLTAGES, "V")):
        graph.signals[name] = Law(lambda x, y: _size(x, y) / SCALE, signals), unit
    return graph


def step_size(params: Params, loop: OpenLoop) -> None:
    """None: its field turns continuously."""


# --- the inverter ---

_VOLTAGES = ("inverter_alpha.effort", "inverter_beta.effort")


def _supply(
    graph: BondGraph, params: Params, control: CurrentControl, voltages: Callable[..., Values], uses: tuple[str, ...]
) -> None:
    """An inverter whose commanded voltages in α and β are a law."""

    count = len(control.limited_by)

    def given(a: Numeric, b: Numeric, *known: Numeric) -> Values:
        u_a, u_b = voltages(*known[count:])
        if control.inverter is None:
            return u_a, u_b
        errors = control.inverter.errors(a / SCALE, b / SCALE, 0.0, control.limits(*known[:count]).link)
        return u_a + SCALE * errors[0], u_b + SCALE * errors[1]

    add_limits(graph, control, SQUARE)
    for k, axis in enumerate(("alpha", "beta")):
        law = Law(lambda *known, k=k: given(*known)[k], (*CURRENTS, *control.limited_by, *uses))
        graph.add(f"inverter_{axis}", Se("electrical", law))
        graph.bond(f"inverter_{axis}", f"mesh_{axis}")
    if control.switching is not None:
        add_ripples(graph, control.switching, params.leakage, _VOLTAGES)
    graph.signals["rotor_flux"] = Law(lambda alpha, beta: _size(alpha, beta) / SCALE, FLUXES), "V*s"


def _record_axes(graph: BondGraph, params: Params, control: CurrentControl) -> None:
    """Currents and voltages along the observed flux."""
    for what, signals, unit in (("current", CURRENTS, "A"), ("voltage", _VOLTAGES, "V")):
        flows = signals if control.switching is None or what == "voltage" else ("mesh_alpha.flow", "mesh_beta.flow")
        for k, axis in enumerate("dq"):

            def along(x: Numeric, y: Numeric, alpha: Numeric, beta: Numeric, k: int = k) -> Numeric:
                return _along(_polar(params, alpha, beta)[1], x, y)[k] / SCALE

            graph.signals[f"{what}_{axis}"] = Law(along, (*flows, *ESTIMATED)), unit


def _size(x: Numeric, y: Numeric) -> Numeric:
    """Of a vector."""
    return ops.sqrt(x * x + y * y)
