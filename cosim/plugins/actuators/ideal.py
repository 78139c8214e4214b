"""An ideal source of torque or force: the requested effort without delay or loss."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cosim.core import ops
from cosim.core.types import ACTUATOR_INPUTS, ACTUATOR_OUTPUTS, Numeric, State, param, params


@params
class Params:
    max_effort: float = param(unit="joint effort", min=0.0, default=math.inf, doc="saturation of the effort")
    rotor_inertia: float = param(unit="joint inertia", min=0.0, default=0.0, doc="of a rotor, at the joint")


class Ideal:
    inputs, outputs = ACTUATOR_INPUTS, ACTUATOR_OUTPUTS
    positions = ()

    def __init__(self, params: Params) -> None:
        self.params = params
        self.reflected_inertia = getattr(params, "rotor_inertia", 0.0)  # parameters of a plug-in may be others

    def initial(self, position: Numeric, velocity: Numeric) -> State:
        return {}

    def flow(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        effort = u["request"]
        if not ops.is_infinite(p.max_effort):
            effort = ops.clip(effort, -p.max_effort, p.max_effort)
        return {}, {"effort": effort, "power": effort * u["velocity"], "loss": 0.0, "stored": 0.0}


def load(params: Params) -> Ideal:
    return Ideal(params)
