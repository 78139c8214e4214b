"""Laws between frames and coordinates: the table of constraint laws, and force laws.

A constraint law defines what must vanish: `residual(frames, q, t)` gives the holonomic rows f = 0, `rate(frames, q, v,
t)` the non-holonomic ones, linear in the velocities, a₀ + a·q̇ = 0. Both are pure functions; their exact derivatives
give the acceleration rows and the directions of the reactions (`constraint_rows`). Frames are given in ground axes.

λ of a row does work on the change of its residual. It is the force or moment of its name where the row is scaled so
that it is (`named_rows`); of other laws λ is recorded times what λ = 1 exerts (`BodyConstraint.sizes`). The wrench of a
law on its frames, Gᵀ λ, does not depend on how its residual is written (`BodyConstraint.wrenches`).

A force law is what springs, dampers and drives are not: a nonlinear spring, aerodynamic drag, a magnet, a penalty
contact. Its forces on frames and efforts on joints are applied forces in the equations of motion. Nothing is
differentiated, so they need not be smooth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.core.units import quantity_unit


class FrameState(NamedTuple):
    """A frame of a link in ground axes; velocities are set for `rate` only."""

    rotation: Numeric  # (3, 3), maps vectors from its axes to ground axes
    position: Numeric  # (3,) m
    angular: Numeric = None  # (3,) rad/s
    linear: Numeric = None  # (3,) m/s, of its origin


class ReactionSpec(NamedTuple):
    """One equation: the name and unit of its reaction λ, and the unit of its residual; the product of both units is an
    energy, of a non-holonomic row a power. length [m]: the arm between force and moment, where a row in N exerts
    moments alone, or a row in N*m forces alone."""

    name: str
    unit: str  # of the reaction
    residual_unit: str  # of the rate for a non-holonomic row
    length: float = 1.0


Residual = Callable[[Sequence[FrameState], Numeric, Numeric], Numeric]
Rate = Callable[[Sequence[FrameState], Numeric, Numeric, Numeric], Numeric]


OTHER_BRANCH = "closes only on the wrong branch, rotated by half a turn; rotate its frame on one of the bodies"


class ConstraintLaw(NamedTuple):
    """The rows, holonomic ones first; `timed` laws depend on t. branch(frames) is above 0 where the residual vanishes
    on the intended branch, below 0 on the other one; None if there is no other; other_branch: what is wrong there, and
    the fix. breaks: times [s] at which a derivative of a timed law with respect to t jumps. fix: what to do where the
    rows have no direction. curve, rod, radius: what a picture shows of it: the curve y(x) in the first frame on which
    the origin of the second one stays, a massless rod between both origins, a wheel about the z axis of the second
    frame [m].

    What is recorded of its reaction: `components` of its wrench on the second frame, at that frame's origin, along the
    axes of the first one; else of its rows λ, which is the quantity of their names with `named_rows`. A law with
    neither has of its rows what they exert, and the wrench on each of its frames and the effort on each dof."""

    rows: tuple[ReactionSpec, ...]
    residual: Residual | None = None
    rate: Rate | None = None
    timed: bool = False
    branch: Callable[[Sequence[FrameState]], Numeric] | None = None
    fix: str = "change the initial positions"
    curve: Callable[[Numeric], Numeric] | None = None
    rod: bool = False
    radius: float = 0.0
    components: tuple[ReactionSpec, ...] = ()  # of WRENCH
    named_rows: bool = False
    breaks: tuple[float, ...] = ()
    other_branch: str = OTHER_BRANCH


FORCE, MOMENT = ("N", "m"), ("N*m", "rad")
# the components of a wrench, force first, by the short names in the table of joints
WRENCH: dict[str, ReactionSpec] = {f"f{axis}": ReactionSpec(f"force_{axis}", *FORCE) for axis in "xyz"}
WRENCH |= {f"m{axis}": ReactionSpec(f"moment_{axis}", *MOMENT) for axis in "xyz"}


def relative_pose(base: FrameState, other: FrameState) -> tuple[Numeric, Numeric]:
    """(rotation (3, 3), position (3,)) of `other` in `base`."""
    return base.rotation.T @ other.rotation, base.rotation.T @ (other.position - base.position)


PoseFunction = Callable[[Numeric, Numeric], Numeric]


def loop_closure(
    rows: Sequence[ReactionSpec],
    residual: PoseFunction,
    branch: PoseFunction | None = None,
    components: Sequence[ReactionSpec] = (),
) -> ConstraintLaw:
    """The law of a cut joint between a frame on the parent and one on the child; residual: (Q, r) -> residual,
    branch: (Q, r) -> number, as in the table of joints; Q, r: the child's axes and origin in the joint's frame."""
    return ConstraintLaw(
        tuple(rows),
        lambda frames, q, t: residual(*relative_pose(frames[0], frames[1])),
        branch=None if branch is None else lambda frames: branch(*relative_pose(frames[0], frames[1])),
        components=tuple(components),
    )


INSTEAD_OF_NO_DISTANCE = "for points that coincide use a loop joint of type spherical"


def distance(length: float) -> ConstraintLaw:
    """Two points keep their distance [m], above 0; λ is the force of the massless rod between them [N], above 0 where
    it pushes them apart. Undefined where the points coincide."""

    def residual(frames: Sequence[FrameState], q: Numeric, t: Numeric) -> Numeric:
        d = frames[1].position - frames[0].position
        return ops.array([ops.sqrt(d @ d) - length])

    rows = (ReactionSpec("force", *FORCE),)
    return ConstraintLaw(rows, residual, fix=INSTEAD_OF_NO_DISTANCE, rod=True, named_rows=True)


def point_on_curve(coefficients: Sequence[float]) -> ConstraintLaw:
    """The origin of the second frame stays on y = c₀ + c₁ x + c₂ x² + …, in the first one's x–y plane; its z is free.
    The residual is its distance from the curve to first order, so that λ is the normal force on it [N], above 0 towards
    +y."""
    curve, slope = polynomial(coefficients), polynomial([k * c for k, c in enumerate(coefficients)][1:])

    def residual(frames: Sequence[FrameState], q: Numeric, t: Numeric) -> Numeric:
        _, r = relative_pose(frames[0], frames[1])
        steep = slope(r[0])
        return ops.array([(r[1] - curve(r[0])) / ops.sqrt(1.0 + steep * steep)])

    return ConstraintLaw((ReactionSpec("force", *FORCE),), residual, curve=curve, named_rows=True)


def polynomial(coefficients: Sequence[float]) -> Callable[[Numeric], Numeric]:
    """x -> c₀ + c₁ x + c₂ x² + …"""

    def value(x: Numeric) -> Numeric:
        result: Numeric = 0.0
        for c in reversed(coefficients):
            result = result * x + c
        return result

    return value


def gear(ratio: float, offset: float = 0.0, unit: str = "rad") -> ConstraintLaw:
    """First joint = ratio · second joint + offset: gears, belts, racks. λ is the effort on the first one along its
    positive velocity; −ratio · λ acts on the second one."""
    row = ReactionSpec("effort", quantity_unit("joint effort", unit), unit)
    return ConstraintLaw((row,), lambda frames, q, t: ops.array([q[0] - ratio * q[1] - offset]), named_rows=True)


def combination(
    first: Sequence[float], second: Sequence[float], coefficients: Sequence[float], unit: str = "rad"
) -> ConstraintLaw:
    """Σ wᵢ qᵢ of the first joints = c₀ + c₁ x + c₂ x² + …, x = Σ wⱼ qⱼ of the joints after them: gears whose ratio
    varies, cords over pulleys. first, second: weights by joint; unit: of the first sum."""
    curve, count = polynomial(coefficients), len(first)
    weights, others = np.array(first, dtype=float), np.array(second, dtype=float)

    def residual(frames: Sequence[FrameState], q: Numeric, t: Numeric) -> Numeric:
        x = others @ q[count:] if others.size else 0.0
        return ops.array([weights @ q[:count] - curve(x)])

    return ConstraintLaw((ReactionSpec("effort", quantity_unit("joint effort", unit), unit),), residual)


def coupling(
    function: Callable[[Numeric, Numeric], Numeric], rows: Sequence[ReactionSpec], timed: bool
) -> ConstraintLaw:
    """function(q, t) of the coordinates of joints vanishes, one row per element."""
    return ConstraintLaw(tuple(rows), lambda frames, q, t: function(q, t), timed=timed)


def knife_edge() -> ConstraintLaw:
    """The origin of the second frame does not move along that frame's y axis, relative to the first one: a
    skate, a knife edge, a wheel of zero radius (ẏ cos φ − ẋ sin φ = 0). λ is the force on it along that axis [N]."""

    def rate(frames: Sequence[FrameState], q: Numeric, v: Numeric, t: Numeric) -> Numeric:
        base, edge = frames
        reach = edge.position - base.position
        slip = edge.linear - base.linear - ops.cross(base.angular, reach)
        return ops.array([edge.rotation[:, 1] @ slip])

    return ConstraintLaw((ReactionSpec("force", "N", "m/s"),), None, rate, named_rows=True)


def rolling(radius: float) -> ConstraintLaw:
    """A disk of a radius [m] about the z axis of the second frame rolls without slipping on the x–y plane of the
    first one, which may move: it touches the plane (one row), and the point of contact does not slip along it (two).
    λ are the components of the force on the disk at the point of contact, along the axes of the first frame [N]."""

    def down(frames: Sequence[FrameState]) -> tuple[Numeric, Numeric]:
        """(direction in the disk's plane to its lowest point, sine of its inclination)."""
        up, axle = frames[0].rotation[:, 2], frames[1].rotation[:, 2]
        lean = up @ axle
        sine = ops.sqrt(1.0 - lean * lean)
        return (axle * lean - up) / sine, sine

    def residual(frames: Sequence[FrameState], q: Numeric, t: Numeric) -> Numeric:
        _, sine = down(frames)
        height = frames[0].rotation[:, 2] @ (frames[1].position - frames[0].position)
        return ops.array([height - radius * sine])

    def rate(frames: Sequence[FrameState], q: Numeric, v: Numeric, t: Numeric) -> Numeric:
        plane, disk = frames
        direction, _ = down(frames)
        rim = radius * direction
        reach = disk.position + rim - plane.position
        slip = disk.linear + ops.cross(disk.angular, rim) - plane.linear - ops.cross(plane.angular, reach)
        return plane.rotation[:, :2].T @ slip

    rows = ReactionSpec("force_z", *FORCE), ReactionSpec("force_x", "N", "m/s"), ReactionSpec("force_y", "N", "m/s")
    return ConstraintLaw(rows, residual, rate, radius=radius, named_rows=True)


ForceFunction = Callable[[Sequence[FrameState], Numeric, Numeric, Numeric], Numeric]


class ForceLaw(NamedTuple):
    """A law of forces: functions of (frames, q, v, t), frames with their velocities, all in ground axes; q, v: of the
    joints of the law.

    wrenches: for each of the k frames the force [N] that acts at its origin, or force and moment [N m], in ground axes:
    (k, 3) or (k, 6). efforts: on the dofs of the joints, along +v [N m or N], as long as v. `timed` laws depend on t;
    breaks: times [s] at which they or a derivative with respect to t jump.
    """

    wrenches: ForceFunction | None = None
    efforts: ForceFunction | None = None
    timed: bool = False
    breaks: tuple[float, ...] = ()
