"""Functions of positions and velocities alone: poses, Jacobians, momentum, energies, the mass matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.compile.pytree import Pytree
from cosim.core.types import Numeric
from cosim.mechanics.multibody.bodies import (
    AnyBody,
    AnyInertia,
    AnyMotion,
    AnyVector,
    to_body,
    transport_force,
    transport_inertia,
    transport_velocity,
)
from cosim.mechanics.multibody.dynamics import body_motions
from cosim.mechanics.multibody.joints import JointKind
from cosim.mechanics.multibody.mechanism import Pose
from cosim.mechanics.multibody.spatial import SpatialVector
from cosim.mechanics.multibody.sweeps import Column, Sweeps, Unrolled


def kinetic_energy(sweeps: Sweeps, q: Numeric, v: Numeric, t: Numeric = 0.0) -> Numeric:
    """Σ ½ m v² + v·(ω × m c) + ½ ω·J ω, and ½ J_rotor q̇² of the rotors [J]."""

    def step(joint: JointKind, body: AnyBody, above: tuple[Pytree, AnyVector], q: Numeric, v: Numeric) -> Pytree:
        motion = joint.motion(body, above[0], q, v, t)
        twist = transport_velocity(body, motion, above[1])
        return (motion.below, twist), (motion, twist, v)

    def own(joint: JointKind, body: AnyBody, moving: tuple[AnyMotion, AnyVector, Numeric]) -> Numeric:
        motion, twist, v = moving
        rotors = ops.sum(rotor * v[i] * v[i] for i, rotor in enumerate(body.rotor))
        return 0.5 * (twist.dot(body.own_inertia(motion) @ twist) + rotors)

    still = np.zeros(3), SpatialVector(np.zeros(3), np.zeros(3))
    return sweeps.gather(own, sweeps.outward(step, still, sweeps.by_q(q), sweeps.by_v(v)))


def potential_energy(sweeps: Sweeps, q: Numeric, gravity: Numeric, t: Numeric = 0.0) -> Numeric:
    """−Σ m g·r, zero with every centre of mass at the height of the ground's origin [J]."""

    def step(joint: JointKind, body: AnyBody, above: tuple[Pytree, Numeric, Numeric], q: Numeric) -> Pytree:
        moved, height, g = above  # −g·r of the body's origin, g in the body's axes
        motion = joint.motion(body, moved, q, np.zeros(joint.nv), t)
        height, g = height - g @ motion.position, to_body(body, motion, g)
        return (motion.below, height, g), (motion, height, g)

    def own(joint: JointKind, body: AnyBody, placed: tuple[AnyMotion, Numeric, Numeric]) -> Numeric:
        motion, height, g = placed
        return body.mass * height - g @ body.own_moment(motion)

    return sweeps.gather(own, sweeps.outward(step, (np.zeros(3), 0.0, gravity), sweeps.by_q(q)))


def mass_matrix(sweeps: Unrolled, q: Numeric, nv: int, t: Numeric = 0.0) -> Numeric:
    """M(q) (nv, nv) by the composite-rigid-body algorithm: column s moves the body and its descendants as one rigid
    body, and its force is projected on every hinge on the path to the ground."""

    moving = body_motions(sweeps, q, np.zeros(nv), t)
    composite = composite_inertias(sweeps, moving)
    columns = sweeps.by_v(np.arange(nv))
    m: list[list[Numeric]] = [[0.0] * nv for _ in range(nv)]
    for k, body in enumerate(sweeps.bodies):
        for j, s in zip(columns[k], moving[k].hinge, strict=True):
            force, at = composite[k] @ s, k
            while at >= 0:
                for i, other in zip(columns[at], moving[at].hinge, strict=True):
                    m[i][j] = m[j][i] = other.dot(force)
                force = transport_force(sweeps.bodies[at], moving[at], force)
                at = sweeps.parents[at]
        for i, j in enumerate(columns[k]):
            m[j][j] = m[j][j] + body.rotor[i]
    return ops.array(m).reshape(nv, nv)


def composite_inertias(sweeps: Sweeps, moving: Column) -> Column:
    """Of each body with its descendants, as if their joints were fixed."""

    def own(joint: JointKind, body: AnyBody, motion: AnyMotion) -> AnyInertia:
        return body.own_inertia(motion)

    def compose(joint: JointKind, body: AnyBody, inertia: AnyInertia, motion: AnyMotion) -> Pytree:
        return transport_inertia(body, motion, inertia), inertia

    return sweeps.inward(own, compose, moving)


