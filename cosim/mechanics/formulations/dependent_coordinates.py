"""Loops by coordinates that depend on others, without multipliers.

The rates of the constraints, G q̇ + a₀ = 0, give m dependent velocities from the independent ones,

    q̇ = K q̇_s + …,    K = ∂q̇/∂q̇_s: the unit matrix for the independent rows, −G_d⁻¹ G_s for the dependent ones,

and with the efforts P_j of inertia and Q_j of forces in the open tree the equation of an independent coordinate is

    Q_s = Σ_j (∂q_j/∂q_s) (P_j − Q_j)    over the dependent j, so that Kᵀ (A q̈ − B − τ) = 0, q̈ = K q̈_s + κ.

Non-holonomic rows take part in the same way (Maggi's equations). The dependent coordinates are those whose columns of
G are the least dependent on each other. With numbers they are chosen in every state, and a state where every choice
fails is refused; machine code has the choice of one state with closed loops, and its results are no numbers where
that one fails.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from cosim.core import ops
from cosim.core.compile.elimination import Elimination
from cosim.core.errors import InputError
from cosim.core.types import Numeric
from cosim.mechanics.formulations import Formulation, check_state
from cosim.mechanics.formulations._closing import Orthonormal, Rows, constraint_rows, impressed, projected
from cosim.mechanics.formulations._tree_state import TreeState, why_not_rigid
from cosim.mechanics.formulations.composite_bodies import tree_equations
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.nearest import CLOSURE_TOLERANCE, ClosureSearch, separate_parts

ABOUT = "loops by dependent coordinates, eliminated by the constraint Jacobian; no multipliers"
SOURCE = "Maggi, Principii della teoria matematica del movimento dei corpi, 1896"

SINGULAR = 1e-10  # smallest pivot of G relative to the largest, below which it has fewer independent rows
TRIALS = 6  # configurations near which loops are closed to choose the coordinates of machine code


def refusal(equations: MechanismEquations) -> str | None:
    return why_not_rigid(equations)


def load(equations: MechanismEquations) -> Formulation:
    return DependentCoordinates(equations)


class DependentCoordinates:
    """The formulation in independent coordinates, which eliminates the dependent ones in each state."""

    def __init__(self, equations: MechanismEquations) -> None:
        self.equations = equations

    def forward_dynamics(self, q: Numeric, v: Numeric, tau: Numeric, t: Numeric = 0.0) -> Numeric:
        """q̈ (nv,): see `Model.forward_dynamics`. Raises InputError for numbers in a singular configuration."""
        check_state(self.equations, q, v, tau)
        state = TreeState.of(self.equations, q, v, t)
        A, B = tree_equations(state)
        A, right = projected(state, A), impressed(state, B) + tau
        rows = constraint_rows(state)
        traced = any(map(ops.is_symbolic, (rows.matrix, rows.bias)))
        K, kappa = eliminated(rows, self.choice if traced else self.dependent(rows.matrix))
        independent = Elimination(K.T @ A @ K, symmetric=True).solve(K.T @ (right - A @ kappa))
        return K @ independent + kappa

    def dependent(self, G: np.ndarray) -> list[int]:
        """The dependent dofs for a constraint Jacobian G (m, nv). Raises InputError where its rows are dependent."""
        if not np.isfinite(G).all():
            return list(range(min(G.shape)))  # any choice gives NaN
        pivots, dofs = pivoted(G)
        if len(pivots) < len(G) or (pivots <= SINGULAR * pivots.max(initial=0.0)).any():
            raise InputError(
                f"the configuration is singular: {self._dependent_row(G)} depends on the other rows of the constraints"
                " there, so it determines no coordinate; use a formulation with multipliers",
                "dependent_coordinates",
            )
        return sorted(dofs[: len(G)])

    def dependent_row(self, q: np.ndarray, t: float = 0.0, least: float | None = None) -> str | None:
        """Where the choice of machine code fails, so that its results are no numbers, the row that depends on the
        others in these coordinates; see `formulations.dependent_row`."""
        least = SINGULAR if least is None else least
        state = TreeState.of(self.equations, q, np.zeros(self.equations.nv), t)
        G = np.asarray(constraint_rows(state).matrix)[:, self.choice]
        with np.errstate(all="ignore"):
            columns = Orthonormal(list(G.T), least=least).Q
        return None if all(np.isfinite(column).all() for column in columns) else self._dependent_row(G)

    def _dependent_row(self, G: np.ndarray) -> str:
        constraints = self.equations.constraints
        _, order = pivoted(G.T)
        rank = int(np.linalg.matrix_rank(G, tol=SINGULAR * np.abs(G).max(initial=1.0)))
        r = constraints.solved[order[min(rank, len(order) - 1)]]
        members, first = constraints.members, constraints.owners.index(constraints.owners[r])
        constraint = members[constraints.owners[r]]
        return f"'{constraint.name}/{constraint.law.rows[r - first].name}'"

    @cached_property
    def choice(self) -> list[int]:
        """The dependent dofs of machine code: the best conditioned ones of several states with closed loops.
        Raises InputError where the rows are dependent in all of them."""
        best, chosen, G = 0.0, [], np.zeros((0, self.equations.nv))
        rng = np.random.default_rng(0)
        for k in range(TRIALS):
            q = self._closed(0.1 + 0.5 * k / TRIALS, rng)
            G = np.asarray(constraint_rows(TreeState.of(self.equations, q, np.zeros(self.equations.nv), 0.0)).matrix)
            pivots, dofs = pivoted(G)
            quality = float(pivots.min() / pivots.max()) if len(pivots) == len(G) > 0 and pivots.max() > 0.0 else 0.0
            if quality > best:
                best, chosen = quality, sorted(dofs[: len(G)])
        return chosen or self.dependent(G)

    def _closed(self, distance: float, rng: np.random.Generator) -> np.ndarray:
        """A configuration near the neutral one, with closed loops where they can be closed from there."""
        equations = self.equations
        neutral = np.concatenate([kind.space.neutral for kind in equations.kinds])
        guess = q = np.asarray(equations.integrate(neutral, rng.uniform(-distance, distance, equations.nv)), float)
        movable, inexact = np.ones(equations.nv, dtype=bool), equations.constraints.inexact_closure
        with np.errstate(all="ignore"):  # trial positions may overflow; they are discarded
            for rows, dofs in separate_parts(equations.closure.pattern, movable):
                q = ClosureSearch.of(equations, equations.closure, rows, dofs, guess, 0.0, inexact).nearest(q)
            exact = np.delete(equations.closure.whole(q, 0.0)[0], list(inexact))
            closed = np.abs(exact).max(initial=0.0) < CLOSURE_TOLERANCE
        return q if closed else guess


def pivoted(matrix: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """(|pivots|, columns in the order of their choice) of the orthogonal factors with column pivoting."""
    from scipy.linalg import qr

    if not matrix.size:
        return np.zeros(0), list(range(matrix.shape[1]))
    factors: Any = qr(matrix, mode="r", pivoting=True)
    triangle, columns = factors
    return np.abs(np.diag(triangle)), columns.tolist()


def eliminated(rows: Rows, dependent: list[int]) -> tuple[Numeric, Numeric]:
    """(K (nv, nv − m), κ (nv,)): all accelerations q̈ = K q̈_s + κ that satisfy the rows."""
    G, gamma = rows
    n = G.shape[1]
    independent = [dof for dof in range(n) if dof not in dependent]
    QR = Orthonormal([G[:, dof] for dof in dependent], least=SINGULAR)
    K: list[list[Numeric]] = [[0.0] * len(independent) for _ in range(n)]
    kappa: list[Numeric] = [0.0] * n
    for s, dof in enumerate(independent):
        K[dof][s] = 1.0
        for j, value in zip(dependent, QR.solve(QR.along(-G[:, dof])), strict=True):
            K[j][s] = value
    for j, value in zip(dependent, QR.solve(QR.along(-gamma)), strict=True):
        kappa[j] = value
    return ops.array(K).reshape(n, len(independent)), ops.array(kappa)
