"""A rig that is read and not built, and its actuators."""

from __future__ import annotations

from pathlib import Path

from cosim.core.errors import InputErrors
from cosim.core.types import Actuator
from cosim.rig.reading.contracts import load_actuator
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.rig_spec import RigSpec, read_rig
from cosim.rig.wiring.wired_rig import require_joints


def read_rig_with_joints(path: Path) -> RigSpec:
    """As `read_rig`. Raises InputError for a rig of parts only too."""
    spec = read_rig(path)
    require_joints(spec.joints, path, "cosim derive")
    return spec


def actuators_of(rig: RigSpec) -> dict[str, Actuator]:
    """By joint. Raises InputErrors for those that cannot be set up."""
    reading = Reading(rig.source.place, [], rig.path.parent)
    found = {
        name: load_actuator(joint.actuator, ("joints", name, "actuator"), reading)
        for name, joint in rig.joints.items()
        if joint.actuator is not None
    }
    if reading.errors:
        raise InputErrors(reading.errors)
    return {name: actuator for name, actuator in found.items() if actuator is not None}