def mass_diagonal(sweeps: Unrolled, q: Numeric, nv: int, t: Numeric = 0.0) -> Numeric:
    """The diagonal (nv,) of M(q), in O(n)."""

    def own(joint: JointKind, body: AnyBody, motion: AnyMotion) -> AnyInertia:
        return body.own_inertia(motion)

    def compose(joint: JointKind, body: AnyBody, inertia: AnyInertia, motion: AnyMotion) -> Pytree:
        resistance = [s.dot(inertia @ s) + body.rotor[i] for i, s in enumerate(motion.hinge)]
        return transport_inertia(body, motion, inertia), ops.array(resistance)

    return sweeps.vector(sweeps.inward(own, compose, body_motions(sweeps, q, np.zeros(nv), t)))


class Placement(NamedTuple):
    """A body in ground axes: its axes (3, 3), its origin (3,), its angular velocity and the velocity of its origin."""

    rotation: Numeric
    position: Numeric
    angular: Numeric
    linear: Numeric


GROUND_PLACEMENT = Placement(np.eye(3), np.zeros(3), np.zeros(3), np.zeros(3))


def pose_parts(rotation: Numeric, position: Numeric) -> dict[str, Numeric]:
    """x, y, z [m] and roll, pitch, yaw [rad] of a pose: rotations about the fixed axes x, y, z in this order."""
    (a, b, c), tip = rotation[:, 0], rotation[2, 1:3]
    angles = ops.atan2(tip[0], tip[1]), ops.atan2(-c, ops.sqrt(a * a + b * b)), ops.atan2(b, a)
    return dict(zip(("x", "y", "z", "roll", "pitch", "yaw"), (*position, *angles), strict=True))


def placements(sweeps: Unrolled, moving: Column) -> list[Placement]:
    """Poses and velocities of all bodies in ground axes."""

    def step(joint: JointKind, body: AnyBody, above: Placement, motion: AnyMotion) -> tuple[Placement, Placement]:
        rotation = above.rotation @ body.rotation @ motion.turn
        reach = above.rotation @ motion.position
        linear = above.linear + ops.cross(above.angular, reach) + rotation @ motion.slip
        here = Placement(rotation, above.position + reach, rotation @ motion.omega, linear)
        return here, here

    return sweeps.outward(step, GROUND_PLACEMENT, moving)


class _OnPath(NamedTuple):
    """A body between the ground and another one."""

    motion: AnyMotion
    rotation: Numeric  # its axes (3, 3) and its origin (3,), in ground axes
    position: Numeric
    dofs: Sequence[int]  # of its joint, and of its parent's
    parent_dofs: Sequence[int]


def _path_to(sweeps: Unrolled, q: Numeric, body: int, t: Numeric) -> list[_OnPath]:
    """The bodies from the ground to a body, at rest."""
    coordinates, dofs = sweeps.by_q(q), sweeps.by_v(np.arange(sum(kind.nv for kind in sweeps.kinds)))
    above: Pytree = np.zeros(3)
    rotation, position, parent_dofs = np.eye(3), np.zeros(3), []
    path = []
    for k in body_path(sweeps, body):
        here, kind = sweeps.bodies[k], sweeps.kinds[k]
        motion = kind.motion(here, above, coordinates[k], np.zeros(kind.nv), t)
        position = position + rotation @ motion.position
        rotation = rotation @ here.rotation @ motion.turn
        path.append(_OnPath(motion, rotation, position, dofs[k], parent_dofs))
        above, parent_dofs = motion.below, dofs[k]
    return path


def body_path(sweeps: Unrolled, k: int) -> list[int]:
    """The bodies from the ground to body k."""
    path = []
    while k >= 0:
        path.insert(0, k)
        k = sweeps.parents[k]
    return path


def frame_pose(sweeps: Unrolled, q: Numeric, body: int, frame: Pose, t: Numeric = 0.0) -> Numeric:
    """The homogeneous matrix (4, 4) of a frame fixed to a body (−1: the ground), in ground axes."""
    return _frame_pose(_path_to(sweeps, q, body, t), frame)


