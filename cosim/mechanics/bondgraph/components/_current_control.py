"""The loop of a motor's current, as a drive closes it: its limits, its inverter, and its samples.

**I²t limit.** The drive gives its largest current for a short time, and then its continuous one:

    τ ẇ = i² / I_c² − w,  i_max² = I_c² + (I_p² − I_c²) · clip((1 − w) / β, 0, 1)

w is the heating relative to its value at the continuous current I_c. From cold the largest current I_p lasts
−τ ln(1 − (1 − β) I_c² / I_p²); then the limit falls to I_c within a band β of the heating.

**Inverter**, averaged over its switching periods. Both switches of a half bridge are off for the dead time t_d after
each change, and the diodes carry the current: of each switching period the half bridge loses U_dc t_d against its
current,

    Δu = −t_d f_s U_dc s(i),  s(i) = i / √(i² + i_0²)

(Jeong and Park, The analysis and compensation of dead-time effects in PWM inverters, IEEE Trans. Industrial Electronics
38(2), 1991). A full bridge has two of them in series. In the three phases of a machine the errors are six steps per
electrical turn with a fundamental of 4/π t_d f_s U_dc against the current; what is common to the phases drives none.

**Continuous.** The voltage that gives the setpoint i* in the winding as the drive knows it, less what is not as it
knows, a disturbance observer's estimate d̂ of the voltage that is there beside the given one u, within its limits:

    u = limit(R i* + ω L (i* − i) + u_e − d̂),    d̂' = R / L (d − d̂),    d = L i̇ − (u − R i − u_e),

where L i̇ is the voltage at the inductance. Where the winding is as it is known, d̂ stays 0 and the current approaches
its setpoint at the rate ω + R / L. A resistance that rises with the temperature and the dead time of the inverter are
in d: as d̂ approaches d as fast as the winding follows its voltage, no error is left in a steady state. Within the
limits the loop is a PI controller, −d̂' = R / L ((R + ω L) (i* − i) − L i̇); d̂ is found from the given voltage, so it
does not wind up beyond them (Ohishi, Nakao, Ohnishi and Miyachi, Microprocessor-controlled DC motor for
load-insensitive position servo system, IEEE Trans. Industrial Electronics 34(1), 1987).

**Link.** An inverter on a DC link of the voltage u gives at most the amplitude λ u of a phase. There the limit of the
voltage is min(`voltage_limit`, λ u), wherever it is read: a link that sags limits the voltage before its modulation
would, d̂ does not wind up, and the field is weakened in time. Dead times cost a part of u.

**Samples.** A PI controller of each axis, whose voltage is held:

    u = K (i* − i) + I + u_e,   K = ω L,   T_i = L / R,

with the angular frequency ω = 2π · bandwidth and the voltage u_e that the motion induces. The zero of the controller
cancels the pole of the winding (internal model control; Harnefors and Nee, IEEE Trans. Industry Applications 34(1),
1998): without samples and delay the loop is i = ω / (s + ω) i*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.servo.cascade import CurrentLoop, next_integral
from cosim.core.servo.commutation import Commutation, turned
from cosim.core.types import Numeric, State, param, params
from cosim.core.units import TURN
from cosim.mechanics.bondgraph import BondGraph, C, Law, Sf

BAND = 0.05  # β, of the heating, within which the limit falls
HEATING = "heating.effort"  # the signal of w
TERMINALS = "terminals"  # the junction of an inverter on a DC link, in the graph of its motor
LINK = f"{TERMINALS}.effort"  # the signal of the voltage of the link
CIRCLE = 0.98  # of the largest current, see `left_beside`, where the voltage limit depends on the currents
LOWEST_LIMIT = 1e-6  # V, of an inverter whose link has no voltage: slopes of the setpoints stay finite


@params
class Overload:
    """The I²t limit of a drive."""

    continuous_current: float = param(unit="A", above=0.0, doc="I_c, amplitude of a phase")
    time_constant: float = param(unit="s", above=0.0, doc="τ")

    def limit(self, peak: float, heating: Numeric) -> Numeric:
        """The largest current [A] now; peak: of a cold drive."""
        continuous = self.continuous_current * self.continuous_current
        share = ops.clip((1.0 - heating) / BAND, 0.0, 1.0)
        return ops.sqrt(continuous + (peak * peak - continuous) * share)


def add_state(graph: BondGraph, name: str, rate: Law) -> None:
    """A state of the drive's electronics, the signal `<name>.effort`, from 0 on. rate: its law [1/s]."""
    graph.junction(f"{name}_sum", "0")
    graph.add(f"{name}_rate", Sf("signal", rate))
    graph.add(name, C("signal", 1.0))
    graph.chain(f"{name}_rate", f"{name}_sum", name)


