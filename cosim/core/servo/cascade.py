"""The loops of a servo drive: P control of the position over PI control of the velocity, sampled.

    v* = g v_s + K_p (q_s − q),   within the limit,        M = K_v (v* − v) + I + M_s,   within the limit,

with the setpoints q_s, v_s, M_s of the command. Every loop runs at a rate of its own and holds its output; slower rates
are whole fractions of faster ones. The position loop is open while the encoder does not know the angle.

The integral of a sampled PI controller follows its limit:

    u = limit(K e + I + f),    I' = I + (T / T_i) (K e + u − (K e + I + f)),

with the sampling period T, the integral time T_i and a feedforward f. Beyond the limit the integral is driven back by
back-calculation with the tracking time T_i (Åström and Hägglund, PID Controllers: Theory, Design, and Tuning, 2nd
edition, 1995, §3.5). Within it, I' = I + (T / T_i) K e: the transfer function is K (1 + (T / T_i) / (z − 1)).
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.servo.commutation import Commutation
from cosim.core.servo.encoder import ShaftEncoder
from cosim.core.types import Numeric, State, param, params
from cosim.core.units import format_seconds

Mode = Literal["effort", "velocity", "position"]
TOLERANCE = 1e-9  # relative, of a rate that is a whole fraction


@params
class CurrentLoop:
    """Sampled; its gains follow from `control.bandwidth`."""

    rate: float = param(unit="Hz", above=0.0, default=16e3, doc="of the samples")
    delay: Literal[0, 1] = param(default=1, doc="samples from the measurement to the voltage")


@params
class VelocityLoop:
    gain: float = param(unit="joint damping", min=0.0, doc="K_v, effort per velocity error")
    integral_time: float = param(unit="s", above=0.0, default=math.inf, doc="of its PI controller; ∞: no integral")
    limit: float = param(unit="joint velocity", above=0.0, default=math.inf, doc="of the velocity setpoint")
    rate: float = param(unit="Hz", above=0.0, default=4e3, doc="of the samples")

    @property
    def fraction(self) -> float:
        """Of the integral time that a sample takes."""
        return 1.0 / (self.rate * self.integral_time)


@params
class PositionLoop:
    gain: float = param(unit="1/s", min=0.0, doc="K_p, velocity per position error")
    feedforward: float = param(min=0.0, max=1.0, default=1.0, doc="g, part of the velocity setpoint")
    rate: float = param(unit="Hz", above=0.0, default=1e3, doc="of the samples")


@params
class ServoLoops:
    mode: Mode = param(default="position", doc="what the drive follows: its setpoint of the command")
    current: CurrentLoop | None = param(default=None, doc="sampled; without it the current loop is continuous")
    velocity: VelocityLoop | None = param(default=None, doc="needed by the modes velocity and position")
    position: PositionLoop | None = param(default=None, doc="needed by the mode position")
    encoder: ShaftEncoder | None = param(default=None, doc="on the motor; without it position and velocity are exact")
    commutation: Commutation | None = param(
        default=None, doc="of a synchronous machine: field angle and measured currents; without it both are exact"
    )

    def __post_init__(self) -> None:
        needed = {"effort": (), "velocity": ("velocity",), "position": ("velocity", "position")}[self.mode]
        for name in needed:
            if getattr(self, name) is None:
                raise ValueError(f"mode {self.mode} needs a {name} loop; give '{name}', or another mode")
        loops = self.loops
        if not loops:
            raise ValueError("no loop is sampled; give 'current' or 'velocity', or take 'loops' out")
        for (slow, one), (fast, other) in pairwise(loops.items()):
            ratio = other.rate / one.rate
            if round(ratio) < 1 or abs(ratio - round(ratio)) > TOLERANCE * ratio:
                what = f"{slow}.rate of {one.rate:.10g} Hz is no whole fraction of {fast}.rate, {other.rate:.10g} Hz"
                nearest = other.rate / max(round(ratio), 1)
                raise ValueError(f"{what}; use {nearest:.10g} Hz")
        if self.commutation is not None and self.current is None:
            raise ValueError("commutation is of a sampled current loop; give 'current' too")
        if self.commutation and self.commutation.eccentricity and self.encoder and self.encoder.eccentricity:
            raise ValueError("the encoder's eccentricity acts on the commutation too; take it out of 'commutation'")
        loop = self.velocity
        if loop is not None and loop.fraction > 1.0:
            what = f"velocity.integral_time of {format_seconds(loop.integral_time)} is shorter than a sample"
            raise ValueError(f"{what}; use {format_seconds(1.0 / loop.rate)} or more")

    @property
    def loops(self) -> dict[str, CurrentLoop | VelocityLoop | PositionLoop]:
        """Those that are closed, by name, from slow to fast."""
        found = {"position": self.position, "velocity": self.velocity, "current": self.current}
        unused = {"effort": ("position",), "velocity": ("position",), "position": ()}[self.mode]
        if self.mode == "effort" and self.current is not None:  # else the effort is taken at the rate of that loop
            unused = ("position", "velocity")
        return {name: loop for name, loop in found.items() if loop is not None and name not in unused}

    @property
    def field(self) -> Commutation | None:
        """What the drive knows of the field of a synchronous machine: by the disc of its encoder too."""
        if self.encoder is None or not self.encoder.eccentricity:
            return self.commutation
        return replace(self.commutation or Commutation(), eccentricity=self.encoder.eccentricity)

    @property
    def period(self) -> float:
        """s, of the fastest loop."""
        return 1.0 / max(loop.rate for loop in self.loops.values())

    def every(self, name: str) -> int:
        """Every how many samples a loop runs; 1 of one that is not closed."""
        loop = self.loops.get(name)
        return 1 if loop is None else round(1.0 / (loop.rate * self.period))


class Setpoints(NamedTuple):
    """Of the command of a joint: position [rad or m], velocity, effort."""

    position: Numeric
    velocity: Numeric
    effort: Numeric


class Measured(NamedTuple):
    """By the drive, of its joint: position [rad or m], velocity, and whether the position is known (1, else 0)."""

    position: Numeric
    velocity: Numeric
    known: Numeric


class DriveLimits(NamedTuple):
    """What the drive can give: velocity and effort of its joint, infinite where there is none."""

    velocity: Numeric
    effort: Numeric


def initial() -> State:
    """Setpoint of the velocity, integral of its loop, setpoint of the effort."""
    return {name: np.zeros(()) for name in ("velocity_setpoint", "integral", "effort_setpoint")}


def followed(
    p: ServoLoops,
    mode: Mode,
    x: State,
    wanted: Setpoints,
    measured: Measured,
    limits: DriveLimits,
    due: tuple[Numeric, Numeric],
) -> State:
    """The state after a sample at which the position loop and the velocity loop are due or not (truth values)."""
    if mode == "effort":
        effort, rest = within(wanted.effort, limits.effort), np.zeros(())
        return {"velocity_setpoint": rest, "integral": rest, "effort_setpoint": effort}
    of_position, of_velocity = due
    velocity, renewed = wanted.velocity, of_velocity
    if mode == "position":
        assert p.position is not None
        error = ops.where(measured.known > 0.5, wanted.position - measured.position, 0.0)
        velocity = velocity_setpoint(p.position.gain, p.position.feedforward, error, wanted.velocity)
        renewed = of_position
    velocity = ops.where(renewed, within(velocity, limits.velocity), x["velocity_setpoint"])
    loop, error = p.velocity, velocity - measured.velocity
    assert loop is not None
    given, integral = velocity_control(loop.gain, loop.fraction, error, x["integral"], wanted.effort, limits.effort)
    return {
        "velocity_setpoint": velocity,
        "integral": ops.where(of_velocity, integral, x["integral"]),
        "effort_setpoint": ops.where(of_velocity, given, x["effort_setpoint"]),
    }


def velocity_setpoint(gain: Numeric, feedforward: Numeric, error: Numeric, velocity: Numeric) -> Numeric:
    """g v_s + K_p e, without its limit; e: the position error, v_s: the velocity of the command."""
    return feedforward * velocity + gain * error


def velocity_control(
    gain: Numeric, fraction: Numeric, error: Numeric, integral: Numeric, feedforward: Numeric, limit: Numeric
) -> tuple[Numeric, Numeric]:
    """(the effort within ± limit, the next integral) of the PI controller of the velocity. fraction: T / T_i; error:
    of the velocity; feedforward: effort of the command. Numbers or arrays (n,)."""
    proportional = gain * error
    effort = proportional + integral + feedforward
    given = within(effort, limit)
    return given, next_integral(integral, fraction, proportional, effort, given)


def within(value: Numeric, limit: Numeric) -> Numeric:
    """The value within ± limit, numbers or arrays (n,)."""
    unlimited = np.ndim(limit) == 0 and ops.is_infinite(limit)
    return value if unlimited else ops.clip(value, -limit, limit)


def next_integral(
    integral: Numeric, fraction: Numeric, proportional: Numeric, wanted: Numeric, given: Numeric
) -> Numeric:
    """The next integral. fraction: T / T_i, 0 without an integral; proportional: K e; wanted, given: the output before
    and after its limit."""
    return integral + fraction * (proportional + (given - wanted))
