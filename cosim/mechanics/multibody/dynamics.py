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

from cosim.core import ops
from cosim.core.compile.pytree import Pytree
from cosim.core.types import Numeric
from cosim.mechanics.multibody.bodies import (
    AnyBody,
    AnyInertia,
    AnyMotion,
    AnyVector,
    transport,
    transport_force,
    transport_inertia,
)
from cosim.mechanics.multibody.joints import JointKind
from cosim.mechanics.multibody.spatial import SpatialVector
from cosim.mechanics.multibody.sweeps import Column, Sweeps


class JointColumn(NamedTuple):
    """The load-independent part of the scalar equation of one degree of freedom."""

    response: AnyVector  # M s
    U: Numeric
    gain: Numeric  # 1 / U, 0 where the motion is prescribed
    drive: AnyVector  # gain · M s


def body_motions(sweeps: Sweeps, q: Numeric, v: Numeric, t: Numeric = 0.0) -> Column:
    """The `BodyMotion` of every body."""

    def step(joint: JointKind, body: AnyBody, above: Pytree, q: Numeric, v: Numeric) -> tuple[Pytree, AnyMotion]:
        motion = joint.motion(body, above, q, v, t)
        return motion.below, motion

    return sweeps.outward(step, np.zeros(3), sweeps.by_q(q), sweeps.by_v(v))


def release_column(
    M: AnyInertia, s: AnyVector, rotor: Numeric, prescribed_dof: Numeric
) -> tuple[AnyInertia, JointColumn]:
    """M projected on the complement of the motion along s (M itself where s is prescribed), and the column of s."""
    response = M @ s
    U = s.dot(response) + rotor
    inverse = ops.reciprocal(ops.where(prescribed_dof, 1.0, U))
    gain = ops.where(prescribed_dof, 0.0, inverse)
    left = M.without(s, response, gain, ops.where(prescribed_dof, 1.0, rotor * inverse))
    return left, JointColumn(response, U, gain, response * gain)


def articulate(
    M: AnyInertia, body: AnyBody, motion: AnyMotion, prescribed_dof: Numeric
) -> tuple[AnyInertia, tuple[JointColumn, ...]]:
    """M without the motions of the joint that are not prescribed, and the columns of the joint."""
    columns: list[JointColumn] = []
    for s, rotor, h in reversed(list(zip(motion.hinge, body.rotor, prescribed_dof, strict=True))):
        M, column = release_column(M, s, rotor, h)
        columns.insert(0, column)
    return M, tuple(columns)


def joint_load(
    Q: AnyVector, motion: AnyMotion, columns: Sequence[JointColumn], *given: Numeric
) -> tuple[AnyVector, tuple[Numeric, ...]]:
    """The part of the force Q that the joint transmits, and u of its columns; given: q̈, τ and which are prescribed."""
    loads: list[Numeric] = []
    for s, column, qdd, tau, prescribed_dof in reversed(list(zip(motion.hinge, columns, *given, strict=True))):
        u = s.dot(Q)
        free = ops.where(prescribed_dof, 0.0, tau + u)  # an effort that is not used may be anything
        Q = Q - column.drive * free - column.response * ops.where(prescribed_dof, qdd, 0.0)
        loads.insert(0, u)
    return Q, tuple(loads)


def accelerate(
    a: AnyVector,
    motion: AnyMotion,
    columns: Sequence[JointColumn],
    loads: Sequence[Numeric],
    *given: Numeric,
) -> tuple[AnyVector, tuple[Numeric, Numeric]]:
    """The body's acceleration from its joint base's, and (q̈, τ) of the joint."""
    accelerations, efforts = [], []
    for s, column, u, qdd, tau, prescribed_dof in zip(motion.hinge, columns, loads, *given, strict=True):
        # few operations depend on a: the next body's a waits for them
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

    def own(joint: JointKind, body: AnyBody, motion: AnyMotion, *_: Numeric) -> tuple[AnyInertia, AnyVector]:
        return body.own_inertia(motion), body.own_force(motion)

    def gather(
        joint: JointKind, body: AnyBody, sums: tuple[AnyInertia, AnyVector], motion: AnyMotion, *given: Numeric
    ) -> Pytree:
        M, Q = sums
        left, columns = articulate(M, body, motion, given[-1])
        Q, loads = joint_load(Q - M @ motion.bias, motion, columns, *given)
        return (transport_inertia(body, motion, left), transport_force(body, motion, Q)), (columns, loads)

    def spread(
        joint: JointKind, body: AnyBody, a: AnyVector, motion: AnyMotion, inner: Pytree, *given: Numeric
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
        joint: JointKind, body: AnyBody, parent: tuple[Pytree, AnyVector], q: Numeric, v: Numeric, qdd: Numeric
    ) -> Pytree:
        above, a = parent
        motion = joint.motion(body, above, q, v, t)
        a = transport(body, motion, a) + motion.bias
        for i, s in enumerate(motion.hinge):
            a = a + s * qdd[i]
        return (motion.below, a), (motion, a)

    def own(joint: JointKind, body: AnyBody, moving: tuple[AnyMotion, AnyVector], qdd: Numeric) -> AnyVector:
        motion, a = moving
        return body.own_inertia(motion) @ a - body.own_force(motion)

    def pass_on(
        joint: JointKind,
        body: AnyBody,
        force: AnyVector,
        moving: tuple[AnyMotion, AnyVector],
        qdd: Numeric,
    ) -> tuple[AnyVector, Numeric]:
        motion, _ = moving
        efforts = ops.array([s.dot(force) + body.rotor[i] * qdd[i] for i, s in enumerate(motion.hinge)])
        return transport_force(body, motion, force), efforts

    accelerations = sweeps.by_v(qdd)
    root = np.zeros(3), SpatialVector(-gravity, np.zeros(3))
    moving = sweeps.outward(accelerate, root, sweeps.by_q(q), sweeps.by_v(v), accelerations)
    return sweeps.vector(sweeps.inward(own, pass_on, moving, accelerations))


def articulated_resistance(sweeps: Sweeps, q: Numeric, nv: int) -> Column:
    """Per body two numbers of each degree of freedom, (nv_k, 2): U, the inertia against its effort while the joints of
    descendants are free, and the largest that the inertia of body and descendants could be in any direction.

    A dof without inertia is treated as prescribed, so that it does not hide the others.
    """

    def own(joint: JointKind, body: AnyBody, motion: AnyMotion) -> tuple[AnyInertia, AnyInertia]:
        return body.own_inertia(motion), body.own_inertia(motion)

    def gather(
        joint: JointKind, body: AnyBody, inertias: tuple[AnyInertia, AnyInertia], motion: AnyMotion
    ) -> tuple[tuple[AnyInertia, AnyInertia], Numeric]:
        M, rigid = inertias
        resistance: list[Numeric] = []
        for s, rotor in reversed(list(zip(motion.hinge, body.rotor, strict=True))):
            U = s.dot(M @ s) + rotor
            M, _ = release_column(M, s, rotor, not U > 0.0)
            resistance.insert(0, [U, rigid.largest(s) + rotor])
        passed = transport_inertia(body, motion, M), transport_inertia(body, motion, rigid)
        return passed, ops.array(resistance).reshape(-1, 2)

    return sweeps.inward(own, gather, body_motions(sweeps, q, np.zeros(nv)))
