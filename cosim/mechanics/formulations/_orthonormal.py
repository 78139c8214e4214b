"""Orthonormal factors C = Q R of numbers or symbols, without a choice of pivots.

By the modified Gram–Schmidt process from the last column to the first: of the partial velocities of a tree those at
the tips have the fewest elements. Column i is Σ_k R_ki Q_k with k ≥ i.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric

# square of what is left of a column, relative to it, below which it is a combination of those before it
DEPENDENT = 1e-12


class Orthonormal:
    """Q: columns of length 1, or 0 for a column that depends on those after it, where these may occur. Where they may
    not, a column of which less than `least` is left, relative to it, has no direction: its elements are not numbers."""

    def __init__(self, columns: Sequence[Numeric], may_depend: bool = False, least: float = 0.0) -> None:
        n, left = len(columns), list(columns)
        self.Q: list[Numeric] = [None] * n
        self._R: list[dict[int, Numeric]] = [{} for _ in range(n)]  # of column i: k -> R_ki, k > i
        self._inverse: list[Numeric] = [None] * n  # 1 / R_kk, 0 for a dependent column
        for k in reversed(range(n)):
            square = left[k] @ left[k]
            if may_depend:
                kept = square > DEPENDENT * (columns[k] @ columns[k])
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
