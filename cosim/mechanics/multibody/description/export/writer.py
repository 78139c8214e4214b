"""A mechanism in the format of a file's ending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cosim.core.errors import InputError
from cosim.mechanics.multibody.description.export.mjcf_writer import MJCF, MjcfWriter
from cosim.mechanics.multibody.description.export.prepared import prepared
from cosim.mechanics.multibody.description.export.sdf_writer import SDF, SdfWriter
from cosim.mechanics.multibody.description.export.urdf_writer import URDF, urdf_text
from cosim.mechanics.multibody.mechanism import Mechanism, Pose

ENDINGS = {".urdf": URDF, ".xml": MJCF, ".mjcf": MJCF, ".sdf": SDF}


class RobotText(NamedTuple):
    """A robot file. lost: what the format cannot say and changes the motion; notes: what else is other there."""

    text: str
    lost: tuple[str, ...]
    notes: tuple[str, ...]


def robot_text(
    mechanism: Mechanism,
    ending: str,
    gravity: Sequence[float],
    rotors: Mapping[str, float] | None = None,
    carried: Mapping[str, float] | None = None,
    start: Mapping[str, Pose] | None = None,
    positions: Mapping[str, float | np.ndarray] | None = None,
) -> RobotText:
    """The file of a mechanism.

    ending: such as .urdf; rotors, carried: see `prepared`; start: free joint -> the pose in which its body begins;
    positions: of a pose in which loops are closed, see `counted_from`.
    Raises InputError for what the format cannot say and without which it would be another mechanism.
    """
    if ending not in ENDINGS:
        raise InputError(f"the ending is one of {', '.join(ENDINGS)}, got '{ending}'")
    robot = prepared(mechanism, gravity, ENDINGS[ending], rotors, carried)
    if ENDINGS[ending] is URDF:
        text = urdf_text(robot)
    elif ENDINGS[ending] is MJCF:
        text = MjcfWriter(robot, start or {}).text()
    else:
        text = SdfWriter(robot, start or {}, positions or {}).text()
    return RobotText(text, tuple(robot.lost), tuple(robot.notes))
