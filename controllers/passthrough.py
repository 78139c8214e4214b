"""Hands the reference on to the drive, by the interface the drive is to follow.

`position`: kp and kd about the reference position and velocity; `velocity`: kd about the reference velocity;
`effort`: the reference effort alone. The reference effort is added whatever the interface.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from cosim import ops
from cosim.errors import InputError
from cosim.types import COMMAND, ControllerContext, PerJoint, State, joint_signals, param, params

# interface -> the gains that close its loop; the first of them must not be zero
GAINS: dict[str, tuple[str, ...]] = {"position": ("kp", "kd"), "velocity": ("kd",), "effort": ()}
# … and the parts of the reference that it looks at
USED: dict[str, tuple[str, ...]] = {
    "position": ("reference_position", "reference_velocity", "reference_effort"),
    "velocity": ("reference_velocity", "reference_effort"),
    "effort": ("reference_effort",),
}


@params
class Params:
    interface: Literal["position", "velocity", "effort"] = param(default="position", doc="followed by the drive")
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

    def update(self, t: Any, p: Params, x: State, u: Mapping[str, Any]) -> tuple[State, dict[str, Any]]:
        used, nothing = GAINS[p.interface], ops.zeros(self._n)
        return {}, {
            "position": u.get("reference_position", nothing),
            "velocity": u.get("reference_velocity", nothing),
            "effort": u["reference_effort"],
            "kp": ops.array(p.kp) if "kp" in used else nothing,
            "kd": ops.array(p.kd) if "kd" in used else nothing,
        }


def load(params: Params, context: ControllerContext) -> Passthrough:
    """Raises InputError when the gain that the interface lives on is zero: the joint would be left limp."""
    for gain in GAINS[params.interface][:1]:
        limp = [name for name, value in zip(context.joints, getattr(params, gain), strict=True) if value == 0]
        if limp:
            what = f"interface '{params.interface}' needs {gain} above 0 for joint '{limp[0]}'; set {gain}"
            raise InputError(what)
    return Passthrough(params, context)
