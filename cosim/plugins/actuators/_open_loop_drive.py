"""A drive whose motor follows a field that turns without feedback: a step motor, or an induction machine at V/f."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from cosim.core import ops
from cosim.core.layout import zeros_like
from cosim.core.types import Numeric, Parameters, Signal, Signals, State
from cosim.mechanics.bondgraph.components._current_control import limited
from cosim.mechanics.bondgraph.components._open_loop import OpenLoop
from cosim.mechanics.bondgraph.graph import BondGraph
from cosim.plugins.actuators._graph_actuator import GraphActuator

ROTOR_ANGLE = "motor.rotor.displacement"  # a state, where the motor's torque depends on it
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


class OpenLoopDrive(GraphActuator):
    """A drive of an assembled bond graph and the reference of its field. See `SampledActuator` in `cosim.core.types`.

    Its state are the states of the graph, the `reference` angle [rad] at the motor, which runs with the held
    `field_speed` [rad/s], and where it moves in steps the held `field_angle`. While it is off, `on` is 0 and the
    reference stands."""

    def __init__(
        self,
        params: Parameters,
        graph: BondGraph,
        outputs: Mapping[str, str],
        loop: OpenLoop,
        ratio: float,
        step: float | None,
        moving: Mapping[str, Numeric],
    ) -> None:
        """graph, outputs, moving: as of `GraphActuator`; ratio: turns of the motor per turn of the joint; step: of the
        field, at the motor [rad]; None: it turns continuously. Raises GraphError as that does."""
        super().__init__(params, graph, outputs, moving)
        self.loop, self.ratio, self.step = loop, ratio, step
        self.period, self.mode = 1.0 / loop.rate, loop.mode
        self.outputs: Signals = {**self.outputs, **FIELD_SIGNALS, **({} if step is None else STEP_SIGNALS)}

    def samples_per_turn(self, velocity: float) -> float:
        """Samples of a field that moves in steps per electrical turn, 4 full steps, at a velocity of the joint; ∞ of a
        field that turns continuously."""
        if self.step is None or self.loop.steps is None or not velocity:
            return math.inf
        turn = FULL_STEPS * self.loop.steps.microsteps * self.step
        return turn / (min(abs(velocity), self.loop.limit) * abs(self.ratio) * self.period)

    def initial(self, position: Numeric, velocity: Numeric) -> State:
        """Its steps count from the angle of the rotor at the start."""
        angle = ops.array(self.ratio * position)
        state = super().initial(position, velocity)
        if ROTOR_ANGLE in state:
            state[ROTOR_ANGLE] = angle
        stepping = {} if self.step is None else {"field_angle": ops.array(self._stepped(angle))}
        return state | {"reference": angle, "field_speed": np.zeros(()), "on": np.ones(())} | stepping

    def flow(self, t: Numeric, p: Parameters, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        inputs = self._with_field(x, u)
        dx, y = super().flow(t, p, x, inputs)
        field = {"field_position": inputs["field_angle"], "field_velocity": x["field_speed"]}
        rates = zeros_like(x) | dx | {"reference": x["field_speed"]}
        return rates, y | {name: value / self.ratio for name, value in field.items()} | self._steps(x)

    def _steps(self, x: State) -> dict[str, Numeric]:
        """STEP_SIGNALS: beyond half an electrical turn the field draws the rotor into the next one."""
        if self.step is None or self.loop.steps is None:
            return {}
        turn = FULL_STEPS * self.loop.steps.microsteps * self.step
        lost = FULL_STEPS * ops.quantised((x["field_angle"] - x[ROTOR_ANGLE]) / turn, 1.0)
        return {"lost_steps": lost, "out_of_step": ops.minimum(ops.abs(lost), 1.0)}

    def by_acceleration(self, t: Numeric, p: Parameters, x: State, u: Mapping[str, Numeric]) -> tuple[Numeric, Numeric]:
        return super().by_acceleration(t, p, x, self._with_field(x, u))

    def _with_field(self, x: State, u: Mapping[str, Numeric]) -> dict[str, Numeric]:
        angle = x["reference"] if self.step is None else x["field_angle"]
        return {**u, "field_angle": angle, "field_speed": x["field_speed"], "on": x["on"]}

    def update(self, t: Numeric, p: Parameters, x: State, u: Mapping[str, Numeric]) -> State:
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
