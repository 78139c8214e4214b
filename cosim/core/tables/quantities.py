"""The quantities of joints in tables: their names in other programs, and their dimensions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cosim.core.units import JOINT_DIMENSIONS

TIME = "t"
# quantity -> its words, the one of this program first
WORDS: dict[str, tuple[str, ...]] = {
    "position": ("position", "positions", "pos", "q", "angle", "pose", "jpos", "theta"),
    "velocity": ("velocity", "velocities", "vel", "qd", "dq", "qdot", "speed", "jvel", "omega", "dtheta"),
    "acceleration": ("acceleration", "accelerations", "acc", "accel", "qdd", "ddq"),
    "effort": ("effort", "efforts", "torque", "tau", "force", "eff", "moment"),
    "measured_effort": ("measured_effort", "effort", "efforts", "torque", "tau", "force", "eff"),
    "current": ("current", "currents", "cur", "i"),
}
_OF_SIGNAL = re.compile(r"^(measured|command|reference)_")


def is_quantity(name: str) -> bool:
    return _OF_SIGNAL.sub("", name) in WORDS


def names_a_quantity(key: str, joints: Sequence[str]) -> bool:
    """Whether a key of a user is `<joint>/<quantity>`."""
    joint, _, quantity = key.rpartition("/")
    return joint in joints and is_quantity(quantity)


def dimensions_of(quantity: str, dof_unit: str | None) -> tuple[str, ...]:
    """Of a quantity, empty where any is right."""
    if quantity == "current":
        return ("A",)
    both = JOINT_DIMENSIONS.get(f"joint {quantity.removeprefix('measured_')}", ())
    return both if dof_unit is None or not both else (both[dof_unit == "m"],)
