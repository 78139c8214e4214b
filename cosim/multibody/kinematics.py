"""Functions of positions and velocities alone: poses, Jacobians, momentum, energies, the mass matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cosim import ops
from cosim.compile.pytree import Pytree
from cosim.multibody.dynamics import (
    Body,
    BodyMotion,
    body_motions,
    joint_motion,
    rigid_inertia,
    to_body,
    transport_force,
    transport_inertia,
)
from cosim.multibody.joints import JointKind
from cosim.multibody.mechanism import Pose
from cosim.multibody.spatial import SpatialInertia, SpatialVector
from cosim.multibody.sweeps import Column, Sweeps, Unrolled
from cosim.types import Numeric


def kinetic_energy(sweeps: Sweeps, q: Numeric, v: Numeric, t: Numeric = 0.0) -> Numeric:
    """Σ ½ m v² + v·(ω × m c) + ½ ω·J ω, and ½ J_rotor q̇² of the rotors [J]."""

    def step(joint: JointKind, body: Body, above: SpatialVector, q: Numeric, v: Numeric) -> Pytree:
        motion = joint_motion(joint, body, above.angular, q, v, t)
        carried = above.linear + ops.cross(above.angular, motion.position)
        velocity = to_body(body, motion, carried) + motion.slip
        return SpatialVector(velocity, motion.omega), (SpatialVector(velocity, motion.omega), v)

    def own(joint: JointKind, body: Body, moving: tuple[SpatialVector, Numeric]) -> Numeric:
        twist, v = moving
        rotors = ops.total(rotor * v[i] * v[i] for i, rotor in enumerate(body.rotor))
        return 0.5 * (twist.dot(rigid_inertia(body) @ twist) + rotors)

    still = SpatialVector(np.zeros(3), np.zeros(3))
    return sweeps.gather(own, sweeps.outward(step, still, sweeps.by_q(q), sweeps.by_v(v)))


def potential_energy(sweeps: Sweeps, q: Numeric, gravity: Numeric, t: Numeric = 0.0) -> Numeric:
    """−Σ m g·r, zero with every centre of mass at the height of the ground's origin [J]."""

    def step(joint: JointKind, body: Body, above: tuple[Numeric, Numeric], q: Numeric) -> Pytree:
        height, g = above  # −g·r of the body's origin, g in the body's axes
        motion = joint_motion(joint, body, np.zeros(3), q, np.zeros(joint.nv), t)
        below = height - g @ motion.position, to_body(body, motion, g)
        return below, below

    def own(joint: JointKind, body: Body, placed: tuple[Numeric, Numeric]) -> Numeric:
        height, g = placed
        return body.mass * height - g @ body.moment

    return sweeps.gather(own, sweeps.outward(step, (0.0, gravity), sweeps.by_q(q)))


def mass_matrix(sweeps: Unrolled, q: Numeric, nv: int, t: Numeric = 0.0) -> Numeric:
    """M(q) (nv, nv) by the composite-rigid-body algorithm: column s moves the body and its descendants as one rigid
    body, and its force is projected on every hinge on the path to the ground."""

    def own(joint: JointKind, body: Body, motion: BodyMotion) -> SpatialInertia:
        return rigid_inertia(body)

    def compose(joint: JointKind, body: Body, inertia: SpatialInertia, motion: BodyMotion) -> Pytree:
        return transport_inertia(body, motion, inertia), inertia

    moving = body_motions(sweeps, q, np.zeros(nv), t)
    composite = sweeps.inward(own, compose, moving)
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


def mass_diagonal(sweeps: Unrolled, q: Numeric, nv: int, t: Numeric = 0.0) -> Numeric:
    """The diagonal (nv,) of M(q), in O(n)."""

    def own(joint: JointKind, body: Body, motion: BodyMotion) -> SpatialInertia:
        return rigid_inertia(body)

    def compose(joint: JointKind, body: Body, inertia: SpatialInertia, motion: BodyMotion) -> Pytree:
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

    def step(joint: JointKind, body: Body, above: Placement, motion: BodyMotion) -> tuple[Placement, Placement]:
        rotation = above.rotation @ body.rotation @ motion.turn
        reach = above.rotation @ motion.position
        linear = above.linear + ops.cross(above.angular, reach) + rotation @ motion.slip
        here = Placement(rotation, above.position + reach, rotation @ motion.omega, linear)
        return here, here

    return sweeps.outward(step, GROUND_PLACEMENT, moving)


def body_path(sweeps: Unrolled, k: int) -> list[int]:
    """The bodies from the ground to body k."""
    path = []
    while k >= 0:
        path.insert(0, k)
        k = sweeps.parents[k]
    return path


def frame_pose(sweeps: Unrolled, q: Numeric, body: int, frame: Pose, t: Numeric = 0.0) -> Numeric:
    """The homogeneous matrix (4, 4) of a frame fixed to a body (−1: the ground), in ground axes."""
    rotation, position = np.eye(3), np.zeros(3)
    coordinates = sweeps.by_q(q)
    for k in body_path(sweeps, body):
        here = sweeps.bodies[k]
        motion = joint_motion(sweeps.kinds[k], here, np.zeros(3), coordinates[k], np.zeros(sweeps.kinds[k].nv), t)
        position = position + rotation @ motion.position
        rotation = rotation @ here.rotation @ motion.turn
    position = position + rotation @ frame.position
    rotation = rotation @ frame.rotation
    return ops.array([[*rotation[i], position[i]] for i in range(3)] + [[0.0, 0.0, 0.0, 1.0]])


