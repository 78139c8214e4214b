"""A mechanism as bodies in Cartesian coordinates: joints as elementary constraints, and the numbers of its bodies.

A body has six coordinates in space, three where the whole mechanism moves in a plane. In space the accelerations are
linear, of the centre of mass along ground axes, and angular, along the axes of the body, so that M = diag(m E, J) is
constant. In the plane they are along two directions of it and about its normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.formulations._tree_state import why_not_rigid
from cosim.mechanics.formulations.cartesian.elementary import (
    Elementary,
    Mount,
    NoRotation,
    PointOnPlane,
    Rotation,
    Row,
    composition,
    has_composition,
)
from cosim.mechanics.multibody import dynamics, kinematics
from cosim.mechanics.multibody.bodies import AnyBody, Body, BodyMotion
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.joints import JointKind
from cosim.mechanics.multibody.kinematics import GROUND_PLACEMENT, Placement
from cosim.mechanics.multibody.spatial import Hinge, SpatialVector
from cosim.mechanics.multibody.sweeps import Unrolled
from cosim.mechanics.multibody.tree import Tree

# angle between a motion and the plane, in rad, below which it counts as in the plane
ALIGNED_ANGLE = 1e-9


# relative to a row, below which the part of it that acts in the plane counts as 0
NEGLIGIBLE_PART = 1e-9
# relative to a moment of inertia, below which a smaller one of the same body counts as 0
ROUNDING = 1e-12


class SpatialCoordinates:
    """Six coordinates per body."""

    size, translations = 6, 3

    def row(self, axes: Numeric, along: SpatialVector) -> Numeric:
        """The coefficients (6,) of a row, or a force, that is given along ground axes; axes (3, 3): of the body."""
        return ops.concatenate([along.linear, axes.T @ along.angular])

    def force(self, axes: Numeric, force: Numeric, moment: Numeric) -> Numeric:
        """The coefficients (6,) of a force along ground axes and a moment along the body's axes."""
        return ops.concatenate([force, moment])

    def inertia(self, mass: Numeric, inertia: Numeric, axes: np.ndarray) -> Numeric:
        """M of a body with this inertia (3, 3) about its centre of mass along its axes."""
        zero = np.zeros((3, 3))
        return ops.array([[*a, *b] for a, b in zip([*(mass * np.eye(3)), *zero], [*zero, *inertia], strict=True)])


@dataclass(frozen=True, eq=False)
class Plane(SpatialCoordinates):
    """Three coordinates per body; basis (3, 3): its columns are two directions of the plane and its normal."""

    basis: np.ndarray
    size, translations = 3, 2

    def row(self, axes: Numeric, along: SpatialVector) -> Numeric:
        first, second, normal = self.basis.T
        return ops.array([first @ along.linear, second @ along.linear, normal @ along.angular])

    def force(self, axes: Numeric, force: Numeric, moment: Numeric) -> Numeric:
        return self.row(axes, SpatialVector(force, axes @ moment))

    def inertia(self, mass: Numeric, inertia: Numeric, axes: np.ndarray) -> Numeric:
        normal = axes.T @ self.basis[:, 2]
        return ops.array([[mass, 0.0, 0.0], [0.0, mass, 0.0], [0.0, 0.0, normal @ inertia @ normal]])


def common_plane(columns: list[tuple[np.ndarray, np.ndarray]]) -> Plane | None:
    """The plane in which all motions are, None if there is none; columns: (linear, angular) of the motion of each dof
    in a configuration in general position. Translations alone do not define it."""
    turning = [angular for _, angular in columns if np.linalg.norm(angular) > ALIGNED_ANGLE]
    if not turning:
        return None
    normal = _exact(turning[0] / np.linalg.norm(turning[0]))
    for linear, angular in columns:
        if abs(normal @ linear) > ALIGNED_ANGLE or np.linalg.norm(np.cross(normal, angular)) > ALIGNED_ANGLE:
            return None
    first = _across(normal)
    return Plane(np.column_stack([first, np.cross(normal, first), normal]))


def _exact(direction: np.ndarray) -> np.ndarray:
    """A direction within rounding of a ground axis is that axis: its zeros vanish from compiled code."""
    nearest = np.round(direction)
    return nearest if np.abs(direction - nearest).max() < ALIGNED_ANGLE else direction


def _across(normal: np.ndarray) -> np.ndarray:
    """A unit vector in the plane: a ground axis where one is in it."""
    nearest = np.eye(3)[int(np.argmin(np.abs(normal)))]
    across = nearest - normal * (normal @ nearest)
    return across / np.linalg.norm(across)


