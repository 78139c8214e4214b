"""A recording that is identified from, and what is known of it alone: `F.csv:load=2.8 kg@tool:zero=elbow -90 deg`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from cosim.apps.identification.equation_error import CURRENT
from cosim.apps.identification.loads import Load, load_of
from cosim.apps.identification.recorded_motion import RecordedMotion, late
from cosim.core.errors import InputError, did_you_mean, listed
from cosim.core.types import Array
from cosim.core.units import parse_quantity, quantity_unit
from cosim.rig.rig import Rig

LOAD, ZERO, OFFSET, DELAY, FORCE_DELAY = KEYS = ("load", "zero", "offset", "delay", "force_delay")
_KEY = re.compile(r":(\w+)=")
LONGEST_DELAY = 1.0  # s


@dataclass(frozen=True)
class MotionFile:
    """A recording, or a table. load: that the machine carried; zero: joint -> what is added to its positions; offset:
    joint -> error of the signal of its drive; both SI, or texts with a unit; delay [s]: from the signals of drives to
    their effect on the positions; force_delay [s]: by which the forces of contacts are late."""

    path: str | Path
    load: Load | None = None
    zero: Mapping[str, float | str] = field(default_factory=dict)
    offset: Mapping[str, float | str] = field(default_factory=dict)
    delay: float = 0.0
    force_delay: float = 0.0

    @staticmethod
    def of(given: str | Path | MotionFile) -> MotionFile:
        return given if isinstance(given, MotionFile) else MotionFile(given)

    def corrected(self, motion: RecordedMotion, dofs: Mapping[str, str]) -> RecordedMotion:
        """With zeros, without offsets and delays. dofs: of each joint the unit of its position. Raises InputError for
        joints that it does not have, and for units that do not fit."""
        joints = {joint: dofs[joint] for joint in motion.joints}
        zero = self._of_joints(self.zero, ZERO, "joint position", joints)
        offset = self._of_joints(self.offset, OFFSET, "A" if motion.source == CURRENT else "joint effort", joints)
        drive = late(motion.t, motion.drive - offset, self.delay)
        wrenches = late(motion.t, motion.wrenches, -self.force_delay) if motion.wrenches.size else motion.wrenches
        return replace(motion, position=motion.position + zero, drive=drive, wrenches=wrenches)

    def _of_joints(self, given: Mapping[str, float | str], key: str, quantity: str, joints: Mapping[str, str]) -> Array:
        """(n,) SI; joints: with the units of their positions."""
        place = f"{self.path}:{key}"
        for joint in given:
            if joint not in joints:
                raise InputError(f"there is no joint '{joint}' with a drive{did_you_mean(joint, joints)}", place)
        try:
            units = {joint: quantity_unit(quantity, joints[joint]) for joint in given}
            values = {joint: parse_quantity(str(value), units[joint], joint) for joint, value in given.items()}
        except ValueError as error:
            raise InputError(str(error), place) from None
        return np.array([values.get(joint, 0.0) for joint in joints])


def motion_file(text: str) -> MotionFile:
    """Of a path, and of what follows it. Raises InputError."""
    path, *rest = _KEY.split(text)
    given = dict(zip(rest[::2], rest[1::2], strict=True))
    if unknown := [key for key in given if key not in KEYS]:
        raise InputError(f"there is no '{unknown[0]}' of a recording; give {listed(KEYS)}", text)
    load = load_of(given[LOAD], text) if LOAD in given else None
    zero, offset = (_of_joints(given.get(key, ""), text) for key in (ZERO, OFFSET))
    delays = (_delay(given.get(key, "0"), text) for key in (DELAY, FORCE_DELAY))
    return MotionFile(path, load, zero, offset, *delays)


def _of_joints(text: str, where: str) -> dict[str, str]:
    """Of `elbow -90 deg, wrist 1 deg`."""
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        joint, separator, value = part.partition(" ")
        if not separator:
            raise InputError(f"'{part}' is no joint with a value; give them such as elbow 2 deg, wrist 1 deg", where)
        found[joint] = value
    return found


def _delay(text: str, where: str) -> float:
    try:
        seconds = parse_quantity(text, "s", "a delay")
    except ValueError as error:
        raise InputError(str(error), where) from None
    if not -LONGEST_DELAY <= seconds <= LONGEST_DELAY:
        raise InputError(f"a delay of {seconds:g} s is longer than {LONGEST_DELAY:g} s", where)
    return seconds


def of_joints(motion: RecordedMotion, rig: Rig, motors: Mapping[str, str]) -> RecordedMotion:
    """A motion whose columns of a joint are those of a coupled rotor: joint -> rotor.

    The rotor turns by θ = Σ c q of its joints, and its torque acts on each of them, c times. Raises InputError for
    names that do not exist, and for rotors that do not turn with their joint.
    """
    rotors = {rotor.name: rotor.turns for rotor in rig.plant.mechanism.rotors}
    place, joints = "--motor", motion.joints
    if motors and motion.source == CURRENT:
        raise InputError("needs efforts of motors; make them of the currents by --gain effort, as N*m/A", place)
    turned = np.eye(len(joints))
    for joint, name in motors.items():
        if name not in rotors:
            near = did_you_mean(name, rotors) if rotors else "; give it in mechanism.rotors"
            raise InputError(f"there is no rotor '{name}'{near}", place)
        turns = dict(rotors[name])
        if joint not in joints or not turns.get(joint):
            raise InputError(f"the rotor '{name}' does not turn with a recorded joint '{joint}'", place)
        if missing := [other for other in turns if other not in joints]:
            raise InputError(f"the rotor '{name}' turns with '{missing[0]}', which is not recorded", place)
        turned[joints.index(joint)] = [turns.get(other, 0.0) for other in joints]
    try:
        position = np.linalg.solve(turned, motion.position.T).T
    except np.linalg.LinAlgError:
        raise InputError("the joints do not follow from these rotors; give each joint another one", place) from None
    return replace(motion, position=position, drive=motion.drive @ turned)


def motors_of(words: Iterable[str]) -> dict[str, str]:
    """joint -> rotor, of `JOINT=ROTOR`. Raises InputError."""
    found = {}
    for word in words:
        joint, separator, rotor = word.partition("=")
        if not joint or not separator or not rotor:
            raise InputError(f"is '{word}'; give a joint and a rotor, such as joint_6=wrist_motor", "--motor")
        found[joint] = rotor
    return found
