"""The separate-body method (Vereshchagin 1974; articulated bodies) in O(n), for any mix of prescribed and free joints.

Notation: M, Q are the articulated inertia and force of a body and its descendants,
a = C a_p + S q̈ + a′ its acceleration, R = M a − Q the force through its joint, τ = Sᵀ R (+ rotor) the
effort along it. A joint with several degrees of freedom is a chain of single ones: each column s of S obeys
one scalar equation,

    U q̈ + (M s)·a − u = τ,      U = sᵀ M s + J_rotor,   u = s·Q̃,   Q̃ = Q − M a′,

which is solved for τ where the motion of the joint is prescribed and for q̈ elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cosim import ops
from cosim.compile.pytree import Pytree
from cosim.multibody.joints import JointKind
from cosim.multibody.spatial import SpatialInertia, SpatialVector
from cosim.multibody.sweeps import Column, Sweeps
from cosim.types import Numeric


class Body(NamedTuple):
    """Constants of a body: its joint's frame in the parent (H, d), its mass, m·c and J about its origin,
    and the reflected rotor inertia on each velocity of its joint."""

    rotation: Numeric
    position: Numeric
    mass: Numeric
    moment: Numeric
    inertia: Numeric
    rotor: Numeric


class BodyMotion(NamedTuple):
    """Pose and motion of a body relative to its parent."""

    turn: Numeric  # Q: the body's axes in the joint's frame
    position: Numeric  # d: its origin in the parent's axes
    hinge: tuple[SpatialVector, ...]  # columns of S, body axes
    slip: Numeric  # velocity of its origin in the joint's frame, body axes
    drift: SpatialVector  # the part of the velocity in the joint that depends on time alone
    omega: Numeric  # angular velocity, body axes
    bias: SpatialVector  # a′


class JointColumn(NamedTuple):
    """The load-independent part of the scalar equation of one degree of freedom."""

    response: SpatialVector  # M s
    U: Numeric
    gain: Numeric  # 1 / U, 0 where the motion is prescribed
    drive: SpatialVector  # gain · M s


def to_body(body: Body, motion: BodyMotion, a: Numeric) -> Numeric:
    """A vector from the parent's axes to the body's: Qᵀ Hᵀ a."""
    return motion.turn.T @ (body.rotation.T @ a)


def to_parent(body: Body, motion: BodyMotion, a: Numeric) -> Numeric:
    """A vector from the body's axes to the parent's: H Q a."""
    return body.rotation @ (motion.turn @ a)


def joint_motion(joint: JointKind, body: Body, omega: Numeric, q: Numeric, v: Numeric, t: Numeric) -> BodyMotion:
    """The kinematics of one joint; `omega` is the parent's angular velocity in the parent's axes."""
    turn, slide = joint.place(q, t)
    hinge, drift, bias = joint.hinge(q, v, t)
    slip = drift.linear + ops.total(s.linear * v[i] for i, s in enumerate(hinge))
    spin = drift.angular + ops.total(s.angular * v[i] for i, s in enumerate(hinge))
    motion = BodyMotion(turn, body.position + body.rotation @ slide, hinge, slip, drift, omega, bias)
    from_parent = to_body(body, motion, omega)
    centripetal = ops.cross(omega, ops.cross(omega, motion.position))
    linear = to_body(body, motion, centripetal) + 2.0 * ops.cross(from_parent, slip) + bias.linear
    angular = ops.cross(from_parent, spin) + bias.angular
    return motion._replace(omega=from_parent + spin, bias=SpatialVector(linear, angular))


def transport(body: Body, motion: BodyMotion, a: SpatialVector) -> SpatialVector:
    """C a_p: the acceleration of the body if its joint were fixed and all angular velocities 0."""
    linear = a.linear + ops.cross(a.angular, motion.position)
    return SpatialVector(to_body(body, motion, linear), to_body(body, motion, a.angular))


def transport_force(body: Body, motion: BodyMotion, force: SpatialVector) -> SpatialVector:
    """Cᵀ Q: a force on the body, taken at the parent's origin."""
    f, n = to_parent(body, motion, force.linear), to_parent(body, motion, force.angular)
    return SpatialVector(f, n + ops.cross(motion.position, f))


def transport_inertia(body: Body, motion: BodyMotion, m: SpatialInertia) -> SpatialInertia:
    """Cᵀ M C."""
    return m.rotated(motion.turn).rotated(body.rotation).translated(motion.position)


