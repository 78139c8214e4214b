"""A servo in position mode with a DC motor and gears, such as those of Dynamixel and Feetech: a proportional loop in
its firmware sets the duty of its bridge.

    duty = clip(gain · kp · (goal − q), ±max_duty),   U = duty · supply_voltage
    i = (U − k_t q̇) / R,                              effort = k_t i

With `gear_stiffness` the gears are elastic and have play b: the rotor of inertia J turns by q + δ,

    J ẇ = k_t i − T,   δ̇ = w − q̇,   effort = T = k s + d δ̇,   s = δ − clip(δ, ±b/2)

where the flanks touch, s ≠ 0, and push; else T = 0. The back-EMF is then that of w, and the loop reads q.

q, k_t and the inertia of the rotor are at the joint, behind the gears. Switched off, the motor is an open circuit and
does not brake. Friction of the gears is the joint's: `joints.<joint>.friction`.

The goal is held from sample to sample. With a delay D it is, over each sample time, the mean of what the command was D
before. With m whole sample times P in D, g the commands and f = D − m P,

    goal_n = ((P − f) g_{n−m} + f g_{n−m−1}) / P,

which has the impulse of a goal that jumps between two samples. The profile then follows at `max_speed`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import ACTUATOR_INPUTS, ACTUATOR_OUTPUTS, Numeric, Signal, Signals, State, param, params

GOAL, ON, DUTY = "goal", "on", "duty"  # states
TWIST, ROTOR_SPEED = "twist", "rotor_speed"  # … of elastic gears: δ and w
DAMPED = 0.6  # d over √(k J), by default
STEPS = 4.0  # of the integrator in √(J / k)
OUTPUTS: Signals = {
    **ACTUATOR_OUTPUTS,
    DUTY: Signal((), "1", "part of the supply voltage on the motor, negative backwards"),
    "current": Signal((), "A", "current of the motor"),
    "electrical_power": Signal((), "W", "power that the servo takes; negative where it gives power back"),
    "copper_loss": Signal((), "W", "power that the winding turns into heat"),
}
MOST_SAMPLES = 1000  # of the command, kept for a delay


@params
class Params:
    torque_constant: float = param(unit="N*m/A", above=0.0, doc="k_t at the joint, also of the back-EMF")
    resistance: float = param(unit="ohm", above=0.0, doc="R, of the winding and the bridge")
    supply_voltage: float = param(unit="V", above=0.0, doc="of the bridge")
    kp: float = param(min=0.0, doc="position gain in the firmware's own unit")
    gain: float = param(default=1.0, min=0.0, doc="duty per rad of error at kp 1")
    armature: float = param(unit="kg*m^2", default=0.0, min=0.0, doc="inertia of rotor and gears at the joint")
    play: float = param(unit="rad", default=0.0, min=0.0, doc="b, of the gears: how far the joint moves freely in all")
    gear_stiffness: float | None = param(
        unit="N*m/rad", above=0.0, default=None, doc="k, of the gears at the joint; by default they are rigid"
    )
    gear_damping: float | None = param(
        unit="N*m*s/rad", min=0.0, default=None, doc="d, of flanks that touch; by default 0.6 √(k J)"
    )
    max_duty: float = param(default=1.0, above=0.0, max=1.0, doc="greatest duty in both directions")
    max_speed: float = param(unit="rad/s", default=math.inf, above=0.0, doc="of the profile that follows the command")
    period: float = param(unit="s", default=1e-3, above=0.0, constant=True, doc="P, between samples of the command")
    loop: Literal["continuous", "sampled"] = param(
        default="continuous", doc="sampled: the position is read, and the duty renewed, with the command"
    )
    resolution: float = param(
        unit="rad", default=0.0, min=0.0, constant=True, doc="step of the position that a sampled loop reads"
    )
    delay: float = param(unit="s", default=0.0, min=0.0, doc="D, from the command to the goal")
    longest_delay: float | None = param(
        unit="s", default=None, min=0.0, constant=True, doc="greatest delay that a run may have; by default the delay"
    )

    def __post_init__(self) -> None:
        if self.resolution > 0.0 and self.loop == "continuous":
            raise ValueError(
                "a continuous loop reads positions without steps; use loop: sampled or take resolution out"
            )
        if self.gear_stiffness is None and (self.play > 0.0 or self.gear_damping is not None):
            raise ValueError("gears with play or damping are elastic; give gear_stiffness")
        if self.gear_stiffness is not None and self.armature == 0.0:
            raise ValueError("behind elastic gears the rotor moves on its own; give its inertia, armature")
        if self.longest_delay is not None and self.delay > self.longest_delay:
            what = f"the delay is {self.delay:g} s, above the longest_delay of {self.longest_delay:g} s"
            raise ValueError(f"{what}; raise that")
        if self.kept > MOST_SAMPLES:
            what = f"a delay of {self._longest:g} s has {self.kept} samples of the command, more than {MOST_SAMPLES}"
            raise ValueError(f"{what}; give a longer period")

    @property
    def _longest(self) -> float:
        return self.delay if self.longest_delay is None else self.longest_delay

    @property
    def kept(self) -> int:
        """How many commands before the present one are kept."""
        return math.ceil(self._longest / self.period - 1e-9)


class PositionServo:
    """A servo that follows the position of the command of its joint."""

    inputs, outputs = ACTUATOR_INPUTS, OUTPUTS
    mode = "position"
    moves = "rad"
    for_other_joints = "use a drive whose 'gears' end with a ball_screw, rack or belt"

    def __init__(self, params: Params) -> None:
        self.params = params
        self.elastic, self.period = params.gear_stiffness is not None, params.period
        self.reflected_inertia = 0.0 if self.elastic else params.armature
        self.positions = (TWIST,) if self.elastic else ()
        stiff = params.gear_stiffness if self.elastic and not ops.is_symbolic(params.armature) else None
        self.longest_step = math.inf if stiff is None else math.sqrt(params.armature / stiff) / STEPS
        self._commands = [f"command_{k + 1}" for k in range(params.kept)]  # before the present one

    def initial(self, position: Numeric, velocity: Numeric) -> State:
        """It holds the position of the joint."""
        held = dict.fromkeys([GOAL, *self._commands], ops.array(position))
        gears = {TWIST: np.zeros(()), ROTOR_SPEED: ops.array(velocity)} if self.elastic else {}
        return held | {ON: np.ones(())} | ({DUTY: np.zeros(())} if self.params.loop == "sampled" else {}) | gears

    def flow(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        v = x[ROTOR_SPEED] if self.elastic else u["velocity"]  # of the rotor
        duty = x[DUTY] if p.loop == "sampled" else x[ON] * _duty(p, x[GOAL], u["position"])
        voltage = duty * p.supply_voltage
        current = x[ON] * (voltage - p.torque_constant * v) / p.resistance
        effort, power, loss = p.torque_constant * current, voltage * current, p.resistance * current * current
        rates: State = {name: np.zeros(()) for name in x}
        recorded = {DUTY: duty, "current": current, "electrical_power": power, "copper_loss": loss}
        stored: Numeric = 0.0
        if self.elastic:
            torque, of_gears = _gear_torque(p, x[TWIST], v - u["velocity"])
            rates |= {TWIST: v - u["velocity"], ROTOR_SPEED: (effort - torque) / p.armature}
            effort, stored = torque, 0.5 * p.armature * v * v + of_gears.stored
            loss = loss + of_gears.loss
        return rates, {"effort": effort, "power": power, "loss": loss, "stored": stored} | recorded

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> State:
        """Switched off, it goes along with the joint, to hold it where it is switched on again."""
        q, on = u["position"], u["enabled"] > 0.5
        commands = [u["setpoint_position"], *(x[name] for name in self._commands)]
        goal = _delayed(commands, p.delay / p.period)
        if not ops.is_infinite(p.max_speed):
            way = p.max_speed * p.period
            goal = ops.clip(goal, x[GOAL] - way, x[GOAL] + way)
        goal = ops.where(on, goal, q)
        state = {GOAL: goal, ON: ops.where(on, 1.0, 0.0)} | dict(zip(self._commands, commands, strict=False))
        if p.loop == "sampled":
            read = ops.quantised(q, p.resolution) if p.resolution else q
            state[DUTY] = ops.where(on, _duty(p, goal, read), 0.0)
        return state


class GearEnergy(NamedTuple):
    """stored [J] and loss [W]."""

    stored: Numeric
    loss: Numeric


def _gear_torque(p: Params, twist: Numeric, rate: Numeric) -> tuple[Numeric, GearEnergy]:
    """Of flanks that push and do not pull."""
    assert p.gear_stiffness is not None
    damping = DAMPED * ops.sqrt(p.gear_stiffness * p.armature) if p.gear_damping is None else p.gear_damping
    pressed = twist - ops.clip(twist, -0.5 * p.play, 0.5 * p.play)
    elastic = p.gear_stiffness * pressed
    both = elastic + damping * rate
    torque = ops.where(pressed > 0.0, ops.maximum(both, 0.0), ops.where(pressed < 0.0, ops.minimum(both, 0.0), 0.0))
    return torque, GearEnergy(0.5 * elastic * pressed, (torque - elastic) * rate)


def _duty(p: Params, goal: Numeric, position: Numeric) -> Numeric:
    return ops.clip(p.gain * p.kp * (goal - position), -p.max_duty, p.max_duty)


def _delayed(commands: list[Numeric], samples: Numeric) -> Numeric:
    """The commands, the newest one first, so many samples ago, linear between two."""
    weights = [ops.maximum(1.0 - ops.abs(samples - float(k)), 0.0) for k in range(len(commands))]
    return ops.sum(
        weight * command for weight, command in zip(weights, commands, strict=True) if not ops.is_zero(weight)
    )


def load(params: Params) -> PositionServo:
    """Raises TypeError for a delay that may change where commands are kept for the rig's alone."""
    if ops.is_symbolic(params.delay) and params.longest_delay is None:
        raise TypeError("commands are kept for the delay of the rig alone; give longest_delay")
    return PositionServo(params)
