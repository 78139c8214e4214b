"""The mechanism of a rig or robot file as runs have it, with the rotors of drives and the friction of joints."""

from __future__ import annotations

from pathlib import Path

from cosim.apps.derive.graph_report import actuators_of, read_robot_file
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.robot_formats import SUFFIXES
from cosim.rig.sections.rig_spec import PlantSpec, RigSpec, read_rig_plant
from cosim.rig.wiring.plant import friction_laws, with_friction


def read_model(path: Path) -> Model:
    """The model of a robot file or a rig, with its gravity. Raises InputErrors for errors in the file."""
    if path.suffix.lower() not in SUFFIXES:
        return model_of(read_rig_plant(path))
    robot = read_robot_file(path)
    return Model(robot.mechanism, robot.gravity_or(None))


def model_of(rig: RigSpec | PlantSpec) -> Model:
    """Raises InputErrors for actuators that cannot be set up."""
    actuators, shared = actuators_of(rig)
    rotors = {name: actuator.reflected_inertia for name, actuator in actuators.items()}
    for drive in shared.values():
        rotors |= drive.rotor_inertias
    mechanism = with_friction(rig.mechanism.description, friction_laws(rig), rig.owners)
    return Model(mechanism, rig.mechanism.gravity, rotors)
