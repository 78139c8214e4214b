"""Derivatives of the inverse dynamics of a tree in closed form, in O(n d) for depth d (Singh, Russo and Wensing,
Efficient analytical derivatives of rigid-body dynamics using spatial vector algebra, IEEE Robotics and Automation
Letters 7, 2022).

All vectors are in ground axes at the ground's origin, so composites are sums. Of a dof: its motion s, ψ̇ = v × s and
ψ̈ = a × s + v × ψ̇ with the motion v, a of its base. Of a body with its descendants: inertia I, force f, and the
operator B of velocity-dependent forces, B u = Σ 2 m u_ω × ṗ at each point p: it depends on the momentum P = Σ m ṗ and
C = Σ m ṗ pᵀ only. For a dof i and a dof j between its base and the ground:

    ∂τᵢ/∂qⱼ = sᵢ·(B ψ̇ⱼ + I ψ̈ⱼ)        ∂τⱼ/∂qᵢ = sⱼ·(B ψ̇ᵢ + I ψ̈ᵢ + sᵢ ×* f)        (B, I, f of body i)
    ∂τᵢ/∂vⱼ = sᵢ·(B sⱼ + 2 I ψ̇ⱼ)        ∂τⱼ/∂vᵢ = sⱼ·(B sᵢ + 2 I ψ̇ᵢ)                 Mᵢⱼ = sᵢ·I sⱼ
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.bodies import Body, BodyMotion
from cosim.mechanics.multibody.dynamics import body_motions
from cosim.mechanics.multibody.spatial import SpatialVector
from cosim.mechanics.multibody.sweeps import Unrolled

SINGLE = ("revolute", "continuous", "prismatic", "screw")  # kinds of joints of one dof with a constant hinge
REST = np.zeros(3)


@dataclass
class Inertia:
    """m, m c, J about the ground's origin."""

    mass: Numeric
    moment: Numeric
    matrix: Numeric

    def __add__(self, other: Inertia) -> Inertia:
        return Inertia(self.mass + other.mass, self.moment + other.moment, self.matrix + other.matrix)

    def __matmul__(self, u: SpatialVector) -> SpatialVector:
        linear = self.mass * u.linear + ops.cross(u.angular, self.moment)
        return SpatialVector(linear, ops.cross(self.moment, u.linear) + self.matrix @ u.angular)


@dataclass
class Flow:
    """2 P and 2 C of a body: the velocity-dependent part of its equations."""

    momentum: Numeric
    spread: Numeric

    def __add__(self, other: Flow) -> Flow:
        return Flow(self.momentum + other.momentum, self.spread + other.spread)

    @property
    def trace(self) -> Numeric:
        return self.spread[0, 0] + self.spread[1, 1] + self.spread[2, 2]

    def force(self, w: Numeric) -> SpatialVector:
        """B w"""
        return SpatialVector(ops.cross(w, self.momentum), self.trace * w - self.spread @ w)

    def row(self, s: SpatialVector) -> Numeric:
        """∂(s · B w)/∂w (3,)."""
        return ops.cross(self.momentum, s.linear) + self.trace * s.angular - self.spread.T @ s.angular


@dataclass
class TreeDerivatives:
    """Of τ = ID(q, v, q̈) of a tree of single dofs; q, v, q̈ (n,) of the tree."""

    sweeps: Unrolled
    q: Numeric
    v: Numeric
    gravity: Numeric

    def __post_init__(self) -> None:
        n = len(self.sweeps.bodies)
        moving = body_motions(self.sweeps, self.q, self.v, 0.0)
        self.motions = _ground_motions(self.sweeps, moving, self.v)
        # accelerations, forces and composites without q̈
        self.bias: list[SpatialVector] = []
        self.inertias: list[Inertia] = []
        self.flows: list[Flow] = []
        self.forces: list[SpatialVector] = []
        for k, (body, motion) in enumerate(zip(self.sweeps.bodies, self.motions, strict=True)):
            above = self.bias[self.parents[k]] if self.parents[k] >= 0 else SpatialVector(-self.gravity, REST)
            self.bias.append(above + motion.psi * self.v[k])
            inertia, flow = _in_ground_axes(body, motion)
            self.inertias.append(inertia)
            self.flows.append(flow)
            self.forces.append(inertia @ self.bias[k] + flow.force(0.5 * motion.velocity.angular))
        self.own = list(self.inertias)
        for k in range(n - 1, -1, -1):
            if (p := self.parents[k]) >= 0:
                self.inertias[p] = self.inertias[p] + self.inertias[k]
                self.flows[p] = self.flows[p] + self.flows[k]
                self.forces[p] = self.forces[p] + self.forces[k]
        self.pushes = [self.inertias[k] @ motion.s for k, motion in enumerate(self.motions)]

    @property
    def parents(self) -> Sequence[int]:
        return self.sweeps.parents

    def path(self, k: int) -> list[int]:
        """The dofs from the base of dof k to the ground."""
        found = []
        while (k := self.parents[k]) >= 0:
            found.append(k)
        return found

    @property
    def nonlinear_effects(self) -> Numeric:
        """h (n,)"""
        return ops.array([motion.s.dot(force) for motion, force in zip(self.motions, self.forces, strict=True)])

    @property
    def mass_matrix(self) -> Numeric:
        """(n, n), rotors included."""
        n = len(self.motions)
        m: list[list[Numeric]] = [[0.0] * n for _ in range(n)]
        for i in range(n):
            m[i][i] = self.motions[i].s.dot(self.pushes[i]) + self.sweeps.bodies[i].rotor[0]
            for j in self.path(i):
                m[i][j] = m[j][i] = self.motions[j].s.dot(self.pushes[i])
        return ops.array(m).reshape(n, n)

    def derivatives(self, qdd: Numeric) -> tuple[Numeric, Numeric]:
        """(∂τ/∂q, ∂τ/∂v), (n, n) each, at q̈."""
        n, motions = len(self.motions), self.motions
        extra: list[SpatialVector] = []
        for k, motion in enumerate(motions):
            own = motion.s * qdd[k]
            extra.append(extra[self.parents[k]] + own if self.parents[k] >= 0 else own)
        changes = [self.own[k] @ extra[k] for k in range(n)]
        for k in range(n - 1, -1, -1):
            if (p := self.parents[k]) >= 0:
                changes[p] = changes[p] + changes[k]
        rates = []
        for k, motion in enumerate(motions):
            p = self.parents[k]
            above = self.bias[p] + extra[p] if p >= 0 else SpatialVector(-self.gravity, REST)
            rate = _cross(above, motion.s)
            rates.append(rate + _cross(motion.base, motion.psi) if p >= 0 else rate)
        twice = [motion.psi * 2.0 for motion in motions]
        by_q: list[list[Numeric]] = [[0.0] * n for _ in range(n)]
        by_v: list[list[Numeric]] = [[0.0] * n for _ in range(n)]
        for i, motion in enumerate(motions):
            inertia, flow, force = self.inertias[i], self.flows[i], self.forces[i] + changes[i]
            row, push = flow.row(motion.s), self.pushes[i]
            along_v = flow.force(motion.s.angular) + inertia @ twice[i]
            along_q = flow.force(motion.psi.angular) + inertia @ rates[i] + _cross_force(motion.s, force)
            by_q[i][i], by_v[i][i] = motion.s.dot(along_q), motion.s.dot(along_v)
            for j in self.path(i):
                other = motions[j]
                by_q[i][j] = row @ other.psi.angular + push.dot(rates[j])
                by_v[i][j] = row @ other.s.angular + push.dot(twice[j])
                by_q[j][i], by_v[j][i] = other.s.dot(along_q), other.s.dot(along_v)
        return ops.array(by_q).reshape(n, n), ops.array(by_v).reshape(n, n)


