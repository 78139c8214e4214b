"""A drive whose motor follows a field that turns without feedback: a step motor, or an induction machine at V/f."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric, Signal, Signals, State
from cosim.mechanics.bondgraph.components._current_control import limited
from cosim.mechanics.bondgraph.components._open_loop import FIELD, OpenLoop

ROTOR_ANGLE = "motor.rotor.displacement"  # a state of the graph, where the motor's torque depends on it
FIELD_SIGNALS: Signals = {
    "field_position": Signal((), "joint position", "where the field of the motor stands", "command", "position"),
    "field_velocity": Signal((), "joint velocity", "velocity of the field of the motor", "command", "velocity"),
}


class FieldReference:
    """The reference of the field of a motor, a `DriveSampler`.

    Its states are the `reference` angle [rad] at the motor, which runs with the held `field_speed` [rad/s], and where
    it moves in steps the held `field_angle`. While it is off, `on` is 0 and the reference stands."""

    signals: Signals = FIELD_SIGNALS
    reads_signals: bool = False
    braking_effort: float | None = None

    def __init__(self, loop: OpenLoop, ratio: float, step: float | None) -> None:
        """ratio: turns of the motor per turn of the joint; step: of the field, at the motor [rad]; None: it turns
        continuously."""
        self.loop, self.ratio, self.step = loop, ratio, step
        self.period, self.mode = 1.0 / loop.rate, loop.mode

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

    def recorded(self, x: State) -> dict[str, Numeric]:
        angle, speed, _ = self.inputs(x).values()
        return {name: value / self.ratio for name, value in zip(FIELD_SIGNALS, (angle, speed), strict=True)}

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