def rigid_inertia(body: Body) -> SpatialInertia:
    """M of the body alone."""
    return SpatialInertia(body.mass * np.eye(3), ops.skew(body.moment), body.inertia)


def gyroscopic_force(body: Body, omega: Numeric) -> SpatialVector:
    """Q of the body alone: −ω × (ω × m c) and −ω × J ω."""
    centrifugal = ops.cross(omega, ops.cross(omega, body.moment))
    return SpatialVector(-centrifugal, -ops.cross(omega, body.inertia @ omega))


def body_motions(sweeps: Sweeps, q: Numeric, v: Numeric, t: Numeric = 0.0) -> Column:
    """The `BodyMotion` of every body."""

    def step(joint: JointKind, body: Body, omega: Numeric, q: Numeric, v: Numeric) -> tuple[Numeric, BodyMotion]:
        motion = joint_motion(joint, body, omega, q, v, t)
        return motion.omega, motion

    return sweeps.outward(step, np.zeros(3), sweeps.by_q(q), sweeps.by_v(v))


def release_column(
    M: SpatialInertia, s: SpatialVector, rotor: Numeric, prescribed_dof: Numeric
) -> tuple[SpatialInertia, JointColumn]:
    """M projected on the complement of the motion along s (M itself where s is prescribed), and the column of s."""
    response = M @ s
    U = s.dot(response) + rotor
    inverse = ops.reciprocal(ops.where(prescribed_dof, 1.0, U))
    gain = ops.where(prescribed_dof, 0.0, inverse)
    left = M.without(s, response, gain, ops.where(prescribed_dof, 1.0, rotor * inverse))
    return left, JointColumn(response, U, gain, response * gain)


def articulate(
    M: SpatialInertia, body: Body, motion: BodyMotion, prescribed_dof: Numeric
) -> tuple[SpatialInertia, tuple[JointColumn, ...]]:
    """M without the motions of the joint that are not prescribed, and the columns of the joint."""
    columns: list[JointColumn] = []
    for s, rotor, h in reversed(list(zip(motion.hinge, body.rotor, prescribed_dof, strict=True))):
        M, column = release_column(M, s, rotor, h)
        columns.insert(0, column)
    return M, tuple(columns)


def joint_load(
    Q: SpatialVector, motion: BodyMotion, columns: Sequence[JointColumn], *given: Numeric
) -> tuple[SpatialVector, tuple[Numeric, ...]]:
    """The part of the force Q that the joint transmits, and u of its columns; given: q̈, τ and which are prescribed."""
    loads: list[Numeric] = []
    for s, column, qdd, tau, prescribed_dof in reversed(list(zip(motion.hinge, columns, *given, strict=True))):
        u = s.dot(Q)
        free = ops.where(prescribed_dof, 0.0, tau + u)  # an effort that is not used may be anything
        Q = Q - column.drive * free - column.response * ops.where(prescribed_dof, qdd, 0.0)
        loads.insert(0, u)
    return Q, tuple(loads)


def accelerate(
    a: SpatialVector,
    motion: BodyMotion,
    columns: Sequence[JointColumn],
    loads: Sequence[Numeric],
    *given: Numeric,
) -> tuple[SpatialVector, tuple[Numeric, Numeric]]:
    """The body's acceleration from that of its joint's base, and (q̈, τ) of the joint."""
    accelerations, efforts = [], []
    for s, column, u, qdd, tau, prescribed_dof in zip(motion.hinge, columns, loads, *given, strict=True):
        # a few operations follow from a: that of the next body waits for them
        free = ops.where(prescribed_dof, 0.0, tau + u)
        q_acc = free * column.gain - column.drive.dot(a) + ops.where(prescribed_dof, qdd, 0.0)
        efforts.append(ops.where(prescribed_dof, column.U * qdd + column.response.dot(a) - u, tau))
        accelerations.append(q_acc)
        a = a + s * q_acc
    return a, (ops.array(accelerations), ops.array(efforts))


