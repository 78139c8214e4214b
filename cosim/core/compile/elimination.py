"""Linear equations with one matrix and several right sides, as straight-line code without operations on zeros."""

from __future__ import annotations

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric


class Elimination:
    """A x = b by Gaussian elimination along the diagonal; A (n, n): numbers or symbols.

    For matrices that need no choice of pivots: positive definite ones, I − γhJ with a small h. A pivot of 0 gives
    values that are not finite. Unknowns are eliminated in an order of little fill (Markowitz 1957), which follows from
    the zeros of A and is known when the code is made.
    """

    def __init__(self, matrix: Numeric, nonzero: np.ndarray | None = None, symmetric: bool = False) -> None:
        """nonzero (n, n): the elements that are not 0 in general; by default those that are not 0 here. symmetric: of a
        symmetric matrix, equal elements are computed once."""
        n, self._symmetric = len(matrix), symmetric
        a = [[matrix[i, j] for j in range(n)] for i in range(n)]
        if nonzero is None:
            nonzero = np.array([[not ops.is_zero(value) for value in row] for row in a], dtype=bool)
        filled = nonzero.reshape(n, n).copy()
        self._order = _order_of_little_fill(filled.copy())
        self._inverse: dict[int, Numeric] = {}  # of the pivots
        self._lower: list[tuple[int, int, Numeric]] = []  # (row, column, factor) in the order of their use
        self._upper: dict[int, list[tuple[int, Numeric]]] = {}  # row -> (column, value)
        left = set(range(n))
        for k in self._order:
            left.remove(k)
            columns = [j for j in left if filled[k, j]]
            self._inverse[k] = ops.reciprocal(a[k][k])
            self._upper[k] = [(j, a[k][j]) for j in columns]
            for i in (i for i in left if filled[i, k]):
                factor = a[i][k] * self._inverse[k]
                self._lower.append((i, k, factor))
                for j in columns:
                    a[i][j] = a[j][i] if symmetric and j < i else a[i][j] - factor * a[k][j]
                    filled[i, j] = True

    def solve(self, b: Numeric) -> Numeric:
        """x for b: (n,) or (n, m)."""
        x = [b[k] for k in range(len(b))]
        for i, k, factor in self._lower:
            x[i] = x[i] - factor * x[k]
        for k in reversed(self._order):
            for j, value in self._upper[k]:
                x[k] = x[k] - value * x[j]
            x[k] = x[k] * self._inverse[k]
        return ops.array(x)

    def inverse(self) -> Numeric:
        """A⁻¹ (n, n)."""
        found = self.solve(np.eye(len(self._order)))
        if not self._symmetric:
            return found
        n = len(self._order)
        return ops.array([[found[max(i, j), min(i, j)] for j in range(n)] for i in range(n)])


def _order_of_little_fill(filled: np.ndarray) -> list[int]:
    """The order in which each elimination fills the fewest elements; filled: (n, n) bool, overwritten."""
    left, order = np.ones(len(filled), dtype=bool), []
    np.fill_diagonal(filled, False)
    for _ in range(len(filled)):
        cost = (filled[:, left].sum(axis=1)) * (filled[left].sum(axis=0))
        k = int(np.flatnonzero(left)[np.argmin(cost[left])])
        left[k] = False
        order.append(k)
        filled |= np.outer(filled[:, k], filled[k])
        np.fill_diagonal(filled, False)
    return order
