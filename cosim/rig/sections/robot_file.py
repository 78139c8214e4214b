"""What a rig takes of its robot file beside the mechanism, where the rig itself gives nothing: gravity, the state in
which it begins, and actuators where it names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cosim.core.errors import did_you_mean, listed, plural
from cosim.mechanics.multibody.description.robot_file import FileActuator, NamedState, RobotFile
from cosim.mechanics.multibody.mechanism import GRAVITY
from cosim.rig.reading.schema import Reading


def gravity_of(section: Mapping[str, Any], file: RobotFile | None) -> tuple[float, float, float]:
    """The gravity of a rig [m/s²]; section: `mechanism`, its keys that could be read."""
    given = section.get("gravity")
    if given is not None:
        return given
    return GRAVITY if file is None else file.gravity_or(None)


class Taken(NamedTuple):
    """What a rig takes of a robot file beside the mechanism: the state in which it starts, whether its actuators, and
    both in words."""

    start: NamedState | None
    drives: bool
    words: tuple[str, ...]


def taken_of(
    file: RobotFile, gravity: tuple[float, float, float], section: Mapping[str, Any], at: tuple, reading: Reading
) -> Taken:
    """gravity: of the rig; section: `mechanism`, at its place. Errors are recorded."""
    taken = []
    if section.get("gravity") is None and gravity != GRAVITY:
        taken.append(f"gravity {', '.join(f'{g:g}' for g in gravity)} m/s^2")
    start, name = file.start, section.get("keyframe")
    if name is not None:
        start = next((state for state in file.states if state.name == name), None)
        if start is None:
            known = [state.name for state in file.states]
            what = did_you_mean(name, known) if known else "; the robot file has none, take this out"
            reading.fail((*at, "keyframe"), f"there is no keyframe '{name}'{what}")
    if start is not None and start.positions:
        taken.append(f"the keyframe '{name}'" if name else f"the start of {joints_named(list(start.positions))}")
    drives = section.get("actuators") is not None
    if drives and not file.actuators:
        reading.fail((*at, "actuators"), "the robot file has no actuators; take this out")
    if drives:
        taken += [f"{actuator.name} ({actuator.type}) on {joints_named([*actuator.joints])}" for actuator in able(file)]
    return Taken(start, drives, tuple(taken))


def able(file: RobotFile) -> list[FileActuator]:
    """The actuators that a rig can have."""
    return [actuator for actuator in file.actuators if actuator.type]


def joints_named(names: list[str]) -> str:
    return f"{plural(len(names), 'joint')} {listed([repr(name) for name in names])}"