def frame_jacobian(sweeps: Unrolled, q: Numeric, nv: int, body: int, frame: Pose, t: Numeric = 0.0) -> Numeric:
    """J (6, nv): velocity of the frame's origin and angular velocity, both in ground axes, = J v."""
    target = frame_pose(sweeps, q, body, frame, t)[:3, 3]
    coordinates, columns = sweeps.by_q(q), sweeps.by_v(np.arange(nv))
    jacobian: list[list[Numeric]] = [[0.0] * nv for _ in range(6)]
    rotation, position = np.eye(3), np.zeros(3)
    for k in body_path(sweeps, body):
        here = sweeps.bodies[k]
        motion = joint_motion(sweeps.kinds[k], here, np.zeros(3), coordinates[k], np.zeros(sweeps.kinds[k].nv), t)
        position = position + rotation @ motion.position
        rotation = rotation @ here.rotation @ motion.turn
        for j, s in zip(columns[k], motion.hinge, strict=True):
            turn = rotation @ s.angular
            slide = rotation @ s.linear + ops.cross(turn, target - position)
            for i in range(3):
                jacobian[i][j], jacobian[i + 3][j] = slide[i], turn[i]
    return ops.array(jacobian).reshape(6, nv)


# --- centre of mass and momentum ---


def center_of_mass(bodies: Sequence[Body], placed: Sequence[Placement]) -> Numeric:
    """(3,) Σ m r / Σ m of the moving bodies, in ground axes; the origin where nothing with mass moves."""
    moment: Numeric = np.zeros(3)
    for body, here in zip(bodies, placed, strict=True):
        moment = moment + body.mass * here.position + here.rotation @ body.moment
    return moment / total_mass(bodies)


def total_mass(bodies: Sequence[Body]) -> float:
    """Of the moving bodies [kg]; 1 where they have none, so that it divides their moments of 0."""
    return float(sum(body.mass for body in bodies)) or 1.0


def centroidal_momentum(bodies: Sequence[Body], placed: Sequence[Placement]) -> Numeric:
    """(6,) linear momentum, and angular momentum about the centre of mass, in ground axes."""
    linear, angular = np.zeros(3), np.zeros(3)
    for body, here in zip(bodies, placed, strict=True):
        moment, inertia = _about_origin(body, here)
        at_origin = here.linear - ops.cross(here.angular, here.position)
        linear = linear + body.mass * at_origin + ops.cross(here.angular, moment)
        angular = angular + ops.cross(moment, at_origin) + inertia @ here.angular
    return ops.concatenate([linear, angular - ops.cross(center_of_mass(bodies, placed), linear)])


def centroidal_momentum_matrix(
    sweeps: Unrolled, moving: Sequence[BodyMotion], placed: Sequence[Placement], nv: int
) -> Numeric:
    """A (6, nv): the momentum of `centroidal_momentum` of a mechanism on a fixed base is A v (Orin, Goswami and Lee
    2013). A column moves the body of the dof and its descendants as one rigid body."""
    bodies, columns = sweeps.bodies, sweeps.by_v(np.arange(nv))
    mass = [body.mass for body in bodies]
    sums = [_about_origin(body, here) for body, here in zip(bodies, placed, strict=True)]
    moments, inertias = [moment for moment, _ in sums], [inertia for _, inertia in sums]
    for k in reversed(range(len(bodies))):
        if (parent := sweeps.parents[k]) >= 0:
            mass[parent] = mass[parent] + mass[k]
            moments[parent], inertias[parent] = moments[parent] + moments[k], inertias[parent] + inertias[k]
    center = center_of_mass(bodies, placed)
    matrix: list[list[Numeric]] = [[0.0] * nv for _ in range(6)]
    for k, (motion, here) in enumerate(zip(moving, placed, strict=True)):
        for j, s in zip(columns[k], motion.hinge, strict=True):
            turn = here.rotation @ s.angular
            at_origin = here.rotation @ s.linear - ops.cross(turn, here.position)
            linear = mass[k] * at_origin + ops.cross(turn, moments[k])
            angular = ops.cross(moments[k], at_origin) + inertias[k] @ turn - ops.cross(center, linear)
            for i in range(3):
                matrix[i][j], matrix[i + 3][j] = linear[i], angular[i]
    return ops.array(matrix).reshape(6, nv)


def _about_origin(body: Body, here: Placement) -> tuple[Numeric, Numeric]:
    """(m c (3,), inertia (3, 3)) of a body about the origin of the ground, in its axes."""
    c, p = here.rotation @ body.moment, here.position
    moment = c + body.mass * p
    # of the body about its own origin, moved by p: Σ m r·r 1 − r rᵀ with r = p + c'
    mixed = ops.dot(p, c) + ops.dot(c, p) + body.mass * ops.dot(p, p)
    outer = p[:, None] * c[None, :]
    outer = outer + outer.T + body.mass * (p[:, None] * p[None, :])
    return moment, here.rotation @ body.inertia @ here.rotation.T + mixed * np.eye(3) - outer