def add_heating(graph: BondGraph, overload: Overload, square: Law) -> None:
    """The state w of these squares of the current [A²]."""

    def rate(heating: Numeric, *signals: Numeric) -> Numeric:
        share = square.fn(*signals) / (overload.continuous_current * overload.continuous_current)
        return (share - heating) / overload.time_constant

    add_state(graph, "heating", Law(rate, (HEATING, *square.uses)))


# angles of the phases [rad]
PHASES = tuple(2.0 * math.pi / 3.0 * k for k in range(3))


@params
class Inverter:
    """An inverter with its dead time, averaged or switched."""

    dead_time: float = param(unit="s", min=0.0, doc="t_d")
    switching_frequency: float = param(unit="Hz", above=0.0, doc="f_s")
    supply_voltage: float = param(unit="V", above=0.0, doc="U_dc")
    rounding_current: float = param(unit="A", above=0.0, default=0.05, doc="i_0, below which the error fades out")
    on_voltage: float = param(unit="V", min=0.0, default=0.0, doc="V of a half bridge that conducts")
    on_resistance: float = param(unit="ohm", min=0.0, default=0.0, doc="R of a half bridge that conducts")
    switching_time: float = param(unit="s", min=0.0, default=0.0, doc="t_s, mean of the times to turn on and off")
    switched: bool = param(default=False, doc="with the ripple of its switching; without it averaged over its periods")

    def __post_init__(self) -> None:
        if self.dead_time * self.switching_frequency >= 0.5:
            raise ValueError("the dead time of both switches fills the switching period; lower one of both")

    def lost_voltage(self, link: Numeric) -> Numeric:
        """Of a half bridge on a link of this voltage [V]."""
        return self.dead_time * self.switching_frequency * link

    def error(self, current: Numeric, link: Numeric) -> Numeric:
        """Of a half bridge on a link of this voltage [V]."""
        return -self.lost_voltage(link) * ops.smooth_sign(current, self.rounding_current)

    def errors(self, i_d: Numeric, i_q: Numeric, angle: Numeric, link: Numeric) -> tuple[Numeric, Numeric]:
        """Of the axes d and q [V] at an electrical angle [rad], of currents as amplitudes of a phase."""
        d = q = 0.0
        for phase in PHASES:
            c, s = ops.cos(angle - phase), ops.sin(angle - phase)
            error = self.error(c * i_d - s * i_q, link)
            d, q = d + 2.0 / 3.0 * c * error, q - 2.0 / 3.0 * s * error
        return d, q


class PhaseLimits(NamedTuple):
    """What a drive can give now, amplitudes of a phase: current [A] and voltage [V]. link: voltage [V] that its
    inverter switches, where it has one; circle: as of `left_beside`."""

    current: Numeric
    voltage: Numeric
    link: Numeric
    circle: float = 1.0


@params
class CurrentControl:
    """The continuous loop of a current, with its limits."""

    bandwidth: float = param(unit="Hz", above=0.0, default=500.0, doc="of the current loop")
    current_limit: float = param(unit="A", above=0.0, default=math.inf, doc="amplitude of a phase")
    voltage_limit: float = param(
        unit="V", above=0.0, default=math.inf, doc="amplitude of a phase, at most `supply_voltage` of the inverter"
    )
    overload: Overload | None = param(default=None, doc="I²t limit: `current_limit` lasts for a short time")
    inverter: Inverter | None = param(default=None, doc="with its dead time; without it the voltage is exact")
    currents: Literal["zero_d", "mtpa"] = param(
        default="zero_d", doc="of a synchronous machine: i_d = 0, or the least ones of a torque"
    )

    def __post_init__(self) -> None:
        if self.overload is not None and not self.overload.continuous_current < self.current_limit < math.inf:
            raise ValueError(
                "an overload is between its continuous_current and current_limit; give a current_limit above it"
            )

        supply = self.inverter.supply_voltage if self.inverter else math.inf
        if math.isfinite(self.voltage_limit) and self.voltage_limit > supply:
            raise ValueError(
                f"an inverter gives at most its supply_voltage of {supply:g} V; lower voltage_limit, or raise that"
            )

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The signals of `limits`."""
        return () if self.overload is None else (HEATING,)

    @property
    def varying_limits(self) -> dict[str, str]:
        """Those of `PhaseLimits` that signals change -> their units."""
        return {} if self.overload is None else {"current": "A"}

    def limits(self, *signals: Numeric) -> PhaseLimits:
        """By the signals of `limited_by`."""
        current, link = self.current_limit, self.inverter.supply_voltage if self.inverter else math.inf
        if self.overload is not None:
            current = self.overload.limit(self.current_limit, *signals)
        return PhaseLimits(current, self.voltage_limit, link)

    def full_bridge(self, commanded: Numeric, current: Numeric, *limiting: Numeric) -> Numeric:
        """The voltage that a full bridge gives [V]; limiting: values of `limited_by`."""
        if self.inverter is None:
            return commanded
        return commanded + 2.0 * self.inverter.error(current, self.limits(*limiting).link)

    def on_link(self, per_link: float) -> ControlOnLink:
        """The same control on a DC link; per_link: λ."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return ControlOnLink(**own, per_link=per_link)

    @property
    def switching(self) -> Inverter | None:
        """The inverter, where it has a ripple."""
        return self.inverter if self.inverter is not None and self.inverter.switched else None

    @property
    def rate(self) -> float:
        """rad/s"""
        return TURN * self.bandwidth


