"""The fastest motion along a path by reachability on its phase plane.

s is the place on the path, x = ṡ² and u = s̈, which is constant between two grid points, so that x is linear in s
there. Every limit is a row a u + b x ≤ h. Backwards from rest at the end: at each grid point the interval of x from
which some u leads to the interval of the next one. Forwards from rest at the start: the largest such u. Both are linear
programs in two and one variables; eliminating u solves them exactly.

Pham and Pham, A new approach to time-optimal path parameterization based on reachability analysis, IEEE T-RO 34 (2018).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.core.types import Array

ZERO = 1e-12  # coefficient of u that counts as 0, of rows whose limits are of the order of 1


class Unreachable(ValueError):
    """There is no motion through the grid point at `index`."""

    def __init__(self, index: int) -> None:
        self.index = index
        super().__init__(f"no motion within the limits passes grid point {index}")


@dataclass(frozen=True)
class PathLimits:
    """a u + b x ≤ h of m rows at N + 1 grid points s (N + 1,), and x ≤ largest (N + 1,)."""

    s: Array
    a: Array  # (N + 1, m)
    b: Array
    h: Array
    largest: Array

    def fastest(self) -> tuple[Array, Array]:
        """x (N + 1,) at the grid points and u (N,) between them. Raises Unreachable."""
        for end in (0, len(self.s) - 1):
            if self.h[end].min(initial=0.0) < 0.0:
                raise Unreachable(end)  # not even at rest
        lower, upper = self._controllable()
        x, u = np.zeros(len(self.s)), np.zeros(len(self.s) - 1)
        for i, step in enumerate(np.diff(self.s)):
            a, b, h = self._between(i, step, lower[i + 1], upper[i + 1])
            left = h - b * x[i]
            most = np.min(left[a > ZERO] / a[a > ZERO], initial=np.inf)
            least = np.max(left[a < -ZERO] / a[a < -ZERO], initial=-np.inf)
            u[i] = most if most >= least else 0.5 * (most + least)  # apart by rounding
            x[i + 1] = np.clip(x[i] + 2.0 * step * u[i], lower[i + 1], upper[i + 1])
        return x, u

    def _controllable(self) -> tuple[Array, Array]:
        """(lower, upper) (N + 1,) of the x from which rest at the end is reached."""
        count = len(self.s)
        lower, upper = np.zeros(count), np.zeros(count)
        for i in range(count - 2, -1, -1):
            rows = self._between(i, self.s[i + 1] - self.s[i], lower[i + 1], upper[i + 1])
            lower[i], upper[i] = _range_of_x(*rows, self.largest[i])
            if not lower[i] <= upper[i]:
                raise Unreachable(i)
        return lower, upper

    def _between(self, i: int, step: float, lower: float, upper: float) -> tuple[Array, Array, Array]:
        """Rows of u and x at grid point i: the limits there and at the next one, whose x is x + 2 step u in [lower,
        upper]."""
        to_next = 2.0 * step
        a = np.concatenate([self.a[i], self.a[i + 1] + to_next * self.b[i + 1], [to_next, -to_next]])
        b = np.concatenate([self.b[i], self.b[i + 1], [1.0, -1.0]])
        h = np.concatenate([self.h[i], self.h[i + 1], [upper, -lower]])
        return a, b, h


def _range_of_x(a: Array, b: Array, h: Array, largest: float) -> tuple[float, float]:
    """The interval of x ≥ 0 for which a u exists, by Fourier and Motzkin's elimination of u."""
    above, below, flat = a > ZERO, a < -ZERO, np.abs(a) <= ZERO
    slope_above, slope_below = b[above] / a[above], b[below] / a[below]
    bound_above, bound_below = h[above] / a[above], h[below] / a[below]
    slope = np.concatenate([(slope_above[:, None] - slope_below[None, :]).ravel(), b[flat]])
    bound = np.concatenate([(bound_above[:, None] - bound_below[None, :]).ravel(), h[flat]])
    rising, falling = slope > 0.0, slope < 0.0
    if (bound[~(rising | falling)] < 0.0).any():
        return np.inf, -np.inf
    upper = np.min(bound[rising] / slope[rising], initial=largest)
    lower = np.max(bound[falling] / slope[falling], initial=0.0)
    return (lower, max(upper, lower)) if upper > lower - 1e-12 * (1.0 + abs(lower)) else (lower, upper)