@dataclass(frozen=True)
class CartesianJoint:
    """A joint: its kinematics, its elementary constraints, and the rows along its dofs; rotors: whether a dof has
    one."""

    kind: JointKind
    forbidden: tuple[Elementary, ...]
    free: tuple[Elementary, ...]
    rotors: tuple[bool, ...]

    @property
    def nq(self) -> int:
        return self.kind.nq

    @property
    def nv(self) -> int:
        return self.kind.nv

    def place(self, q: Numeric, t: Numeric) -> tuple[Numeric, Numeric]:
        return self.kind.place(q, t)

    def hinge(self, q: Numeric, v: Numeric, t: Numeric) -> Hinge:
        return self.kind.hinge(q, v, t)

    def motion(self, body: AnyBody, above: Numeric, q: Numeric, v: Numeric, t: Numeric) -> BodyMotion:
        return self.kind.motion(body, above, q, v, t)

    def rows_between(self, i: Mount, j: Mount, t: Numeric) -> tuple[list[Row], list[Row]]:
        """(constraints, rows along the dofs) between the joint's frame on the parent and the body."""
        forbidden, free = ([row(i, j) for row in rows] for rows in (self.forbidden, self.free))
        if self.kind.timed:
            turn, _ = self.kind.place(np.zeros(0), t)
            given = self.kind.hinge(np.zeros(0), np.zeros(0), t).bias  # relative acceleration, along the body's axes
            parts = {PointOnPlane: turn @ given.linear, Rotation: turn @ given.angular}
            forbidden = [
                found._replace(bias=found.bias - parts[type(row)][row.axis])  # type: ignore[attr-defined, index]
                for row, found in zip(self.forbidden, forbidden, strict=True)
            ]
        return forbidden, free

    @property
    def rows(self) -> int:
        return len(self.forbidden) + sum(self.rotors)


class CartesianBody(NamedTuple):
    """The joint's frame in the parent as in `dynamics.Body`; mass, centre of mass, inertia about it, M (s, s), the
    reflected rotor inertias (nv,), and W (m,) of `ldlt`."""

    rotation: Numeric
    position: Numeric
    mass: Numeric
    com: Numeric
    inertia: Numeric
    matrix: Numeric
    rotor: Numeric
    weight: Numeric


class Assembled(NamedTuple):
    """A mechanism in Cartesian coordinates, ready to be evaluated in any state."""

    coordinates: SpatialCoordinates
    sweeps: Unrolled  # of `CartesianJoint`s and `CartesianBody`s


def why_not(equations: MechanismEquations) -> str | None:
    """Why a mechanism has no Cartesian equations, None if it has."""
    tree = equations.tree
    if (why := why_not_rigid(equations)) is not None:
        return why
    for joint in tree.joints:
        if not has_composition(joint):
            return f"joint '{joint.name}' is of type {joint.kind}, which is no composition of elementary constraints"
    if any(map(has_symbols, tree.bodies)):
        return None  # what follows is a check of numbers
    alone = tuple(body._replace(rotor=np.zeros(len(body.rotor))) for body in tree.bodies)
    sweeps = Unrolled(tree.parents, tree.kinds, alone)
    resistances = dynamics.articulated_resistance(sweeps, general_position(tree), equations.nv_tree)
    scale = max((float(r.max(initial=0.0)) for r in resistances), default=0.0)
    for joint, resistance in zip(tree.joints, resistances, strict=True):
        if resistance.min(initial=np.inf) <= 1e-14 * scale:
            return f"bodies have no inertia along joint '{joint.name}', only its rotor has"
    return None


def assemble(equations: MechanismEquations, like: Assembled | None = None) -> Assembled:
    """The Cartesian form of a mechanism that has one. like: of the same mechanism with numbers in place of symbols; it
    has the same coordinates and rows."""
    tree = equations.tree
    q = general_position(tree)
    moving = dynamics.body_motions(tree.sweeps, q, np.zeros(equations.nv_tree))
    placed = kinematics.placements(tree.sweeps, moving)
    motions = [
        (here.rotation @ s.linear, here.rotation @ s.angular)
        for here, motion in zip(placed, moving, strict=True)
        for s in motion.hinge
    ]
    given = any(kind.timed for kind in tree.kinds)  # a motion that need not stay in a plane
    if like is not None:
        coordinates = like.coordinates
    else:
        coordinates = SpatialCoordinates() if given else common_plane(motions) or SpatialCoordinates()
    scales = _scales(tree)
    frames = [CentralFrame.of(here, np.zeros(3)) for here in placed]  # which rows act is the same about any point
    joints, bodies = [], []
    for k, (joint, kind, body) in enumerate(zip(tree.joints, tree.kinds, tree.bodies, strict=True)):
        above = frames[tree.parents[k]] if tree.parents[k] >= 0 else GROUND_FRAME
        forbidden, free = composition(joint)
        if like is not None:
            forbidden = like.sweeps.kinds[k].forbidden  # type: ignore[attr-defined]
        else:
            forbidden = _acting(forbidden, above.mount(body), frames[k].mount(), coordinates)
        rotors = tuple(not ops.is_zero(number) for number in body.rotor)
        joints.append(CartesianJoint(kind, forbidden, free, rotors))
        bodies.append(_cartesian_body(body, joints[-1], coordinates, placed[k].rotation, scales))
    return Assembled(coordinates, Unrolled(tree.parents, tuple(joints), tuple(bodies)))