@dataclass(frozen=True)
class ControlOnLink(CurrentControl):
    """The control of a motor whose inverter is on a DC link, `LINK`. per_link: λ, largest amplitude of a phase per
    voltage of the link."""

    per_link: float = 1.0

    @property
    def limited_by(self) -> tuple[str, ...]:
        return (*super().limited_by, LINK)

    @property
    def varying_limits(self) -> dict[str, str]:
        return {**super().varying_limits, "voltage": "V"}

    def limits(self, *signals: Numeric) -> PhaseLimits:
        *others, link = signals
        current, voltage, *_ = super().limits(*others)
        given = ops.maximum(self.per_link * link, LOWEST_LIMIT)
        voltage = given if ops.is_infinite(voltage) else ops.minimum(given, voltage)
        return PhaseLimits(current, voltage, link, CIRCLE)


def missing(axis: str) -> str:
    """The signal of d̂ of an axis."""
    return f"missing{axis}.effort"


def add_observer(graph: BondGraph, axis: str, resistance: float, inductance: float, disturbance: Law) -> None:
    """The state d̂ of an axis. disturbance: d = L i̇ − (u − R i − u_e) of the winding as the drive knows it [V]."""

    def rate(found: Numeric, *signals: Numeric) -> Numeric:
        return resistance / inductance * (disturbance.fn(*signals) - found)

    add_state(graph, f"missing{axis}", Law(rate, (missing(axis), *disturbance.uses)))


def recorded_limit(of: str) -> str:
    """The recorded signal of one of `varying_limits`."""
    return f"{of}_limit"


def add_limits(graph: BondGraph, control: CurrentControl, square: Law) -> None:
    """The heating of a drive with an overload by these squares of the current, and recorded signals of the limits that
    vary."""
    if control.overload is not None:
        add_heating(graph, control.overload, square)
    for of, unit in control.varying_limits.items():

        def limit(*signals: Numeric, of: str = of) -> Numeric:
            return getattr(control.limits(*signals), of)

        graph.signals[recorded_limit(of)] = Law(limit, control.limited_by), unit


def limited(value: Numeric, limit: Numeric) -> Numeric:
    """The value within ± limit."""
    return value if ops.is_infinite(limit) else ops.clip(value, -limit, limit)


def left_beside(current: Numeric, largest: Numeric, circle: float, least: float = 0.0) -> Numeric:
    """What the current of one axis leaves to the other one of a largest amplitude: the circle, and beyond the fraction
    `circle` of the amplitude the chord to its end, whose slope is finite. least: of its square on the circle.

    A link whose voltage depends on the currents would be drawn to the infinite slope at that end, and stay there."""
    if circle < 1.0 and not ops.is_infinite(largest):
        along = ops.minimum(ops.abs(current), circle * largest)
        chord = ops.clip((largest - ops.abs(current)) / ((1.0 - circle) * largest), 0.0, 1.0)
        return chord * ops.sqrt(largest * largest - along * along)
    return ops.sqrt(ops.maximum(largest * largest - current * current, least))


Values = tuple[Numeric, ...]  # one for each axis


