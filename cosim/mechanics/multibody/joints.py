"""The table of joints.

A joint moves the child's frame in the joint's frame. Each entry names the coordinates and has pure functions:

* `place(q, t) -> (Q, r)`: the child's axes (3, 3) and origin (3,) in the joint's frame;
* `hinge(q, v, t) -> Hinge`: see `spatial.Hinge`;
* `closure(Q, r)`: the residual when the joint closes a loop, one row per reaction in `reactions`;
* `branch(Q, r)`: above 0 where the residual vanishes on the joint's own motion, below 0 where it vanishes half a turn
  off it; None if it vanishes on the motion only.

When the tree is built, axes are rotated to z (the second axis of a universal joint to x), so that one entry serves
every direction; `joint_axes` gives that rotation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.coordinates import MOTION, ROTATION, numbers, rotation_of
from cosim.mechanics.multibody.differentiate import HingeOf, HingeOfGiven
from cosim.mechanics.multibody.elastic_joints import modes_kind, node_kind
from cosim.mechanics.multibody.joint_kind import JointKind, Names
from cosim.mechanics.multibody.mechanism import GeneralMotion, GivenMotion, Joint, Pose
from cosim.mechanics.multibody.spatial import Hinge, SpatialVector

# below this, a number in a rotation is the rounding of an exact 0 or 1 (cos of the double next to π/2 is 6e-17)
ROUNDING = 1e-15

_O = np.zeros(3)
_X, _Y, _Z = np.eye(3)
_ZERO = SpatialVector(_O, _O)
_IDENTITY = np.eye(3), _O


def _about_z(angle: Numeric) -> Numeric:
    s, c = ops.sin(angle), ops.cos(angle)
    return ops.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _about_x(angle: Numeric) -> Numeric:
    s, c = ops.sin(angle), ops.cos(angle)
    return ops.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def _along_z(distance: Numeric) -> Numeric:
    return ops.array([0.0, 0.0, distance])


def _constant(*columns: SpatialVector) -> Callable[[Numeric, Numeric, Numeric], Hinge]:
    return lambda q, v, t: Hinge(columns, _ZERO, _ZERO)


def _universal(q: Numeric, v: Numeric, t: Numeric) -> Hinge:
    s, c = ops.sin(q[1]), ops.cos(q[1])
    bias = ops.array([0.0, c, -s]) * (v[0] * v[1])
    return Hinge((SpatialVector(_O, ops.array([0.0, s, c])), SpatialVector(_O, _X)), _ZERO, SpatialVector(_O, bias))


def _planar(q: Numeric, v: Numeric, t: Numeric) -> Hinge:
    turn = _about_z(q[2])
    return Hinge((SpatialVector(turn[0], _O), SpatialVector(turn[1], _O), SpatialVector(_O, _Z)), _ZERO, _ZERO)


_LINEAR, _ANGULAR = tuple(SpatialVector(e, _O) for e in np.eye(3)), tuple(SpatialVector(_O, e) for e in np.eye(3))


def _free(q: Numeric, v: Numeric, t: Numeric) -> Hinge:
    return Hinge(_LINEAR + _ANGULAR, _ZERO, SpatialVector(ops.cross(v[3:], v[:3]), _O))


def _tilt(turn: Numeric) -> list[Numeric]:
    """The small rotation about x and y that tilts z."""
    return [-turn[1, 2], turn[0, 2]]


def _twist(turn: Numeric) -> list[Numeric]:
    """The small rotation about x, y and z."""
    return [0.5 * (turn[2, 1] - turn[1, 2]), 0.5 * (turn[0, 2] - turn[2, 0]), 0.5 * (turn[1, 0] - turn[0, 1])]


def _axis_cosine(turn: Numeric, r: Numeric) -> Numeric:
    """The cosine of the angle between the z axes."""
    return turn[2, 2]


def _trace_cosine(turn: Numeric, r: Numeric) -> Numeric:
    """Twice the cosine of the angle of the rotation."""
    return turn[0, 0] + turn[1, 1] + turn[2, 2] - 1.0


def _names(**units: str) -> Names:
    return tuple(units.items())


REVOLUTE = JointKind(
    numbers(1),
    _names(angle="rad"),
    lambda q, t: (_about_z(q[0]), _O),
    _constant(SpatialVector(_O, _Z)),
    "fx fy fz mx my",
    lambda turn, r: [*r, *_tilt(turn)],
    _axis_cosine,
)
PRISMATIC = JointKind(
    numbers(1),
    _names(distance="m"),
    lambda q, t: (np.eye(3), _along_z(q[0])),
    _constant(SpatialVector(_Z, _O)),
    "fx fy mx my mz",
    lambda turn, r: [*r[:2], *_twist(turn)],
    _trace_cosine,
)
CYLINDRICAL = JointKind(
    numbers(2),
    _names(distance="m", angle="rad"),
    lambda q, t: (_about_z(q[1]), _along_z(q[0])),
    _constant(SpatialVector(_Z, _O), SpatialVector(_O, _Z)),
    "fx fy mx my",
    lambda turn, r: [*r[:2], *_tilt(turn)],
    _axis_cosine,
)
UNIVERSAL = JointKind(
    numbers(2),
    _names(first="rad", second="rad"),
    lambda q, t: (_about_z(q[0]) @ _about_x(q[1]), _O),
    _universal,
    "fx fy fz my",
    lambda turn, r: [*r, -turn[2, 0]],
    combined="fx fy fz mx my",  # the moment is across both axes, the first of which turns the second
)
SPHERICAL = JointKind(
    ROTATION,
    _names(rx="rad", ry="rad", rz="rad"),
    lambda q, t: (rotation_of(q), _O),
    _constant(*_ANGULAR),
    "fx fy fz",
    lambda turn, r: list(r),
)
PLANAR = JointKind(
    numbers(3),
    _names(x="m", y="m", angle="rad"),
    lambda q, t: (_about_z(q[2]), ops.array([q[0], q[1], 0.0])),
    _planar,
    "fz mx my",
    lambda turn, r: [r[2], *_tilt(turn)],
    _axis_cosine,
)
FREE = JointKind(
    MOTION,
    _names(x="m", y="m", z="m", rx="rad", ry="rad", rz="rad"),
    lambda q, t: (rotation_of(q[3:]), q[:3]),
    _free,
)
FIXED = JointKind(
    numbers(0),
    (),
    lambda q, t: _IDENTITY,
    _constant(),
    "fx fy fz mx my mz",
    lambda turn, r: [*r, *_twist(turn)],
    _trace_cosine,
)


@cache
def screw(pitch: float) -> JointKind:
    """A rotation about z that advances by `pitch` [m/rad] along it."""

    def closure(turn: Numeric, r: Numeric) -> list[Numeric]:
        # the row is periodic: whole turns of the advance do not count
        lead = r[2] / pitch
        off = turn[0, 0] * ops.sin(lead) - turn[1, 0] * ops.cos(lead)
        return [*r[:2], off * pitch, *_tilt(turn)]

    def branch(turn: Numeric, r: Numeric) -> Numeric:
        lead = r[2] / pitch
        return ops.minimum(_axis_cosine(turn, r), turn[0, 0] * ops.cos(lead) + turn[1, 0] * ops.sin(lead))

    return JointKind(
        numbers(1),
        _names(angle="rad"),
        lambda q, t: (_about_z(q[0]), _along_z(pitch * q[0])),
        _constant(SpatialVector(pitch * _Z, _Z)),
        "fx fy fz mx my",
        closure,
        branch,
        combined="fx fy fz mx my mz",  # the thread transmits −pitch · fz about its axis
    )


@cache
def general(motion: GeneralMotion) -> JointKind:
    """A user-defined joint: columns and bias are exact derivatives of its place."""
    names = tuple(zip(motion.names, motion.units, strict=True))
    hinge = HingeOfGiven(motion) if isinstance(motion, GivenMotion) else HingeOf(motion)
    return JointKind(numbers(len(names)), names, motion.place, hinge, timed=motion.timed)


GENERAL = "general"  # kind of a user-defined joint
Pictogram = Literal["drum", "sleeve", "slider", "ball", "plate", ""]  # as what a joint is drawn, "" as nothing


class JointKindRow(NamedTuple):
    """A kind of joints: its motion, and what reading, drawing and deriving ask of it.

    has_axis: else its coordinates are in the joint's frame; placed: it is at a point of its child; in_plane: what it
    does in a mechanism whose bodies move in a plane, with an axis at right angles to the plane or in it; constant: the
    columns of its hinge are.
    """

    kind: Callable[[Joint], JointKind]
    drawn: Pictogram = ""
    has_axis: bool = True
    placed: bool = True
    in_plane: Literal["turns", "slides", ""] = ""
    constant: bool = True


# joint type in files -> its entry; fixed joints of the tree are merged, fixed loop joints have closure rows
JOINTS: dict[str, JointKindRow] = {
    "revolute": JointKindRow(lambda joint: REVOLUTE, "drum", in_plane="turns"),
    "continuous": JointKindRow(lambda joint: REVOLUTE, "drum", in_plane="turns"),
    "prismatic": JointKindRow(lambda joint: PRISMATIC, "slider", in_plane="slides"),
    "cylindrical": JointKindRow(lambda joint: CYLINDRICAL, "sleeve"),
    "universal": JointKindRow(lambda joint: UNIVERSAL, "ball", constant=False),
    "spherical": JointKindRow(lambda joint: SPHERICAL, "ball", has_axis=False),
    "planar": JointKindRow(lambda joint: PLANAR, "plate", placed=False, in_plane="turns", constant=False),
    "free": JointKindRow(lambda joint: FREE, has_axis=False, placed=False),
    "fixed": JointKindRow(lambda joint: FIXED),
    "screw": JointKindRow(lambda joint: screw(joint.pitch), "sleeve"),
    GENERAL: JointKindRow(lambda joint: general(joint.motion), has_axis=False, placed=False, constant=False),
}
# joints of elastic links, which no file names
OF_ELASTIC_LINKS: dict[str, JointKindRow] = {
    "modes": JointKindRow(lambda joint: modes_kind(joint.motion), has_axis=False, constant=False),
    "node": JointKindRow(lambda joint: node_kind(joint.node), has_axis=False, constant=False),
}


def entry_of(joint: Joint) -> JointKindRow:
    return (JOINTS | OF_ELASTIC_LINKS)[joint.kind]


def kind_of(joint: Joint) -> JointKind:
    """The motion of a joint."""
    return entry_of(joint).kind(joint)


@cache
def units_of(kind: str) -> tuple[str, ...]:
    """The unit of each dof, rad or m, of joints of a kind but GENERAL."""
    return tuple(unit for _, unit in kind_of(Joint("", kind, "", "", Pose.identity(), pitch=1.0)).dofs)


def unit_of(kind: str | None) -> str | None:
    """The unit of all dofs of joints of a kind, rad where they have none; None where they differ, and where it follows
    from the single joint."""
    if kind not in JOINTS or kind == GENERAL:
        return None
    first, *others = set(units_of(kind)) or {"rad"}
    return None if others else first


def joint_axes(joint: Joint) -> np.ndarray:
    """The axes (3, 3) of a frame whose z is the joint's axis. Its x is the second axis if there is one, else the
    direction nearest to the x of the joint's frame (to its y for an axis along x). The identity for joints without
    an axis."""
    if not entry_of(joint).has_axis:
        return np.eye(3)
    if joint.second_axis is None:
        return _rotate_z_to(joint.axis)
    return np.column_stack([joint.second_axis, np.cross(joint.axis, joint.second_axis), joint.axis])


def _rotate_z_to(axis: np.ndarray) -> np.ndarray:
    """A rotation whose third column is `axis`, of length 1; for a coordinate axis a permutation with signs."""
    k = int(np.argmax(np.abs(axis)))
    if abs(abs(axis[k]) - 1.0) < ROUNDING:
        axis = np.sign(axis[k]) * np.eye(3)[k]
    x = _Y if abs(axis[0]) == 1.0 else _X
    for _ in range(2):  # twice is enough (Kahan)
        x = x - axis * (axis @ x)
        x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(axis, x), axis]) + 0.0  # + 0.0 turns -0 into 0
