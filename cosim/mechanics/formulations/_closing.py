"""What equations in joint coordinates have in common: mimic joints, constraints by multipliers, the solution.

A formulation gives the equations of the open tree, A q̈ = B + τ. Mimic joints leave the independent coordinates, and
constraints G q̈ + γ = 0 act by their multipliers,

    Pᵀ A P q̈ = Pᵀ B + τ + Gᵀ λ,    G q̈ = −γ    (Wittenburg 1977, −A q̈ + B + Hᵀ λ = 0).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.compile.elimination import Elimination
from cosim.core.types import Numeric
from cosim.mechanics.formulations import check_state
from cosim.mechanics.formulations._tree_state import TreeState
from cosim.mechanics.multibody.equations import MechanismEquations

# what is left of a pivot, relative to the element before the elimination, below which a row depends on those before it
DEPENDENT = 1e-12


class Rows(NamedTuple):
    """Constraints on accelerations, G q̈ + γ = 0, in the independent coordinates."""

    matrix: Numeric  # G (m, nv)
    bias: Numeric  # γ (m,)


def constraint_rows(state: TreeState) -> Rows:
    """The rows of loops and other constraints that do not depend on others, Baumgarte stabilisation included."""
    equations = state.equations
    constraints = equations.constraints
    residual, rate, rows = constraints.rows(state.placed, state.q, state.v, equations.gravity, state.t)
    rows = constraints.stabilised(rows, residual, rate)
    matrix: list[list[Numeric]] = []
    biases: list[Numeric] = []
    for row in (rows[r] for r in constraints.solved):
        elements, bias = dict(row.efforts), row.bias
        for body, wrench in row.wrenches.items():
            rotation = state.placed[body].rotation
            force, moment = rotation @ wrench.linear, rotation @ wrench.angular
            for dof, u in state.partial_velocities[body].items():
                elements[dof] = elements.get(dof, 0.0) + force @ u.linear + moment @ u.angular
            rest = state.remainders[body]
            bias = bias + force @ rest.linear + moment @ rest.angular
        independent = equations.v_map.project_elements(elements)
        matrix.append([independent.get(dof, 0.0) for dof in range(equations.nv)])
        biases.append(bias)
    return Rows(ops.array(matrix).reshape(len(biases), equations.nv), ops.array(biases))


def projected(state: TreeState, matrix: Numeric) -> Numeric:
    """Pᵀ A P"""
    v_map = state.equations.v_map
    return matrix if v_map.trivial else v_map.matrix.T @ matrix @ v_map.matrix


def impressed(state: TreeState, right: Numeric) -> Numeric:
    """Pᵀ B, with the efforts of force laws on dofs."""
    return state.equations.v_map.project(right + state.law_efforts)


def with_multipliers(matrix: Numeric, right: Numeric, rows: Rows) -> Numeric:
    """q̈ of A q̈ = right + Gᵀ λ, G q̈ = −γ; the λ of a row that depends on those before it is 0."""
    inverse = Elimination(matrix, symmetric=True)
    free = inverse.solve(right)
    G, gamma = rows
    if not len(gamma):
        return free
    response = inverse.solve(G.T)  # A⁻¹ Gᵀ
    return free + response @ semidefinite_solution(G @ response, -gamma - G @ free)


def semidefinite_solution(matrix: Numeric, right: Numeric) -> Numeric:
    """x (n,) with W x = b for a positive semidefinite W: LDLᵀ in which dependent rows get x = 0."""
    n = len(right)
    W = [[matrix[i, j] for j in range(n)] for i in range(n)]
    scale, b, gains = [W[i][i] for i in range(n)], list(right), []
    for k in range(n):
        pivot = W[k][k]
        independent = pivot > DEPENDENT * scale[k]
        gains.append(ops.where(independent, 1.0 / ops.where(independent, pivot, 1.0), 0.0))
        for i in range(k + 1, n):
            factor = W[k][i] * gains[k]
            b[i] = b[i] - factor * b[k]
            for j in range(i, n):
                W[i][j] = W[i][j] - factor * W[k][j]
    x: list[Numeric] = [0.0] * n
    for k in reversed(range(n)):
        x[k] = gains[k] * (b[k] - ops.sum(W[k][j] * x[j] for j in range(k + 1, n)))
    return ops.array(x)


TreeEquations = Callable[[TreeState], tuple[Numeric, Numeric]]


class ByMultipliers:
    """The formulation of a mechanism whose open tree has the equations A q̈ = B + τ, `tree_equations(state)`."""

    def __init__(self, equations: MechanismEquations, tree_equations: TreeEquations) -> None:
        self.equations, self.tree_equations = equations, tree_equations

    def forward_dynamics(self, q: Numeric, v: Numeric, tau: Numeric, t: Numeric = 0.0) -> Numeric:
        """q̈ (nv,): see `Model.forward_dynamics`."""
        check_state(self.equations, q, v, tau)
        A, B, G, gamma = self.matrices(q, v, t)
        return with_multipliers(A, B + tau, Rows(G, gamma))

    def matrices(self, q: Numeric, v: Numeric, t: Numeric = 0.0) -> tuple[Numeric, Numeric, Numeric, Numeric]:
        """A (nv, nv), B (nv,), G (m, nv), γ (m,) of A q̈ = B + τ + Gᵀ λ, G q̈ = −γ."""
        state = TreeState.of(self.equations, q, v, t)
        A, B = self.tree_equations(state)
        return projected(state, A), impressed(state, B), *constraint_rows(state)


def symmetric_matrix(n: int, elements: dict[tuple[int, int], Numeric]) -> Numeric:
    """(n, n) of the elements (i, j), each given once; others are 0."""
    matrix: list[list[Numeric]] = [[0.0] * n for _ in range(n)]
    for (i, j), value in elements.items():
        matrix[i][j] = matrix[j][i] = value
    return ops.array(matrix).reshape(n, n)


def vector(n: int, elements: dict[int, Numeric]) -> Numeric:
    """(n,) of the elements; others are 0."""
    return ops.array([elements.get(i, 0.0) for i in range(n)]) if n else np.zeros(0)
