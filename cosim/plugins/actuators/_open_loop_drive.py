"""A drive whose motor follows a field that turns without feedback: a step motor, or an induction machine at V/f."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric, Signal, Signals, State
from cosim.mechanics.bondgraph.components._current_control import limited
from cosim.mechanics.bondgraph.components._open_loop import FIELD, OpenLoop

ROTOR_ANGLE = "motor.rotor.displacement"  # a state of the graph, where the motor's torque depends on it
FULL_STEPS = 4  # of an electrical turn
FIELD_SIGNALS: Signals = {
    "field_position": Signal((), "joint position", "where the field of the motor stands", "command", "position"),
    "field_velocity": Signal((), "joint velocity", "velocity of the field of the motor", "command", "velocity"),
}
# of a field that moves in steps: an electrical turn has 4 of them, and a rotor that slips loses whole electrical turns
STEP_SIGNALS: Signals = {
    "lost_steps": Signal((), "1", "full steps by which the rotor is behind the field, in whole electrical turns"),
    "out_of_step": Signal((), "1", "1 where the rotor has lost steps, else 0"),
}


class FieldReference:
    """The reference of the field of a motor, a `DriveSampler`.

    Its states are the `reference` angle [rad] at the motor, which runs with the held `field_speed` [rad/s], and where
    it moves in steps the held `field_angle`. While it is off, `on` is 0 and the reference stands."""

    reads_signals: bool = False
    braking_effort: float | None = None

    def __init__(self, loop: OpenLoop, ratio: float, step: float | None) -> None:
        """ratio: turns of the motor per turn of the joint; step: of the field, at the motor [rad]; None: it turns
        continuously."""
        self.loop, self.ratio, self.step = loop, ratio, step
        self.period, self.mode = 1.0 / loop.rate, loop.mode
        # of an electrical turn in steps, at the motor [rad]
        self.turn = None if step is None or loop.steps is None else FULL_STEPS * loop.steps.microsteps * step
        self.signals: Signals = {**FIELD_SIGNALS, **({} if self.turn is None else STEP_SIGNALS)}

    def samples_per_turn(self, velocity: float) -> float:
        """Samples of a field that moves in steps per electrical turn at a velocity of the joint; ∞ of a field
        that is continuous."""
        if self.turn is None or not velocity:
            return math.inf
        return self.turn / (min(abs(velocity), self.loop.limit) * abs(self.ratio) * self.period)

    def initial(self, position: Numeric, velocity: Numeric) -> State:
        """Its steps count from the angle of the rotor at the start."""
        angle = ops.array(self.ratio * position)
        stepping = {} if self.step is None else {"field_angle": ops.array(self._stepped(angle))}
        state = {ROTOR_ANGLE: angle, "reference": angle, "field_speed": np.zeros(()), "on": np.ones(())}
        return state | stepping

    def inputs(self, x: State) -> dict[str, Numeric]:
        angle = x["reference"] if self.step is None else x["field_angle"]
        return dict(zip(FIELD, (angle, x["field_speed"], x["on"]), strict=True))

    def rates(self, x: State, y: Mapping[str, Numeric]) -> State:
        return {"reference": x["field_speed"]}

    def recorded(self, x: State, graph: State) -> dict[str, Numeric]:
        angle, speed, _ = self.inputs(x).values()
        field = {name: value / self.ratio for name, value in zip(FIELD_SIGNALS, (angle, speed), strict=True)}
        if self.turn is None:
            return field
        # beyond half an electrical turn the field draws the rotor into the next one
        lost = FULL_STEPS * ops.quantised((x["field_angle"] - graph[ROTOR_ANGLE]) / self.turn, 1.0)
        return field | {"lost_steps": lost, "out_of_step": ops.minimum(ops.abs(lost), 1.0)}

    def sampled(self, x: State, graph: State, u: Mapping[str, Numeric], y: Mapping[str, Numeric]) -> State:
        velocity = u["setpoint_velocity"]
        if self.mode == "position":
            velocity = velocity + self.loop.gain * (u["setpoint_position"] - x["reference"] / self.ratio)
        on = ops.where(u["enabled"] > 0.5, 1.0, 0.0)
        state: State = {"field_speed": on * self.ratio * limited(velocity, self.loop.limit), "on": on}
        return state if self.step is None else state | {"field_angle": self._stepped(x["reference"])}

    def _stepped(self, reference: Numeric) -> Numeric:
        """The nearest whole step [rad]."""
        assert self.step is not None
        return ops.quantised(reference, self.step)
