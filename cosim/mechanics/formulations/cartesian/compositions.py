"""The table of joints as compositions of elementary constraints.

Frames are as in `multibody.joints`: z along the axis, the second axis of a universal joint along x. The rows that
measure motion give the rates of the joint's dofs in their order, and the efforts on them act along these rows.
"""

from __future__ import annotations

from typing import NamedTuple

from cosim.mechanics.formulations.cartesian.elementary import (
    OTHER,
    Advance,
    Elementary,
    NoRotation,
    PointOnPlane,
    Rotation,
    X,
    Y,
    Z,
)
from cosim.mechanics.multibody.mechanism import Joint


class Composition(NamedTuple):
    forbidden: tuple[Elementary, ...]
    free: tuple[Elementary, ...]


_AT_POINT = PointOnPlane(X), PointOnPlane(Y), PointOnPlane(Z)
_ON_AXIS = _AT_POINT[:2]
_NO_TILT = NoRotation(Y, Z), NoRotation(X, Z)
_NO_TWIST = (NoRotation(X, Y),)
_TURN = (Rotation(Z),)
_TURNS = Rotation(X, OTHER), Rotation(Y, OTHER), Rotation(Z, OTHER)
_MOVES = PointOnPlane(X, OTHER), PointOnPlane(Y, OTHER), PointOnPlane(Z, OTHER)

COMPOSITIONS: dict[str, Composition] = {
    "revolute": Composition(_AT_POINT + _NO_TILT, _TURN),
    "continuous": Composition(_AT_POINT + _NO_TILT, _TURN),
    "prismatic": Composition(_ON_AXIS + _NO_TILT + _NO_TWIST, (PointOnPlane(Z),)),
    "cylindrical": Composition(_ON_AXIS + _NO_TILT, (PointOnPlane(Z), *_TURN)),
    "universal": Composition((*_AT_POINT, NoRotation(Z, X)), (Rotation(Z), Rotation(X, OTHER))),
    "spherical": Composition(_AT_POINT, _TURNS),
    "planar": Composition((PointOnPlane(Z), *_NO_TILT), (*_ON_AXIS, *_TURN)),
    "fixed": Composition(_AT_POINT + _NO_TILT + _NO_TWIST, ()),
    "free": Composition((), _MOVES + _TURNS),
}


# of a body whose motion relative to its base is a function of time
GIVEN_MOTION = Composition((*_AT_POINT, Rotation(X), Rotation(Y), Rotation(Z)), ())


def has_composition(joint: Joint) -> bool:
    return joint.kind in COMPOSITIONS or joint.kind == "screw" or has_given_motion(joint)


def has_given_motion(joint: Joint) -> bool:
    """Whether the motion in a joint depends on time alone."""
    return joint.motion is not None and joint.motion.timed and not joint.motion.names


def composition(joint: Joint) -> Composition:
    """The entry of the table for a joint that has one."""
    if has_given_motion(joint):
        return GIVEN_MOTION
    if joint.kind == "screw":
        return Composition((*_ON_AXIS, Advance(joint.pitch), *_NO_TILT), _TURN)
    return COMPOSITIONS[joint.kind]
