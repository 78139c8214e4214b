"""Scipy's Radau IIA method, order 5, for stiff models, with the interface of `DormandPrince`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cosim.core.types import Array


class RadauSolver:
    """Integrates x' = f(t, x), x (n,). `step_size` [s]: of the next step, kept from one call to the next."""

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
