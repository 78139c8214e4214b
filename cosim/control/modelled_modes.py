"""A controller that knows the modes of elastic links from a simulation along its reference, because no encoder measures
them.

From call to call, a period, the modes move with the controlled joints on their reference, prescribed ones on their
motion, and all others as measured, by the step of `implicit_step`; its matrices are constant, from the modes at the
start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cosim.control.control_loop import DeclaredInputs
from cosim.control.controller_result import accepted
from cosim.control.elastic_modes import elastic_modes, implicit_step
from cosim.core import ops
from cosim.core.layout import Layout
from cosim.core.types import ALL, Controller, ControllerContext, Numeric, Signals, State, joint_signals, signals_of

FOLLOWED = ("reference_position", "reference_velocity", "reference_acceleration")


class ModelledModes:
    """The block `controller` with the modes of the model in place of measured ones."""

    def __init__(self, controller: Controller, context: ControllerContext) -> None:
        modes = context.numeric_model.elastic_dofs
        self._controller, self._modes, self._context = controller, modes, context
        # without a reference of its positions the joints of a controller move as measured, by their efforts
        self._index = context.index if FOLLOWED[0] in controller.inputs else context.index[:0]
        self.params, self.outputs = controller.params, controller.outputs
        self.inputs: Signals = {**controller.inputs, **joint_signals(ALL, context.model.nv)}
        if len(self._index):
            self.inputs = {**self.inputs, **joint_signals(FOLLOWED, len(self._index))}
        self.signals = signals_of(controller)
        self._layout = Layout(controller.initial())
        start = elastic_modes(context.numeric_model, context.start)
        held = [*modes, *context.index, *np.flatnonzero(context.prescribed)]
        mass = start.own_mass(np.setdiff1d(np.arange(context.model.nv), held))
        self._start = start.position
        self._gain, self._kept = implicit_step(mass, start.damping, start.stiffness, context.period)

    def initial(self) -> State:
        """The modes where they hold the links at the start; whether it was called before, and the motion of the joints
        that it was called with."""
        rest = np.zeros(len(self._index))
        modes = {"position": self._start, "velocity": np.zeros(len(self._modes)), "called": np.zeros(1)}
        return {"controller": self._controller.initial(), "modes": modes | dict.fromkeys(FOLLOWED, rest)}

    def update(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        """Raises WrongResult if the controller returns anything but its next state, its command and its signals."""
        modes, known = self._now(t, x["modes"], u), dict(u)
        for name in ("position", "velocity"):
            known[f"all_{name}"] = ops.set_at(u[f"all_{name}"], self._modes, modes[name])
        own = DeclaredInputs({name: known[name] for name in self._controller.inputs})
        result = self._controller.update(t, p, x["controller"], own)
        state, outputs = accepted(result, self._controller, self._layout, len(self._context.joints))
        followed = (
            {name: u[name] for name in FOLLOWED} if len(self._index) else {name: x["modes"][name] for name in FOLLOWED}
        )
        return {"controller": state, "modes": modes | followed | {"called": np.ones(1)}}, outputs

    def _now(self, t: Numeric, x: State, u: Mapping[str, Numeric]) -> dict[str, Numeric]:
        """Position and velocity of the modes, a period after x."""
        equations, period, half = self._context.model.equations, self._context.period, 0.5 * self._context.period
        locked = u["all_locked"] > 0.5
        chart, v, a = u["all_position"], u["all_velocity"], u["all_acceleration"]
        if len(self._index):  # in the middle of the period
            position, velocity, acceleration = (0.5 * (x[name] + u[name]) for name in FOLLOWED)
            chart = ops.set_at(chart, self._index, position)
            v = ops.set_at(v, self._index, velocity)
            a = ops.set_at(a, self._index, acceleration)
        chart = ops.where(locked, u["all_position"], chart)
        v, a = ops.where(locked, 0.0, v), ops.where(locked, 0.0, a)
        chart = ops.set_at(chart, self._modes, x["position"] + half * x["velocity"])
        v = ops.set_at(v, self._modes, x["velocity"])
        known = self._context.prescribed.copy()
        known[self._index] = True
        q = equations.coordinates(chart)
        applied = u["all_effort"] - equations.friction_effort(v) - equations.spring_effort(q)
        found, _ = equations.hybrid_dynamics(q, v, a, applied, ops.logical_or(known, locked), t)
        change = ops.where(x["called"][0] > 0.5, self._gain @ found[self._modes], 0.0)
        return {
            "position": x["position"] + period * (x["velocity"] + half * change),
            "velocity": self._kept @ (x["velocity"] + period * change),
        }
