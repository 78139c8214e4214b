"""Exact derivatives of the dynamics.

Inverse dynamics τ = ID(q, v, q̈): by differentiation of its sweep, or in closed form for many dofs. Forward and hybrid
dynamics of a tree: from these by the implicit function theorem (Carpentier and Mansard, Analytical derivatives of rigid
body dynamics algorithms, RSS 2018): ∂q̈/∂x = −M⁻¹ ∂ID/∂x at the solution q̈, ∂q̈/∂τ = M⁻¹. With constraints the
constrained solution itself is differentiated.

∂/∂q is along the velocities of the dofs: column k is the change per unit of motion of dof k, as `Model.integrate` adds
it.

The closed form costs O(n d) for depth d (Singh, Russo and Wensing, Efficient analytical derivatives of rigid-body
dynamics using spatial vector algebra, IEEE Robotics and Automation Letters 7, 2022). All vectors are in ground axes at
the ground's origin, so composites are sums. Of a dof: its motion s, ψ̇ = v × s and ψ̈ = a × s + v × ψ̇ with the motion
v, a of its base. Of a body with its descendants: inertia I, force f, and the operator B of velocity-dependent forces, B
u = Σ 2 m u_ω × ṗ at each point p: it depends on the momentum P = Σ m ṗ and C = Σ m ṗ pᵀ only. For a dof i and a dof j
between its base and the ground:

    ∂τᵢ/∂qⱼ = sᵢ·(B ψ̇ⱼ + I ψ̈ⱼ)        ∂τⱼ/∂qᵢ = sⱼ·(B ψ̇ᵢ + I ψ̈ᵢ + sᵢ ×* f)        (B, I, f of body i)
    ∂τᵢ/∂vⱼ = sᵢ·(B sⱼ + 2 I ψ̇ⱼ)        ∂τⱼ/∂vᵢ = sⱼ·(B sᵢ + 2 I ψ̇ᵢ)                 Mᵢⱼ = sᵢ·I sⱼ
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim.core import ops
from cosim.core.compile.elimination import Elimination
from cosim.core.compile.jacobian import Jacobian
from cosim.core.errors import CompileError
from cosim.core.types import Numeric
from cosim.mechanics.multibody.bodies import Body, BodyMotion
from cosim.mechanics.multibody.dynamics import body_motions
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.inertial_parameters import inertial_parameters
from cosim.mechanics.multibody.joints import entry_of
from cosim.mechanics.multibody.spatial import SpatialVector
from cosim.mechanics.multibody.sweeps import Unrolled

MOST_DOFS = 64  # their code grows with the cube
# from so many dofs of the tree on, derivatives in closed form are shorter than by the sweep
CLOSED_FORM_FROM = 7


class DynamicsDerivatives:
    """The derivatives of the equations of a mechanism; q (nq,), all others (nv,)."""

    def __init__(self, equations: MechanismEquations, nq: int, nv: int) -> None:
        """Raises CompileError for a mechanism of more than MOST_DOFS dofs."""
        if nv > MOST_DOFS:
            raise CompileError(f"the derivatives of {nv} dofs would be too long; a mechanism may have {MOST_DOFS}")
        self.equations, self.nq, self.nv = equations, nq, nv

    def inverse_dynamics_derivatives(
        self, q: Numeric, v: Numeric, qdd: Numeric, *t: Numeric
    ) -> tuple[Numeric, Numeric, Numeric]:
        """(∂τ/∂q, ∂τ/∂v, ∂τ/∂q̈ = M), (nv, nv) each."""
        if self._closed_form:
            tree = self._tree(q, v)
            by_position, by_velocity = self._with_springs(*tree.derivatives(self.equations.v_map.expand(qdd)))
            by_position, by_velocity, mass = self._projected(by_position, by_velocity, tree.mass_matrix)
            return by_position, by_velocity, self._with_rotors(mass)
        by_state = self._inverse(ops.concatenate([q, v]), qdd, *t)
        by_coordinates, by_velocity = by_state[:, : self.nq], by_state[:, self.nq :]
        return by_coordinates @ self._motion(q), by_velocity, self.equations.mass_matrix(q, *t)

    def forward_dynamics_derivatives(
        self, q: Numeric, v: Numeric, tau: Numeric, *t: Numeric
    ) -> tuple[Numeric, Numeric, Numeric]:
        """(∂q̈/∂q, ∂q̈/∂v, ∂q̈/∂τ), (nv, nv) each."""
        n = self.nv
        if self._closed_form:
            tree, independent = self._tree(q, v), self.equations.v_map
            (mass,) = self._projected(tree.mass_matrix)
            inverse = Elimination(self._with_rotors(mass), symmetric=True).inverse()
            held = independent.project(tree.nonlinear_effects) + self.equations.joint_spring_effort(q)
            qdd = inverse @ (tau - held)
            of_tree = self._with_springs(*tree.derivatives(independent.expand(qdd)))
            by_position, by_velocity = self._projected(*of_tree)
            negative = -inverse
            return negative @ by_position, negative @ by_velocity, inverse
        if not self.equations.is_open_tree:
            found = self._forward(ops.concatenate([q, v, tau]), *t)
            by_coordinates, by_velocity, by_effort = np.split(found, [self.nq, self.nq + n], axis=1)
            return by_coordinates @ self._motion(q), by_velocity, by_effort
        qdd = self.equations.forward_dynamics(q, v, tau, *t)
        by_position, by_velocity, mass = self.inverse_dynamics_derivatives(q, v, qdd, *t)
        inverse = Elimination(mass, symmetric=True).inverse()
        return -(inverse @ by_position), -(inverse @ by_velocity), inverse

    def hybrid_dynamics_derivatives(
        self, q: Numeric, v: Numeric, qdd: Numeric, tau: Numeric, prescribed: Numeric, *t: Numeric
    ) -> tuple[Numeric, Numeric, Numeric]:
        """(∂y/∂q, ∂y/∂v, ∂y/∂x), (nv, nv) each; of each dof x is what is given of q̈ and τ, y is the other one.

        In D_q dq + D_v dv + M dq̈ = dτ the columns of y go to the left: A dy = B dx − D_q dq − D_v dv.
        """
        n, x = self.nv, ops.where(prescribed, qdd, tau)
        if not self.equations.is_open_tree:
            found = self._hybrid(ops.concatenate([q, v, x]), prescribed, *t)
            by_coordinates, by_velocity, by_given = np.split(found, [self.nq, self.nq + n], axis=1)
            return by_coordinates @ self._motion(q), by_velocity, by_given
        accelerations, _ = self.equations.hybrid_dynamics(q, v, qdd, tau, prescribed, *t)
        by_position, by_velocity, mass = self.inverse_dynamics_derivatives(q, v, accelerations, *t)
        left = Elimination(ops.where(prescribed, -np.eye(n), mass))
        right = ops.where(prescribed, -mass, np.eye(n))
        return left.solve(-by_position), left.solve(-by_velocity), left.solve(right)

    def reactions_derivatives(
        self, q: Numeric, v: Numeric, tau: Numeric, *t: Numeric
    ) -> tuple[Numeric, Numeric, Numeric]:
        """(∂λ/∂q, ∂λ/∂v, ∂λ/∂τ), (m, nv) each."""
        found = self._reactions(ops.concatenate([q, v, tau]), *t)
        by_coordinates, by_velocity, by_effort = np.split(found, [self.nq, self.nq + self.nv], axis=1)
        return by_coordinates @ self._motion(q), by_velocity, by_effort

    # --- with respect to the inertial parameters of the bodies, at the mechanism's own ---

    def inverse_dynamics_regressor(self, q: Numeric, v: Numeric, qdd: Numeric, *t: Numeric) -> Numeric:
        """Y (nv, 10 n): ID = Y π + what does not depend on π."""
        return self._regressor(self._parameters, q, v, qdd, *t)

    def forward_dynamics_regressor(self, q: Numeric, v: Numeric, tau: Numeric, *t: Numeric) -> Numeric:
        """∂q̈/∂π (nv, 10 n)."""
        if not self.equations.is_open_tree:
            return self._forward_by_inertia(self._parameters, q, v, tau, *t)
        qdd = self.equations.forward_dynamics(q, v, tau, *t)
        mass = self.equations.mass_matrix(q, *t)
        return Elimination(mass, symmetric=True).solve(-self.inverse_dynamics_regressor(q, v, qdd, *t))

    @property
    def _parameters(self) -> np.ndarray:
        return inertial_parameters(self.equations.tree).ravel()

    @cached_property
    def _regressor(self) -> Jacobian:
        def efforts(pi: Numeric, *state: Numeric) -> Numeric:
            return self.equations.with_inertias(pi).inverse_dynamics(*state)

        shapes = [(self._parameters.size,), (self.nq,), (self.nv,), (self.nv,), *self._time]
        return Jacobian(efforts, shapes, "regressor")

    @cached_property
    def _forward_by_inertia(self) -> Jacobian:
        def accelerations(pi: Numeric, *state: Numeric) -> Numeric:
            return self.equations.with_inertias(pi).forward_dynamics(*state)

        shapes = [(self._parameters.size,), (self.nq,), (self.nv,), (self.nv,), *self._time]
        return Jacobian(accelerations, shapes, "forward_regressor")

    @cached_property
    def _closed_form(self) -> bool:
        """Whether there are only joints of one dof, mimics included, and enough of them."""
        equations, tree = self.equations, self.equations.tree
        constraints = equations.constraints
        forces = bool(constraints.members or constraints.springs or constraints.laws or constraints.elastic)
        constant = all(entry_of(joint).constant for joint in tree.joints)
        single = constant and all(kind.nv == 1 for kind in tree.kinds)
        return single and not forces and not equations.timed and equations.nv_tree >= CLOSED_FORM_FROM

    def _with_springs(self, by_position: Numeric, by_velocity: Numeric) -> tuple[Numeric, Numeric]:
        """∂τ/∂q and ∂τ/∂v of all dofs of the tree with the springs in its joints."""
        springs = self.equations.constraints.joint_springs
        return by_position if springs is None else by_position + np.diag(springs.stiffness), by_velocity

    def _tree(self, q: Numeric, v: Numeric) -> TreeDerivatives:
        equations = self.equations
        positions, velocities = equations.q_map.positions(q), equations.v_map.expand(v)
        return TreeDerivatives(equations.sweeps, positions, velocities, equations.gravity)

    def _projected(self, *matrices: Numeric) -> tuple[Numeric, ...]:
        """Pᵀ A P of matrices of all dofs of the tree."""
        if self.equations.v_map.trivial:
            return matrices
        P = self.equations.v_map.matrix
        return tuple(P.T @ matrix @ P for matrix in matrices)

    def _with_rotors(self, mass: Numeric) -> Numeric:
        """M (nv, nv) with the rotors that turn with several joints."""
        coupled = self.equations.coupled_inertia
        return mass + coupled.matrix if coupled.acts else mass

    @cached_property
    def _inverse(self) -> Jacobian:
        def efforts(state: Numeric, qdd: Numeric, *t: Numeric) -> Numeric:
            return self.equations.inverse_dynamics(state[: self.nq], state[self.nq :], qdd, *t)

        return Jacobian(efforts, [(self.nq + self.nv,), (self.nv,), *self._time], "inverse_derivatives")

    @cached_property
    def _forward(self) -> Jacobian:
        def accelerations(z: Numeric, *t: Numeric) -> Numeric:
            q, v, tau = z[: self.nq], z[self.nq : self.nq + self.nv], z[self.nq + self.nv :]
            return self.equations.forward_dynamics(q, v, tau, *t)

        return Jacobian(accelerations, [(self.nq + 2 * self.nv,), *self._time], "forward_derivatives")

    @cached_property
    def _hybrid(self) -> Jacobian:
        def unknown(z: Numeric, prescribed: Numeric, *t: Numeric) -> Numeric:
            q, v, x = z[: self.nq], z[self.nq : self.nq + self.nv], z[self.nq + self.nv :]
            given = ops.where(prescribed, x, 0.0), ops.where(prescribed, 0.0, x)
            qdd, tau = self.equations.hybrid_dynamics(q, v, *given, prescribed, *t)
            return ops.where(prescribed, tau, qdd)

        shapes = [(self.nq + 2 * self.nv,), (self.nv,), *self._time]
        return Jacobian(unknown, shapes, "hybrid_derivatives")

    @cached_property
    def _reactions(self) -> Jacobian:
        def multipliers(z: Numeric, *t: Numeric) -> Numeric:
            q, v, tau = z[: self.nq], z[self.nq : self.nq + self.nv], z[self.nq + self.nv :]
            return self.equations.reactions(q, v, tau, *t)

        return Jacobian(multipliers, [(self.nq + 2 * self.nv,), *self._time], "reactions_derivatives")

    @property
    def _time(self) -> list[tuple[int, ...]]:
        return [()] if self.equations.timed else []

    def _motion(self, q: Numeric) -> Numeric:
        """(nq, nv): rates of the coordinates per velocity of each dof."""
        columns = [self.equations.rate(q, unit) for unit in np.eye(self.nv)]
        return ops.array([[column[k] for column in columns] for k in range(self.nq)]).reshape(self.nq, self.nv)


REST = np.zeros(3)


@dataclass
class Inertia:
    """The inertia of a body: m, m c, J about the ground's origin."""

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
    """The flow 2 P and 2 C of a body: the velocity-dependent part of its equations."""

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
