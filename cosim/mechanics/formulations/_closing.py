"""What equations in joint coordinates have in common: mimic joints, constraints by multipliers, the solution, and
orthonormal factors for those that eliminate the constraints.

A formulation gives the equations of the open tree, A q̈ = B + τ. Mimic joints leave the independent coordinates, and
constraints G q̈ + γ = 0 act by their multipliers,

    Pᵀ A P q̈ = Pᵀ B + τ + Gᵀ λ,    G q̈ = −γ    (Wittenburg 1977, −A q̈ + B + Hᵀ λ = 0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """Pᵀ B, with the efforts of springs, force laws and elastic links on dofs."""
    return state.equations.v_map.project(right + state.dof_efforts)


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


# square of what is left of a column, relative to it, below which it is a combination of those before it
DEPENDENT_SQUARE = 1e-12


class Orthonormal:
    """Orthonormal factors C = Q R of numbers or symbols, without a choice of pivots.

    By the modified Gram–Schmidt process from the last column to the first: of the partial velocities of a tree those at
    the tips have the fewest elements. Column i is Σ_k R_ki Q_k with k ≥ i.

    Q: columns of length 1, or 0 for a column that depends on those after it, where these may occur. Where they may
    not, a column of which less than `least` is left, relative to it, has no direction: its elements are not numbers."""

    def __init__(self, columns: Sequence[Numeric], may_depend: bool = False, least: float = 0.0) -> None:
        n, left = len(columns), list(columns)
        self.Q: list[Numeric] = [None] * n
        self._R: list[dict[int, Numeric]] = [{} for _ in range(n)]  # of column i: k -> R_ki, k > i
        self._inverse: list[Numeric] = [None] * n  # 1 / R_kk, 0 for a dependent column
        for k in reversed(range(n)):
            square = left[k] @ left[k]
            if may_depend:
                kept = square > DEPENDENT_SQUARE * (columns[k] @ columns[k])
                length = ops.sqrt(ops.where(kept, square, 1.0))
                self._inverse[k] = ops.where(kept, 1.0 / length, 0.0)
            else:
                self._inverse[k] = ops.reciprocal(ops.sqrt(square))
                if least:
                    kept = square > least**2 * (columns[k] @ columns[k])
                    self._inverse[k] = ops.where(kept, self._inverse[k], np.nan)
            self.Q[k] = left[k] * self._inverse[k]
            for i in range(k):
                self._R[i][k] = self.Q[k] @ left[i]
                left[i] = left[i] - self.Q[k] * self._R[i][k]

    def solve_transposed(self, right: Numeric) -> Numeric:
        """R⁻ᵀ b: Σ_k R_ki x_k = b_i."""
        x: list[Numeric] = [0.0] * len(self.Q)
        for i in reversed(range(len(x))):
            known = ops.sum(self._R[i][k] * x[k] for k in range(i + 1, len(x)))
            x[i] = (right[i] - known) * self._inverse[i]
        return ops.array(x) if x else np.zeros(0)

    def solve(self, right: Numeric) -> Numeric:
        """R⁻¹ b, b: (n,)."""
        x: list[Numeric] = [0.0] * len(self.Q)
        for k in range(len(x)):
            known = ops.sum(self._R[i][k] * x[i] for i in range(k))
            x[k] = (right[k] - known) * self._inverse[k]
        return ops.array(x) if x else np.zeros(0)

    def along(self, vector: Numeric) -> Numeric:
        """Qᵀ b."""
        return ops.array([column @ vector for column in self.Q]) if self.Q else np.zeros(0)
