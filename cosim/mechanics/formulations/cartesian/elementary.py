"""Elementary constraints between two bodies, and the table of joints composed of them.

Each is one equation, with the right side of its acceleration. A row couples the accelerations of a base body i and
another body j, base·ẍ_i + other·ẍ_j + bias = 0, ẍ = (acceleration of the centre of mass, angular acceleration), along
ground axes. Its reaction λ acts on both: other·λ on j and base·λ on i, force and moment about the centres of mass.
`bias` has the Coriolis and centrifugal terms.

Rows that are no constraints measure motion: of a dof of a joint, its acceleration is the left side of the equation.
They give the rates of the dofs in their order, and the efforts on them act along these rows. Frames of joints are as in
`multibody.joints`: z along the axis, the second axis of a universal joint along x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.mechanism import Joint
from cosim.mechanics.multibody.spatial import SpatialVector

BASE, OTHER = 0, 1  # the two bodies of a row
X, Y, Z = range(3)


class Mount(NamedTuple):
    """A frame fixed to a body, in ground axes: its axes (3, 3) and origin, the body's centre of mass, its angular
    velocity and the velocity of its centre of mass, (3,) each."""

    axes: Numeric
    point: Numeric
    center: Numeric
    angular: Numeric
    linear: Numeric


class Row(NamedTuple):
    """The equation of one elementary constraint in one state, or the measure of one motion."""

    base: SpatialVector
    other: SpatialVector
    rate: Numeric  # base·ẋ_i + other·ẋ_j
    bias: Numeric
    residual: Numeric  # what the rate is the derivative of; 0 for measures of motion


class Elementary(Protocol):
    """One equation between two bodies, as a function of a frame on each."""

    def __call__(self, i: Mount, j: Mount) -> Row:
        """The row between the frames i on the base and j on the other body."""
        ...


@dataclass(frozen=True)
class PointOnPlane:
    """The origin of j stays on the plane through the origin of i whose normal is an axis of one of the frames:
    n·ρ̈ = 0, with the acceleration relative to the base."""

    axis: int
    of: int = BASE  # whose axis the normal is

    def __call__(self, i: Mount, j: Mount) -> Row:
        owner = (i, j)[self.of]
        n = owner.axes[:, self.axis]
        arm, reach = j.point - j.center, j.point - i.center
        spin = ops.cross(j.angular, arm)
        speed = j.linear + spin - i.linear  # of the point, seen from the centre of mass of the base
        relative = speed - ops.cross(i.angular, reach)
        inward = ops.cross(j.angular, spin) - ops.cross(i.angular, speed)
        return Row(
            SpatialVector(-n, -ops.cross(reach, n)),
            SpatialVector(n, ops.cross(arm, n)),
            n @ relative,
            n @ inward + ops.cross(owner.angular, n) @ relative,
            n @ (j.point - i.point),
        )


@dataclass(frozen=True)
class NoRotation:
    """An axis u of i and an axis w of j stay orthogonal: no relative rotation about n = w × u."""

    base_axis: int
    other_axis: int

    def __call__(self, i: Mount, j: Mount) -> Row:
        u, w = i.axes[:, self.base_axis], j.axes[:, self.other_axis]
        turning = ops.cross(ops.cross(j.angular, w), u) + ops.cross(w, ops.cross(i.angular, u))
        return _rotation(i, j, ops.cross(w, u), turning, u @ w)


@dataclass(frozen=True)
class Rotation:
    """Measures the relative rotation about an axis of one of the frames."""

    axis: int
    of: int = BASE

    def __call__(self, i: Mount, j: Mount) -> Row:
        owner = (i, j)[self.of]
        n = owner.axes[:, self.axis]
        return _rotation(i, j, n, ops.cross(owner.angular, n), 0.0)


def _rotation(i: Mount, j: Mount, n: Numeric, turning: Numeric, residual: Numeric) -> Row:
    """The row n·(ω_j − ω_i); turning: ṅ."""
    spin, none = j.angular - i.angular, n * 0.0
    return Row(SpatialVector(none, -n), SpatialVector(none, n), n @ spin, turning @ spin, residual)


@dataclass(frozen=True)
class Advance:
    """Along their common z axis j advances by `pitch` [m/rad] times its rotation, as a nut on a screw."""

    pitch: float

    def __call__(self, i: Mount, j: Mount) -> Row:
        along, turn = PointOnPlane(Z)(i, j), Rotation(Z)(i, j)
        across, side = j.axes[:, X] @ i.axes[:, Y], j.axes[:, X] @ i.axes[:, X]
        lead = along.residual / self.pitch
        off = side * ops.sin(lead) - across * ops.cos(lead)  # whole turns of the advance do not count
        return Row(
            along.base - turn.base * self.pitch,
            along.other - turn.other * self.pitch,
            along.rate - self.pitch * turn.rate,
            along.bias - self.pitch * turn.bias,
            self.pitch * off,
        )


class Composition(NamedTuple):
    """A joint as elementary constraints: what it forbids, and measures of the motion that it leaves."""

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
