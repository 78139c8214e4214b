"""Passes the reference to the drive, for the selected command interface.

`position`: kp and kd about the reference position and velocity; `velocity`: kd about the reference velocity;
`effort`: the reference effort alone. The reference effort is added for every interface.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from cosim.core import ops
from cosim.core.errors import InputError
from cosim.core.types import COMMAND, ControllerContext, Numeric, PerJoint, State, joint_signals, param, params

# interface -> the gains of its loop; the first must not be zero
GAINS: dict[str, tuple[str, ...]] = {"position": ("kp", "kd"), "velocity": ("kd",), "effort": ()}
# interface -> the parts of the reference that it uses
USED: dict[str, tuple[str, ...]] = {
    "position": ("reference_position", "reference_velocity", "reference_effort"),
    "velocity": ("reference_velocity", "reference_effort"),
    "effort": ("reference_effort",),
}


@params
class Params:
    interface: Literal["position", "velocity", "effort"] = param(default="position", doc="command interface")
    kp: PerJoint = param(unit="joint stiffness", min=0, default=0.0, doc="effort per position error")
    kd: PerJoint = param(unit="joint damping", min=0, default=0.0, doc="effort per velocity error")


class Passthrough:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        self._n = len(context.joints)
        self.params = params
        self.inputs = joint_signals(USED[params.interface], self._n)
        self.outputs = joint_signals(COMMAND, self._n)

    def initial(self) -> State:
        return {}

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        used, zero = GAINS[p.interface], ops.zeros(self._n)
        return {}, {
            "position": u.get("reference_position", zero),
            "velocity": u.get("reference_velocity", zero),
            "effort": u["reference_effort"],
            "kp": ops.array(p.kp) if "kp" in used else zero,
            "kd": ops.array(p.kd) if "kd" in used else zero,
        }


def load(params: Params, context: ControllerContext) -> Passthrough:
    """Raises InputError if the main gain of the interface is zero: the joint would have no closed loop."""
    for gain in GAINS[params.interface][:1]:
        without_gain = [name for name, value in zip(context.joints, getattr(params, gain), strict=True) if value == 0]
        if without_gain:
            what = f"interface '{params.interface}' needs {gain} above 0 for joint '{without_gain[0]}'; set {gain}"
            raise InputError(what)
    return Passthrough(params, context)
