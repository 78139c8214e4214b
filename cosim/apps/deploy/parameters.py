"""The parameters of the controllers of a rig, as other programs set them: single numbers at places of the memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cosim.core.units import JOINT_DIMENSIONS
from cosim.rig.parameters import joints_of, labels_of, tunables_of, unit_of
from cosim.rig.wiring.wired_rig import WiredRig


class DeployedParameter(NamedTuple):
    """place: in the memory; least, greatest: inclusive bounds."""

    name: str
    unit: str
    place: int
    value: float
    least: float
    greatest: float
    about: str


def parameters_of(rig: WiredRig) -> Iterator[DeployedParameter]:
    """`arm.kp`, of one with a list `arm.kp/<joint>`, or `arm.kp/<index>` where its elements are not of joints."""
    model = rig.tick_model
    first = model.layout.place("parameters").where.start
    units = dict(zip(rig.joints, rig.plant.model.dof_units, strict=True))
    for name, item in tunables_of(rig).items():
        declared, joints = item.loop.tunables.leaves[item.field].declared, joints_of(rig, name)
        names = [f"{name}/{label}" for label in labels_of(rig, name)] or [name]
        for k, place in enumerate(range(item.where.start, item.where.stop)):
            unit = unit_of(rig, name)
            if joints and (dimensions := JOINT_DIMENSIONS.get(declared.get("unit", "1"))):
                unit = dimensions[units[joints[k]] == "m"]
            yield DeployedParameter(
                names[k],
                unit,
                first + place,
                float(model.parameters[place]),
                *bounds_of(declared),
                declared.get("doc") or "",
            )


def bounds_of(declared: Mapping[str, Any]) -> tuple[float, float]:
    """Inclusive bounds of what a parameter declares; an exclusive one begins with the next number."""
    least, above, greatest = (declared.get(key) for key in ("min", "above", "max"))
    lowest = -math.inf if least is None else float(least)
    if above is not None:
        lowest = max(lowest, math.nextafter(float(above), math.inf))
    return lowest, math.inf if greatest is None else float(greatest)
