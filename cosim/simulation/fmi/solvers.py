"""Solvers of the equations of an FMU, with step control and a dense output: the method of Dormand and Prince, order
5(4), and for stiff models Radau IIA of SciPy, order 5.

Coefficients, step control and dense output of the first: Hairer, Nørsett, Wanner, Solving Ordinary Differential
Equations I, sections II.4 to II.6. The last stage of a step is the first one of the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cosim.core.types import Array

C = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
A = [
    np.array(row)
    for row in (
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    )
]
ERROR = np.array((71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40))
DENSE = np.array(
    (
        -12715105075 / 11282082432,
        0.0,
        87487479700 / 32700410799,
        -10690763975 / 1880347072,
        701980252875 / 199316789632,
        -1453857185 / 822651844,
        69997945 / 29380423,
    )
)
SAFETY, SMALLEST_CHANGE, LARGEST_CHANGE = 0.9, 0.2, 10.0  # of the change of a step
SHORTEST_STEP = 16.0 * np.finfo(float).eps  # step, relative to the time


class DormandPrince:
    """The method of Dormand and Prince for x' = f(t, x), x (n,). `step_size` [s]: of the next step, kept from one
    call to the next."""

    def __init__(self, f: Callable[[float, Array], Array], relative: float, absolute: Array) -> None:
        self._f, self._relative, self._absolute = f, relative, absolute
        self._k = np.zeros((7, len(absolute)))
        self._last: Array | None = None  # f at the end of the last step
        self.step_size = np.inf

    def reset(self) -> None:
        """The right side is another one from here on."""
        self._last = None

    def step(self, t: float, x: Array, end: float) -> tuple[float, Array, Callable[[float], Array]]:
        """A step towards `end`: (time reached, x there, x at a time within). Raises ArithmeticError where no step is
        short enough."""
        k, f = self._k, self._f
        k[0] = f(t, x) if self._last is None else self._last
        rest, rejected, state = end - t, False, x
        h = min(self.step_size, rest)
        while True:
            if h < SHORTEST_STEP * max(abs(t), abs(end)):
                raise ArithmeticError
            for i in range(1, 7):
                state = x + h * (A[i] @ k[:i])
                k[i] = f(t + C[i] * h, state)
            error = self._error(h, x, state)
            if error <= 1.0:
                break
            rejected = True
            h *= max(SMALLEST_CHANGE, SAFETY * error**-0.2) if np.isfinite(error) else SMALLEST_CHANGE
        growth = SAFETY * error**-0.2 if error > 0.0 else LARGEST_CHANGE
        wanted = h * min(max(growth, SMALLEST_CHANGE), 1.0 if rejected else LARGEST_CHANGE)
        self.step_size = max(wanted, self.step_size) if h == rest and not rejected else wanted
        self._last = k[6].copy()
        return (end if h == rest else t + h), state, self._interpolant(t, h, x, state)

    def _error(self, h: float, x: Array, after: Array) -> float:
        """Root mean square of the estimated error in units of the tolerance."""
        if not len(x):
            return 0.0
        scale = self._absolute + self._relative * np.maximum(abs(x), abs(after))
        ratio = h * (ERROR @ self._k) / scale
        return float(np.sqrt(ratio @ ratio / len(x)))

    def _interpolant(self, t: float, h: float, x: Array, after: Array) -> Callable[[float], Array]:
        """Order 4."""
        k = self._k.copy()

        def at(time: float) -> Array:
            s = (time - t) / h
            change = after - x
            slope = h * k[0] - change
            bend = change - h * k[6] - slope
            return x + s * (change + (1 - s) * (slope + s * (bend + (1 - s) * h * (DENSE @ k))))

        return at


class RadauSolver:
    """Scipy's Radau IIA method for x' = f(t, x), x (n,). `step_size` [s]: of the next step, kept from one
    call to the next."""

    def __init__(self, f: Callable[[float, Array], Array], relative: float, absolute: Array) -> None:
        from scipy.integrate import Radau

        self._f, self._relative, self._absolute = f, relative, absolute
        self._radau: Any = Radau
        self._solver: Any = None
        self.step_size = np.inf

    def reset(self) -> None:
        """The right side is another one from here on."""
        self._solver = None

    def step(self, t: float, x: Array, end: float) -> tuple[float, Array, Callable[[float], Array]]:
        """A step towards `end`: (time reached, x there, x at a time within). Raises ArithmeticError where no step is
        short enough."""
        solver = self._solver
        if solver is None or solver.t_bound != end or solver.t != t:
            solver = self._radau(
                lambda t, x: self._f(t, x).copy(),
                t,
                x,
                end,
                rtol=self._relative,
                atol=self._absolute,
                first_step=min(self.step_size, end - t) if np.isfinite(self.step_size) else None,
            )
            self._solver = solver
        solver.step()
        if solver.status == "failed":
            raise ArithmeticError
        if solver.t < end:
            self.step_size = solver.h_abs
        return solver.t, solver.y, solver.dense_output()
