"""Models of robot files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from cosim.mechanics.multibody.description.mjcf.reader import read_mjcf
from cosim.mechanics.multibody.description.robot_file import RobotFile
from cosim.mechanics.multibody.description.sdf.reader import read_sdf
from cosim.mechanics.multibody.description.urdf import read_urdf
from cosim.mechanics.multibody.description.usd.reader import read_usd
from cosim.mechanics.multibody.mechanism import Mechanism, with_floating_base


class OfRobotFile:
    """A model of a mechanism under a gravity that can be read from a robot file."""

    def __init__(self, mechanism: Mechanism, gravity: Sequence[float]) -> None:
        raise NotImplementedError

    @classmethod
    def from_urdf(cls, path: str | Path, floating_base: bool = False, gravity: Sequence[float] | None = None) -> Self:
        """The model of a URDF file. Its root link is the ground; with `floating_base` a free joint `root_joint`
        connects the root link to the ground. gravity: (3,) [m/s²], by default (0, 0, -9.81).

        Raises InputErrors with every error in the file and its line. Warns (`RunWarning`) of what is lost.
        """
        robot = read_urdf(path)
        if floating_base:
            robot = replace(robot, mechanism=with_floating_base(robot.mechanism))
        return cls._of(robot, gravity)

    @classmethod
    def from_mjcf(cls, path: str | Path, gravity: Sequence[float] | None = None) -> Self:
        """The model of an MJCF file, compiled by the package `mujoco`. gravity: (3,) [m/s²], by default the file's.

        Raises InputErrors with the error of MuJoCo. Warns (`RunWarning`) of what is lost.
        """
        return cls._of(read_mjcf(path), gravity)

    @classmethod
    def from_sdf(cls, path: str | Path, model: str | None = None, gravity: Sequence[float] | None = None) -> Self:
        """The model of an SDF file; model: its name, where the file has several that move. A base that no joint holds
        has a free joint `root_joint`. gravity: (3,) [m/s²], by default the one of the file's world, else (0, 0, -9.81).

        Raises InputErrors with every error in the file and its line. Warns (`RunWarning`) of what is lost.
        """
        return cls._of(read_sdf(path, model), gravity)

    @classmethod
    def from_usd(cls, path: str | Path, gravity: Sequence[float] | None = None) -> Self:
        """The model of a USD file, read with the package `usd-core`. A base that no joint holds has a free joint
        `root_joint`. gravity: (3,) [m/s²], by default the one of the file's physics scene, else 9.81 m/s² down.

        Raises InputErrors for errors in the file. Warns (`RunWarning`) of what is lost.
        """
        return cls._of(read_usd(path), gravity)

    @classmethod
    def _of(cls, robot: RobotFile, gravity: Sequence[float] | None) -> Self:
        robot.warn(gravity, stacklevel=4)
        chosen = robot.gravity_or(gravity)
        return cls(robot.under(chosen), chosen)
