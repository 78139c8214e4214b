"""What a robot file states: the mechanism, and what a rig takes over beside it, whatever the format."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cosim.core.errors import RunWarning, SourceLocation
from cosim.mechanics.multibody.description.collisions import CollisionShape
from cosim.mechanics.multibody.description.doubts import doubtful_gravity
from cosim.mechanics.multibody.mechanism import GRAVITY, NOWHERE, AppliedForce, Mechanism, Pose
from cosim.mechanics.multibody.spring_laws import constant_force


@dataclass(frozen=True)
class FileActuator:
    """An actuator of a robot file.

    joints: joint -> its effort per effort of the actuator, one or several; type, keys: the actuator of a rig that
    equals it, and its keys in SI, "" where none does and only the keys are known; lost: then why, as a sentence.
    """

    name: str
    joints: Mapping[str, float]
    type: str = ""
    keys: Mapping[str, float | str] = field(default_factory=dict)
    place: SourceLocation = NOWHERE
    lost: str = ""


@dataclass(frozen=True)
class NamedState:
    """A state of a robot file. positions, velocities: joint -> its coordinates and the velocities of its dofs, as in
    `joints.<joint>.initial`, rotations as quaternions qx, qy, qz, qw; joints that are not named are at 0."""

    name: str
    positions: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    velocities: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    place: SourceLocation = NOWHERE


@dataclass(frozen=True)
class RobotFile:
    """A robot file that was read.

    mechanism: with its notes and its warnings of what is lost and changes the motion; gravity: (3,) [m/s²], None where
    the file has none, gravity_place: where; start: the state in which the robot begins unless a rig gives another;
    states: others by name; limits: joint -> limits of a rig that are no mechanics, such as soft limits, by their key;
    efforts: joint -> least and greatest effort where they differ, of which the mechanism has the smaller one as limit
    in both directions; carried: link -> the part of its weight that is compensated; collisions: what its links, and the
    ground, have to touch others with.
    """

    mechanism: Mechanism
    gravity: tuple[float, float, float] | None = None
    actuators: tuple[FileActuator, ...] = ()
    start: NamedState | None = None
    states: tuple[NamedState, ...] = ()
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    efforts: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    carried: Mapping[str, float] = field(default_factory=dict)
    gravity_place: SourceLocation = NOWHERE
    collisions: tuple[CollisionShape, ...] = ()

    def gravity_or(self, given: Sequence[float] | None) -> tuple[float, float, float]:
        """The gravity that was given, else the file's, else the usual one."""
        x, y, z = (self.gravity or GRAVITY) if given is None else given
        return x, y, z

    def under(self, gravity: Sequence[float]) -> Mechanism:
        """The mechanism under this gravity [m/s²], with the forces that carry its links."""
        used = {part.name for part in (*self.mechanism.joints, *self.mechanism.forces, *self.mechanism.springs)}
        links = {link.name: link for link in self.mechanism.links}
        carrying = []
        for name, part in self.carried.items():
            link, force = links[name], f"{name}_gravcomp"
            while force in used:
                force += "_"
            if link.inertial is not None:
                law = constant_force([-part * link.inertial.mass * g for g in gravity])
                frames = ((name, Pose(np.eye(3), link.inertial.com)),)
                carrying.append(AppliedForce(force, law, frames, place=link.place))
        return replace(self.mechanism, forces=(*self.mechanism.forces, *carrying)) if carrying else self.mechanism

    def warn(self, given: Sequence[float] | None = None, stacklevel: int = 3) -> None:
        """Warn the program that called the caller of what is lost, and of numbers that look like another unit's.
        given: the gravity that counts instead of the file's."""
        of_gravity = (
            () if self.gravity is None or given is not None else doubtful_gravity(self.gravity, self.gravity_place)
        )
        for line in (*self.mechanism.warnings, *of_gravity):
            warnings.warn(line, RunWarning, stacklevel=stacklevel)
