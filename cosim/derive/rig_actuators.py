"""The actuators of a rig that is read and not built."""

from __future__ import annotations

from cosim.errors import InputErrors
from cosim.rig.reading.contracts import load_actuator
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.rig_spec import RigSpec
from cosim.types import Actuator


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
