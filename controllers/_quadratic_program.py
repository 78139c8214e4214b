"""A convex quadratic program with bounds on linear functions of its variables, by a fixed number of iterations.

    minimise ½ xᵀ P x + qᵀ x,   lower ≤ G x ≤ upper,   P > 0

by the alternating direction method of multipliers (Boyd et al., Foundations and Trends in Machine Learning 3(1), 2011;
with the over-relaxation of OSQP, Stellato et al., Math. Prog. Comp. 12, 2020). As its factorisation is known, an
iteration is a product with a matrix and a choice per row. A soft row may be violated, at a quadratic cost. If
the unconstrained minimum keeps all bounds, it is the result, exactly.
"""

from __future__ import annotations

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric, State

RELAXATION = 1.6
FEW_ACTIVE = 3.0  # a larger step is faster where most rows are inactive, as measured


class QuadraticProgram:
    """P: (n, n), G: (m, n); softness: (m,) 0 for hard rows; others keep about this part of what
    violates them. data: what the solution needs of these matrices, by name."""

    def __init__(self, p: Array, g: Array, softness: Array, iterations: int) -> None:
        self._iterations = iterations
        # rows of equal weight: the diagonal of G P⁻¹ Gᵀ is 1
        scale = 1.0 / np.sqrt(np.einsum("ij,ji->i", g, np.linalg.solve(p, g.T)))
        self.g = g = scale[:, None] * g
        # the step that contracts fastest without over-relaxation and with all rows active lies between the eigenvalues
        # (Ghadimi et al., IEEE Trans. Automatic Control 60(3), 2015)
        values = np.linalg.eigvalsh(g @ np.linalg.solve(p, g.T))
        values = values[values > 1e-9 * values[-1]]
        self.step = FEW_ACTIVE / float(np.sqrt(values[0] * values[-1]))
        self.data: State = {
            "g": g,
            "scale": scale,
            "step": np.array(self.step),
            "taken": 1.0 / (1.0 + self.step * softness),  # part of a violation that is taken back
            "free": -np.linalg.inv(p),
            "inverse": np.linalg.inv(p + self.step * g.T @ g),
        }

    def initial(self) -> Array:
        """The state (2 m,) that passes from one solution to the next: rows and their multipliers, over the step."""
        return np.zeros(2 * len(self.g))

    def solve(
        self, q: Numeric, lower: Numeric, upper: Numeric, state: Numeric, data: State | None = None
    ) -> tuple[Numeric, Numeric]:
        """(x (n,), next state). data: of another program of this size, as `data`, among others."""
        of = self.data if data is None else data
        m, lower, upper = len(self.g), of["scale"] * lower, of["scale"] * upper
        # the loop takes what changes with time as arguments, the rest is constants of its code
        varied = [name for name, value in of.items() if name in self.data and ops.is_symbolic(value)]

        def iterate(state: Numeric, q: Numeric, lower: Numeric, upper: Numeric, *values: Numeric) -> Numeric:
            return _iterate(of | dict(zip(varied, values, strict=True)), state, q, lower, upper)

        state = ops.repeat(iterate, self._iterations, state, q, lower, upper, *(of[name] for name in varied))
        x = _minimum(of, q, state)
        free = of["free"] @ q
        rows = of["g"] @ free
        kept: Numeric = 1.0
        for row, low, high in zip(rows, lower, upper, strict=True):
            kept = ops.where(ops.logical_and(row >= low, row <= high), kept, 0.0)
        at_rest = ops.concatenate([rows, np.zeros(m)])
        return ops.where(kept > 0.5, free, x), ops.where(kept > 0.5, at_rest, state)


def _minimum(of: State, q: Numeric, state: Numeric) -> Numeric:
    """x (n,) for the rows and multipliers of a state."""
    m = len(of["g"])
    return of["inverse"] @ (of["step"] * (of["g"].T @ (state[:m] - state[m:])) - q)


def _iterate(of: State, state: Numeric, q: Numeric, lower: Numeric, upper: Numeric) -> Numeric:
    m = len(of["g"])
    rows, multipliers = state[:m], state[m:]
    relaxed = RELAXATION * (of["g"] @ _minimum(of, q, state)) + (1.0 - RELAXATION) * rows
    wanted = relaxed + multipliers
    taken = wanted + of["taken"] * (ops.clip(wanted, lower, upper) - wanted)
    return ops.concatenate([taken, wanted - taken])
