"""A servo in position mode with a DC motor and gears, such as those of Dynamixel and Feetech: a proportional loop in
its firmware sets the duty of its bridge.

    duty = clip(gain · kp · (goal − q), ±max_duty),   U = duty · supply_voltage
    i = (U − k_t q̇) / R,                              effort = k_t i

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
from typing import Literal

import numpy as np

from cosim.core import ops
from cosim.core.types import ACTUATOR_INPUTS, ACTUATOR_OUTPUTS, Numeric, Signal, Signals, State, param, params

GOAL, ON, DUTY = "goal", "on", "duty"  # states
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
    positions = ()
    mode = "position"
    moves = "rad"
    for_other_joints = "use a drive whose 'gears' end with a ball_screw, rack or belt"

    def __init__(self, params: Params) -> None:
        self.params = params
        self.reflected_inertia, self.period = params.armature, params.period
        self._commands = [f"command_{k + 1}" for k in range(params.kept)]  # before the present one

    def initial(self, position: Numeric, velocity: Numeric) -> State:
        """It holds the position of the joint."""
        held = dict.fromkeys([GOAL, *self._commands], ops.array(position))
        return held | {ON: np.ones(())} | ({DUTY: np.zeros(())} if self.params.loop == "sampled" else {})

    def flow(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        v = u["velocity"]
        duty = x[DUTY] if p.loop == "sampled" else x[ON] * _duty(p, x[GOAL], u["position"])
        voltage = duty * p.supply_voltage
        current = x[ON] * (voltage - p.torque_constant * v) / p.resistance
        effort, power, loss = p.torque_constant * current, voltage * current, p.resistance * current * current
        account = {"effort": effort, "power": power, "loss": loss, "stored": 0.0}
        recorded = {DUTY: duty, "current": current, "electrical_power": power, "copper_loss": loss}
        return {name: np.zeros(()) for name in x}, account | recorded

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