@dataclass
class _BodyMotion:
    """A body's motion in ground axes, at the ground's origin: its axes and origin, its velocity and its base's, the
    hinge s and ψ̇ = v × s."""

    rotation: Numeric
    position: Numeric
    velocity: SpatialVector
    base: SpatialVector
    s: SpatialVector
    psi: SpatialVector


def _ground_motions(sweeps: Unrolled, moving: Sequence[BodyMotion], v: Numeric) -> list[_BodyMotion]:
    found: list[_BodyMotion] = []
    for k, (body, motion) in enumerate(zip(sweeps.bodies, moving, strict=True)):
        parent = sweeps.parents[k]
        rotation, position = body.rotation @ motion.turn, motion.position
        base = SpatialVector(REST, REST)
        if parent >= 0:
            above = found[parent]
            rotation, position = above.rotation @ rotation, above.position + above.rotation @ position
            base = above.velocity
        (hinge,) = motion.hinge
        angular = rotation @ hinge.angular
        s = SpatialVector(rotation @ hinge.linear + ops.cross(position, angular), angular)
        psi = _cross(base, s) if parent >= 0 else SpatialVector(REST, REST)
        found.append(_BodyMotion(rotation, position, base + s * v[k], base, s, psi))
    return found


def _in_ground_axes(body: Body, motion: _BodyMotion) -> tuple[Inertia, Flow]:
    """Of a body alone."""
    r, p = motion.rotation, motion.position
    about_origin = 0.5 * np.trace(body.inertia) * np.eye(3) - body.inertia  # Σ m p pᵀ, in the body's axes
    first = r @ body.moment
    carried, shifted = r @ about_origin, first + body.mass * p
    second = np.empty((3, 3), dtype=object)
    for i in range(3):
        for j in range(i, 3):
            second[i, j] = second[j, i] = carried[i] @ r[j] + first[i] * p[j] + p[i] * shifted[j]
    second = ops.array(second.tolist())
    moment = first + body.mass * p
    trace = second[0, 0] + second[1, 1] + second[2, 2]
    velocity = motion.velocity * 2.0
    momentum = body.mass * velocity.linear + ops.cross(velocity.angular, moment)
    turning = ops.array([ops.cross(velocity.angular, second[:, k]) for k in range(3)]).T
    inertia = Inertia(body.mass, moment, trace * np.eye(3) - second)
    return inertia, Flow(momentum, _outer(velocity.linear, moment) + turning)


def _outer(a: Numeric, b: Numeric) -> Numeric:
    return ops.array([[a[i] * b[j] for j in range(3)] for i in range(3)])


def _cross(a: SpatialVector, b: SpatialVector) -> SpatialVector:
    """a × b of motions."""
    linear = ops.cross(a.angular, b.linear) + ops.cross(a.linear, b.angular)
    return SpatialVector(linear, ops.cross(a.angular, b.angular))


def _cross_force(a: SpatialVector, f: SpatialVector) -> SpatialVector:
    """a ×* f of a motion and a force."""
    angular = ops.cross(a.angular, f.angular) + ops.cross(a.linear, f.linear)
    return SpatialVector(ops.cross(a.angular, f.linear), angular)
