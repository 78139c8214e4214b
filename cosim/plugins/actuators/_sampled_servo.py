"""The sampled loops of a servo drive: position control over velocity control over current control.

setpoints ─▶ position loop ─▶ velocity loop ─▶ current loop ─▶ held voltages ─▶ motor ─▶ gears ─▶ joint
                                                                                 └─▶ encoder
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from cosim.core import ops
from cosim.core.servo import brake, cascade, encoder
from cosim.core.servo.brake import HoldingBrake
from cosim.core.servo.cascade import DriveLimits, Measured, ServoLoops, Setpoints
from cosim.core.types import BRAKE, LoopCut, Numeric, Signal, Signals, State
from cosim.mechanics.bondgraph.components._current_control import (
    CurrentControl,
    PhaseLimits,
    SampledCurrentLoop,
    recorded_limit,
)

MOTOR = "motor."  # begins the names of what is in the motor
MOTOR_SPEED = "motor_speed"  # recorded
# what the loops hold and what the encoder of the motor measures, at the joint
SETPOINTS: Signals = {
    "velocity_setpoint": Signal((), "joint velocity", "what the velocity loop follows", "command", "velocity"),
    "effort_setpoint": Signal((), "joint effort", "what the current loop follows", "command", "effort"),
}
MEASURED: Signals = {
    "measured_position": Signal((), "joint position", "position by the encoder of the motor", "measured", "position"),
    "measured_velocity": Signal((), "joint velocity", "velocity by the encoder of the motor", "measured", "velocity"),
    "referenced": Signal((), "1", "1 once the encoder knows its turn, else 0"),
}
OF_A_BRAKE: Signals = {BRAKE: Signal((), "1", "1 where the holding brake is closed, 0 where it is open")}


def _is_first(number: Numeric, count: int) -> Numeric:
    """Whether a sample is the first of so many."""
    return ops.remainder(number, float(count)) < 0.5 if count > 1 else True


class SampledServo:
    """The loops of a drive at their times, a `DriveSampler`. Its states are what the loops hold, and the angle of the
    motor behind an elastic gear."""

    def __init__(
        self,
        loops: ServoLoops,
        current: SampledCurrentLoop | None,
        ratio: float,
        rigid: bool,
        largest_effort: Callable[[Numeric], Numeric],
        control: CurrentControl,
        holding_brake: HoldingBrake | None,
    ) -> None:
        """current: None for a continuous loop, whose request is held; ratio: turns of the motor per turn of the joint;
        rigid: whether these are fixed; largest_effort: on the joint by an amplitude of the current [A]."""
        self.loops, self.current, self.ratio, self.rigid = loops, current, ratio, rigid
        self.period, self.mode = loops.period, loops.mode
        self.largest_effort, self.control = largest_effort, control
        self._every = {name: loops.every(name) for name in ("position", "velocity")}
        self.holding_brake = holding_brake
        self.braking_effort = holding_brake.effort if holding_brake else None
        self.signals: Signals = {
            **(OF_A_BRAKE if holding_brake else {}),
            **SETPOINTS,
            **(MEASURED if loops.encoder else {}),
        }
        self.reads_signals = not rigid or bool(control.varying_limits)

    @property
    def cuts(self) -> dict[str, LoopCut]:
        """Of the loops of position and velocity that are closed, and of the sampled current of each axis."""
        found = {
            "position": LoopCut(self._every["position"], "velocity_setpoint", "setpoint_position"),
            "velocity": LoopCut(self._every["velocity"], "effort_setpoint", "request"),
        }
        closed = {} if self.mode == "effort" else {name: found[name] for name in self.loops.loops if name in found}
        current = self.current
        axes = current.windings.axes if current else ()
        return closed | {f"current{axis}": LoopCut(1, f"{current.newest}{axis}") for axis in axes if current}

    # --- state ---

    def initial(self, position: Numeric, velocity: Numeric) -> State:
        """Before the first sample."""
        angle, p = self.ratio * position, self.loops.encoder
        state: State = {} if self.rigid else {"angle": ops.array(angle)}
        state |= {"sample": np.zeros(()), **cascade.initial()}
        state |= self.current.initial() if self.current else {}
        state |= brake.initial() if self.holding_brake else {}
        of_encoder = encoder.initial(p, angle, self.ratio * velocity) if p else {}
        return state | {f"encoder_{name}": value for name, value in of_encoder.items()}

    # --- between samples ---

    def inputs(self, x: State) -> dict[str, Numeric]:
        axes = self.current.windings.axes if self.current else ()
        return {f"voltage{axis}": x[f"voltage{axis}"] for axis in axes} | {"request": x["effort_setpoint"]}

    def rates(self, x: State, y: Mapping[str, Numeric]) -> State:
        return {} if self.rigid else {"angle": y[MOTOR_SPEED]}

    def recorded(self, x: State, graph: State) -> dict[str, Numeric]:
        held = {name: x[name] for name in (*SETPOINTS, BRAKE) if name in x}
        if self.loops.encoder is not None:
            held |= dict(zip(MEASURED, self._measured(x, self._encoder(x)), strict=True))
        return held

    # --- at samples ---

    def sampled(self, x: State, graph: State, u: Mapping[str, Numeric], y: Mapping[str, Numeric]) -> State:
        """At a sample every loop that is due runs, slow ones first: each follows the output of the one before."""
        every, number = self._every, x["sample"]
        due = {name: _is_first(number, count) for name, count in every.items()}
        last = max(every.values())
        state: State = {"sample": ops.where(number > last - 1.5, 0.0, number + 1.0)}
        angle, speed = self._shaft(x, u, y)
        of_phase = self._limits(y)
        velocity_limit = self.loops.velocity.limit if self.loops.velocity else math.inf
        limits = DriveLimits(velocity_limit, self.largest_effort(of_phase.current))
        if self.loops.encoder is None:
            measured = Measured(angle / self.ratio, speed / self.ratio, 1.0)
        else:
            seen = self._sampled_encoder(x, angle, due["velocity"])
            state |= {f"encoder_{name}": value for name, value in seen.items()}
            measured = self._measured(x, seen)
            speed = seen["speed"]
        wanted = Setpoints(u["setpoint_position"], u["setpoint_velocity"], u["request"])
        of_motion = {name: x[name] for name in cascade.initial()}
        renewed = due["position"], due["velocity"]
        following = cascade.followed(self.loops, self.loops.mode, of_motion, wanted, measured, limits, renewed)
        state |= {name: ops.where(u["enabled"] > 0.5, value, 0.0) for name, value in following.items()}
        if self.holding_brake is not None:
            state |= brake.sampled(self.holding_brake, x, u["enabled"], self.period)
        if self.current is not None:
            motor = {name.removeprefix(MOTOR): value for name, value in graph.items() if name.startswith(MOTOR)}
            torque = state["effort_setpoint"] / self.ratio
            state |= self.current.sampled(x, motor, torque, angle, speed, of_phase)
        return state

    def _shaft(self, x: State, u: Mapping[str, Numeric], y: Mapping[str, Numeric]) -> tuple[Numeric, Numeric]:
        """Angle [rad] and speed [rad/s] of the motor."""
        if self.rigid:
            return self.ratio * u["position"], self.ratio * u["velocity"]
        return x["angle"], y[MOTOR_SPEED]

    def _limits(self, y: Mapping[str, Numeric]) -> PhaseLimits:
        """What the drive can give."""
        constant = PhaseLimits(self.control.current_limit, self.control.voltage_limit, math.inf)
        return constant._replace(**{of: y[recorded_limit(of)] for of in self.control.varying_limits})

    def _sampled_encoder(self, x: State, angle: Numeric, due: Numeric) -> State:
        """The state of the encoder, which is sampled with the velocity loop."""
        before, p = self._encoder(x), self.loops.encoder
        assert p is not None
        after = encoder.sampled(p, before, angle, self._every["velocity"] * self.period)
        return {name: ops.where(due, after[name], value) for name, value in before.items()}

    def _encoder(self, x: State) -> State:
        names = (name for name in x if name.startswith("encoder_"))
        return {name.removeprefix("encoder_"): x[name] for name in names}

    def _measured(self, x: State, seen: State) -> Measured:
        p = self.loops.encoder
        assert p is not None
        return Measured(encoder.read(p, seen) / self.ratio, seen["speed"] / self.ratio, encoder.known(p, seen))
