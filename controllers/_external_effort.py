"""The effort on the joints that neither the drives nor the model account for: what someone or something outside exerts;
and the law of an admittance, a mass on a spring with a damper that it moves.

The inverse dynamics of the measured motion, friction and springs included, minus the measured effort, filtered by a low
pass of first order. The acceleration is the change of the velocity over a period. This is the residual of the
generalised momentum (De Luca and Mattone 2003) in its sampled form; what the model lacks is part of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from cosim.core import ops
from cosim.core.errors import InputError
from cosim.core.types import ControllerContext, Numeric, Signals, State, joint_signals


class ExternalEffort:
    """A function of the inputs `inputs` of a controller, with a state."""

    def __init__(self, bandwidth: float, context: ControllerContext) -> None:
        """bandwidth: of the filter [Hz]. Raises InputError for closed loops and for a filter faster than the period."""
        if context.model.constraint_rows:
            raise InputError("the external effort is known only in mechanisms without closed loops")
        if bandwidth * context.period > 0.25:
            what = f"a bandwidth of {bandwidth:g} Hz is too high for a period of {context.period * 1e3:g} ms"
            raise InputError(f"{what}; use at most {0.25 / context.period:g} Hz")
        self._model, self._index, self._period = context.model, context.index, context.period
        self._kept = math.exp(-2.0 * math.pi * bandwidth * context.period)
        self.inputs: Signals = joint_signals(("all_position", "all_velocity", "all_effort"), context.model.nv)

    def initial(self) -> State:
        return {"velocity": np.zeros(self._model.nv), "filtered": np.zeros(len(self._index)), "called": np.zeros(1)}

    def __call__(self, t: Numeric, x: State, u: Mapping[str, Numeric]) -> tuple[State, Numeric]:
        """(next state, external effort (n,) on the controlled joints)."""
        equations, velocity = self._model.equations, u["all_velocity"]
        q, acceleration = equations.coordinates(u["all_position"]), (velocity - x["velocity"]) / self._period
        required = equations.inverse_dynamics(q, velocity, acceleration, t) + equations.friction_effort(velocity)
        missing = (required - u["all_effort"])[self._index]
        missing = ops.where(x["called"] > 0.5, missing, 0.0)  # the first call knows no acceleration
        filtered = self._kept * x["filtered"] + (1.0 - self._kept) * missing
        return {"velocity": velocity, "filtered": filtered, "called": np.ones(1)}, filtered


def next_rate(
    offset: Numeric, rate: Numeric, force: Numeric, mass: Numeric, damping: Numeric, stiffness: Numeric, h: float
) -> Numeric:
    """The velocity after a period h of a mass on a spring with a damper under a force, by the implicit Euler method,
    which is stable for all of them."""
    return (rate + h / mass * (force - stiffness * offset)) / (1.0 + h / mass * (damping + h * stiffness))