@dataclass(frozen=True)
class MachineWindings:
    """What the drive knows of the windings of its motor, from the states x of its graph. axes: suffixes of the names of
    each; currents: (x) in them; setpoints: (x, torque, speed, limits) the currents of a torque of the motor [N·m] at a
    speed [rad/s], within limits; induced: (x, currents, speed) voltages; limited: (voltages, limits) that
    the inverter can give; largest_torque: (largest) of an amplitude of a phase, at standstill; per_amplitude:
    `currents` per amplitude of a phase; electrical_ratio: electrical angle per travel of a synchronous machine of three
    phases, 0 of others.
    """

    axes: tuple[str, ...]
    currents: Callable[[State], Values]
    resistance: float
    inductances: tuple[float, ...]
    setpoints: Callable[[State, Numeric, Numeric, PhaseLimits], Values]
    induced: Callable[[State, Values, Numeric], Values]
    limited: Callable[[Values, PhaseLimits], Values]
    largest_torque: Callable[[Numeric], Numeric]
    electrical_ratio: float = 0.0
    per_amplitude: float = 1.0


@dataclass(frozen=True)
class SampledCurrentLoop:
    """The loop of a current, sampled."""

    windings: MachineWindings
    control: CurrentControl
    loop: CurrentLoop
    commutation: Commutation | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for gains at which the loop is unstable: z^(1 + d) − z^d + ωT = 0 with a delay of d samples
        has a root beyond the unit circle."""
        largest = (1.0 if self.loop.delay else 2.0) * self.loop.rate / TURN
        if self.control.bandwidth >= largest:
            late = ", each late by one" if self.loop.delay else ""
            what = f"a bandwidth of {self.control.bandwidth:.4g} Hz is unstable with {self.loop.rate:.10g}"
            raise ValueError(
                f"{what} samples per second{late}; use less than {largest:.4g} Hz, at best a tenth of the rate"
            )

    @property
    def newest(self) -> str:
        """What the names of the voltages of the last sample begin with."""
        return "next_voltage" if self.loop.delay else "voltage"

    def initial(self) -> State:
        """Voltages, integrals, and the voltages of the next sample if they are late; without currents."""
        names = ("voltage", "voltage_integral", *(("next_voltage",) if self.loop.delay else ()))
        state: State = {f"{name}{axis}": np.zeros(()) for name in names for axis in self.windings.axes}
        return state if self.commutation is None else state | self.commutation.initial()

    def sampled(
        self, x: State, motor: State, torque: Numeric, angle: Numeric, speed: Numeric, limits: PhaseLimits
    ) -> State:
        """The state after a sample. motor: states of its graph; torque: setpoint, of the motor [N·m]; angle, speed: of
        the motor [rad, rad/s]."""
        w, currents = self.windings, self.windings.currents(motor)
        if self.commutation is None:
            return self._controlled(x, motor, torque, currents, speed, limits)
        error = self.commutation.angle_error(w.electrical_ratio, angle, speed)
        noise, random = self.commutation.noise(x)
        i_d, i_q = (current / w.per_amplitude for current in currents)
        measured = self.commutation.measured(i_d, i_q, w.electrical_ratio * angle, error, random)
        known = tuple(w.per_amplitude * i for i in measured)
        state = self._controlled(x, motor, torque, known, speed, limits)
        given = turned(state[f"{self.newest}_d"], state[f"{self.newest}_q"], error)
        return state | noise | {f"{self.newest}_d": given[0], f"{self.newest}_q": given[1]}

    def _controlled(
        self, x: State, motor: State, torque: Numeric, currents: Values, speed: Numeric, limits: PhaseLimits
    ) -> State:
        """As `sampled`, in the axes of the drive."""
        w = self.windings
        errors = [a - b for a, b in zip(w.setpoints(motor, torque, speed, limits), currents, strict=True)]
        proportional = [self.control.rate * L * e for L, e in zip(w.inductances, errors, strict=True)]
        integrals = [x[f"voltage_integral{axis}"] for axis in w.axes]
        parts = zip(proportional, integrals, w.induced(motor, currents, speed), strict=True)
        wanted = tuple(p + i + e for p, i, e in parts)
        given = w.limited(wanted, limits)
        state: State = {}
        for k, axis in enumerate(w.axes):
            fraction = w.resistance / w.inductances[k] / self.loop.rate
            integral = next_integral(integrals[k], fraction, proportional[k], wanted[k], given[k])
            state[f"voltage_integral{axis}"] = integral
            if self.loop.delay:
                state |= {f"voltage{axis}": x[f"next_voltage{axis}"], f"next_voltage{axis}": given[k]}
            else:
                state[f"voltage{axis}"] = given[k]
        return state