def _frame_pose(path: Sequence[_OnPath], frame: Pose) -> Numeric:
    rotation, position = (path[-1].rotation, path[-1].position) if path else (np.eye(3), np.zeros(3))
    position = position + rotation @ frame.position
    rotation = rotation @ frame.rotation
    return ops.array([[*rotation[i], position[i]] for i in range(3)] + [[0.0, 0.0, 0.0, 1.0]])


def frame_jacobian(sweeps: Unrolled, q: Numeric, nv: int, body: int, frame: Pose, t: Numeric = 0.0) -> Numeric:
    """J (6, nv): velocity of the frame's origin and angular velocity, both in ground axes, = J v."""
    path = _path_to(sweeps, q, body, t)
    target = _frame_pose(path, frame)[:3, 3]
    jacobian: list[list[Numeric]] = [[0.0] * nv for _ in range(6)]
    for motion, rotation, position, *dofs in path:
        for j, s in motion.moved_by(*dofs):
            turn = rotation @ s.angular
            slide = rotation @ s.linear + ops.cross(turn, target - position)
            for i in range(3):
                jacobian[i][j], jacobian[i + 3][j] = slide[i], turn[i]
    return ops.array(jacobian).reshape(6, nv)


# --- centre of mass and momentum ---


def center_of_mass(bodies: Sequence[AnyBody], moving: Sequence[AnyMotion], placed: Sequence[Placement]) -> Numeric:
    """(3,) Σ m r / Σ m of the moving bodies, in ground axes; the origin where nothing with mass moves."""
    moment: Numeric = np.zeros(3)
    for body, motion, here in zip(bodies, moving, placed, strict=True):
        moment = moment + body.mass * here.position + here.rotation @ body.own_moment(motion)
    return moment / total_mass(bodies)


def total_mass(bodies: Sequence[AnyBody]) -> float:
    """Of the moving bodies [kg]; 1 where they have none, so that it divides their moments of 0."""
    return float(sum(body.mass for body in bodies)) or 1.0


def centroidal_momentum(bodies: Sequence[AnyBody], moving: Sequence[AnyMotion], placed: Sequence[Placement]) -> Numeric:
    """(6,) linear momentum, and angular momentum about the centre of mass, in ground axes."""
    momentum = SpatialVector(np.zeros(3), np.zeros(3))
    for body, motion, here in zip(bodies, moving, placed, strict=True):
        twist = SpatialVector(here.rotation.T @ here.linear, here.rotation.T @ here.angular)
        momentum = momentum + _in_ground_axes(body.own_inertia(motion) @ motion.with_rate(twist), here)
    return _about_center(momentum, center_of_mass(bodies, moving, placed))


def centroidal_momentum_matrix(
    sweeps: Unrolled, moving: Sequence[AnyMotion], placed: Sequence[Placement], nv: int
) -> Numeric:
    """A (6, nv): the momentum of `centroidal_momentum` of a mechanism on a fixed base is A v (Orin, Goswami and Lee
    2013). A column moves the body of the dof and its descendants as one rigid body."""
    composite = composite_inertias(sweeps, moving)
    center = center_of_mass(sweeps.bodies, moving, placed)
    matrix: list[list[Numeric]] = [[0.0] * nv for _ in range(6)]
    for column, motion, inertia, here in zip(sweeps.by_v(np.arange(nv)), moving, composite, placed, strict=True):
        for j, s in zip(column, motion.hinge, strict=True):
            for i, element in enumerate(_about_center(_in_ground_axes(inertia @ s, here), center)):
                matrix[i][j] = element
    return ops.array(matrix).reshape(6, nv)


def _in_ground_axes(momentum: AnyVector, here: Placement) -> SpatialVector:
    """Linear momentum, and angular momentum about the origin of the ground, from a body's momenta about its own."""
    linear = here.rotation @ momentum.linear
    return SpatialVector(linear, here.rotation @ momentum.angular + ops.cross(here.position, linear))


def _about_center(momentum: SpatialVector, center: Numeric) -> Numeric:
    """(6,) with the angular momentum about the centre of mass instead of the origin of the ground."""
    return ops.concatenate([momentum.linear, momentum.angular - ops.cross(center, momentum.linear)])