def hybrid_dynamics(
    sweeps: Sweeps,
    q: Numeric,
    v: Numeric,
    qdd: Numeric,
    tau: Numeric,
    prescribed: Numeric,
    gravity: Numeric,
    t: Numeric = 0.0,
) -> tuple[Numeric, Numeric]:
    """(q̈, τ) of all dofs from q̈ of the prescribed ones and τ of the others.

    q: (nq,); v, qdd, tau: (nv,); prescribed: (nv,) truth values, constants or symbols; gravity: (3,).
    """

    def own(joint: JointKind, body: Body, motion: BodyMotion, *_: Numeric) -> tuple[SpatialInertia, SpatialVector]:
        return rigid_inertia(body), gyroscopic_force(body, motion.omega)

    def gather(
        joint: JointKind, body: Body, sums: tuple[SpatialInertia, SpatialVector], motion: BodyMotion, *given: Numeric
    ) -> Pytree:
        M, Q = sums
        left, columns = articulate(M, body, motion, given[-1])
        Q, loads = joint_load(Q - M @ motion.bias, motion, columns, *given)
        return (transport_inertia(body, motion, left), transport_force(body, motion, Q)), (columns, loads)

    def spread(
        joint: JointKind, body: Body, a: SpatialVector, motion: BodyMotion, inner: Pytree, *given: Numeric
    ) -> Pytree:
        a, result = accelerate(transport(body, motion, a), motion, *inner, *given)
        return a + motion.bias, result

    moving = body_motions(sweeps, q, v, t)
    given = sweeps.by_v(qdd), sweeps.by_v(tau), sweeps.by_v(prescribed)
    inner = sweeps.inward(own, gather, moving, *given)
    result = sweeps.outward(spread, SpatialVector(-gravity, np.zeros(3)), moving, inner, *given)
    return sweeps.vector(sweeps.pick(result, 0)), sweeps.vector(sweeps.pick(result, 1))


def inverse_dynamics(
    sweeps: Sweeps, q: Numeric, v: Numeric, qdd: Numeric, gravity: Numeric, t: Numeric = 0.0
) -> Numeric:
    """τ (nv,) required for q̈ (nv,): the case of §2 with every dof prescribed, where no articulated inertia is
    needed. R = M a − Q per body, summed over its descendants."""

    def accelerate(
        joint: JointKind, body: Body, parent: tuple[Numeric, SpatialVector], q: Numeric, v: Numeric, qdd: Numeric
    ) -> Pytree:
        omega, a = parent
        motion = joint_motion(joint, body, omega, q, v, t)
        pull = ops.total(s.linear * qdd[i] for i, s in enumerate(motion.hinge))
        twist = ops.total(s.angular * qdd[i] for i, s in enumerate(motion.hinge))
        a = transport(body, motion, a) + motion.bias + SpatialVector(pull, twist)
        return (motion.omega, a), (motion, a)

    def own(joint: JointKind, body: Body, moving: tuple[BodyMotion, SpatialVector], qdd: Numeric) -> SpatialVector:
        motion, a = moving
        return rigid_inertia(body) @ a - gyroscopic_force(body, motion.omega)

    def pass_on(
        joint: JointKind,
        body: Body,
        force: SpatialVector,
        moving: tuple[BodyMotion, SpatialVector],
        qdd: Numeric,
    ) -> tuple[SpatialVector, Numeric]:
        motion, _ = moving
        efforts = ops.array([s.dot(force) + body.rotor[i] * qdd[i] for i, s in enumerate(motion.hinge)])
        return transport_force(body, motion, force), efforts

    accelerations = sweeps.by_v(qdd)
    root = np.zeros(3), SpatialVector(-gravity, np.zeros(3))
    moving = sweeps.outward(accelerate, root, sweeps.by_q(q), sweeps.by_v(v), accelerations)
    return sweeps.vector(sweeps.inward(own, pass_on, moving, accelerations))


def articulated_resistance(sweeps: Sweeps, q: Numeric, nv: int) -> Column:
    """U of each degree of freedom, per body: the inertia against its effort while the joints of descendants are free.

    A dof without inertia is treated as prescribed, so that it does not hide the others.
    """

    def own(joint: JointKind, body: Body, motion: BodyMotion) -> SpatialInertia:
        return rigid_inertia(body)

    def gather(joint: JointKind, body: Body, M: SpatialInertia, motion: BodyMotion) -> tuple[SpatialInertia, Numeric]:
        resistance: list[Numeric] = []
        for s, rotor in reversed(list(zip(motion.hinge, body.rotor, strict=True))):
            U = s.dot(M @ s) + rotor
            M, _ = release_column(M, s, rotor, not U > 0.0)
            resistance.insert(0, U)
        return transport_inertia(body, motion, M), ops.array(resistance)

    return sweeps.inward(own, gather, body_motions(sweeps, q, np.zeros(nv)))
