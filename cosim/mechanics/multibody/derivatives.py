"""Exact derivatives of the dynamics.

Inverse dynamics τ = ID(q, v, q̈): by differentiation of its sweep, or in closed form for many dofs
(`analytical_derivatives`). Forward and hybrid dynamics of a tree: from these by the implicit function theorem
(Carpentier and Mansard, Analytical derivatives of rigid body dynamics algorithms, RSS 2018): ∂q̈/∂x = −M⁻¹ ∂ID/∂x at
the solution q̈, ∂q̈/∂τ = M⁻¹. With constraints the constrained solution itself is differentiated.

∂/∂q is along the velocities of the dofs: column k is the change per unit of motion of dof k, as `Model.integrate` adds
it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from cosim.core import ops
from cosim.core.compile.elimination import Elimination
from cosim.core.compile.jacobian import Jacobian
from cosim.core.errors import CompileError
from cosim.core.types import Numeric
from cosim.mechanics.multibody.analytical_derivatives import SINGLE, TreeDerivatives
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.inertial_parameters import inertial_parameters

MOST_DOFS = 64  # their code grows with the cube
# from so many dofs of the tree on, derivatives in closed form are shorter than by the sweep
CLOSED_FORM_FROM = 7


class DynamicsDerivatives:
    """Of the equations of a mechanism; q (nq,), all others (nv,)."""

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
            by_position, by_velocity = tree.derivatives(self.equations.v_map.expand(qdd))
            by_position, by_velocity, mass = self._projected(by_position, by_velocity, tree.mass_matrix)
            return by_position, by_velocity, mass
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
            inverse = Elimination(mass, symmetric=True).inverse()
            qdd = inverse @ (tau - independent.project(tree.nonlinear_effects))
            by_position, by_velocity = self._projected(*tree.derivatives(independent.expand(qdd)))
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
        equations = self.equations
        forces = bool(equations.constraints.members) or equations.constraints.apply_forces
        single = all(joint.kind in SINGLE for joint in equations.tree.joints)
        return single and not forces and not equations.timed and equations.nv_tree >= CLOSED_FORM_FROM

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