class CentralFrame(NamedTuple):
    """A body in ground axes, with its centre of mass."""

    placement: Placement
    center: Numeric
    center_velocity: Numeric

    @staticmethod
    def of(here: Placement, com: Numeric) -> CentralFrame:
        arm = here.rotation @ com
        return CentralFrame(here, here.position + arm, here.linear + ops.cross(here.angular, arm))

    def mount(self, body: Body | CartesianBody | None = None) -> Mount:
        """The frame of the joint to this body, or of the joint that `body` has on it."""
        here = self.placement
        axes = here.rotation if body is None else here.rotation @ body.rotation
        point = here.position if body is None else here.position + here.rotation @ body.position
        return Mount(axes, point, self.center, here.angular, self.center_velocity)


GROUND_FRAME = CentralFrame(GROUND_PLACEMENT, np.zeros(3), np.zeros(3))


def has_symbols(body: Body) -> bool:
    """Whether its mass, centre of mass or inertia are symbols."""
    return any(map(ops.is_symbolic, (body.mass, body.moment, body.inertia)))


def center_of_mass(body: Body) -> Numeric:
    """In the body's axes; the origin of a body without mass. A mass that is a symbol is above 0."""
    massless = not ops.is_symbolic(body.mass) and body.mass <= 0.0
    return np.zeros(3) if massless else body.moment / body.mass


def general_position(tree: Tree) -> np.ndarray:
    """Coordinates of all joints of a tree at which nothing is aligned by chance."""
    uniform = np.random.default_rng(0).uniform
    parts = [k.space.integrate(k.space.neutral, uniform(0.3, 1.2, k.nv)) for k in tree.kinds]
    return np.concatenate([np.zeros(0), *parts])


def _scales(tree: Tree) -> tuple[Numeric, Numeric]:
    """(mass, moment of inertia) of the size of the mechanism's."""
    mass, inertia = ops.sum(body.mass for body in tree.bodies), 0.0
    for element in (element for body in tree.bodies for element in body.inertia.flat):
        inertia = ops.maximum(inertia, ops.abs(element))
    return mass, ops.where(inertia > 0.0, inertia, mass)


def _cartesian_body(
    body: Body,
    joint: CartesianJoint,
    coordinates: SpatialCoordinates,
    axes: np.ndarray,
    scales: tuple[Numeric, Numeric],
) -> CartesianBody:
    com = center_of_mass(body)
    inertia = body.inertia - body.mass * (com @ com * np.eye(3) - com[:, None] * com[None, :])
    matrix = coordinates.inertia(body.mass, inertia, axes)
    lacks = _may_lack_inertia(body, matrix[coordinates.translations :, coordinates.translations :])
    weight = [scales[isinstance(row, NoRotation)] if lacks else 0.0 for row in joint.forbidden]
    weights = ops.array([*weight, *[0.0] * sum(joint.rotors)])
    return CartesianBody(body.rotation, body.position, body.mass, com, inertia, matrix, body.rotor, weights)


def _may_lack_inertia(body: Body, turning: Numeric) -> bool:
    """Whether M of a body may be singular; turning: its part for rotations."""
    if has_symbols(body):
        return True
    return body.mass <= 0.0 or np.linalg.eigvalsh(turning)[0] <= ROUNDING * np.abs(body.inertia).max()


def _acting(rows: Sequence[Elementary], i: Mount, j: Mount, coordinates: SpatialCoordinates) -> tuple[Elementary, ...]:
    """The rows that are independent in these coordinates: in a plane those that act in it."""
    chosen, basis = [], np.zeros((0, coordinates.size))
    for row in rows:
        of_body = row(i, j).other
        direction = coordinates.row(j.axes, of_body)
        size = np.linalg.norm(np.concatenate(of_body))
        rest = direction - basis.T @ (basis @ direction)
        if np.linalg.norm(rest) > NEGLIGIBLE_PART * size:
            chosen.append(row)
            basis = np.vstack([basis, rest / np.linalg.norm(rest)])
    return tuple(chosen)
