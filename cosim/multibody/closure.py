"""The holonomic constraint rows of a mechanism on numbers, for `assembly`: traced once, evaluated many times."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from cosim.compile.trace import Shape, column
from cosim.multibody.configuration_space import ConfigurationSpace
from cosim.multibody.differentiate import Derived
from cosim.types import Numeric


class Closure:
    """f (m,) of the m holonomic rows, which vanishes where loops are closed, and its derivatives along the nv dofs."""

    def __init__(self, space: ConfigurationSpace, rows: int, residual: Callable[[Numeric, Numeric], Numeric]) -> None:
        """residual: (q, t) -> f of m = `rows` elements."""
        self._space, self.rows, self._residual = space, rows, residual

    def __call__(self, q: np.ndarray, t: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """(f (m,), G (m, nv))"""
        f, G = self._first(q, t)
        return f, G

    def curvature(self, q: np.ndarray, multipliers: np.ndarray, t: float = 0.0) -> np.ndarray:
        """The second derivative (nv, nv) of λ·f, symmetric."""
        (bend,) = self._second(q, t, multipliers)
        return 0.5 * (bend + bend.T)

    @cached_property
    def _first(self) -> Derived:
        return Derived("closure", [(self._space.nq,), ()], self._residual_and_jacobian)

    @cached_property
    def _second(self) -> Derived:
        def make(columns: list[Numeric], arrays: list[Numeric]) -> list[tuple[Numeric, Shape]]:
            import casadi

            (_, _), (jacobian, _) = self._residual_and_jacobian(columns, arrays)
            bend = self._along_dofs(casadi.mtimes(jacobian.T, columns[2]), columns[0], arrays[0])
            return [(bend, (self._space.nv, self._space.nv))]

        return Derived("closure_curvature", [(self._space.nq,), (), (self.rows,)], make)

    def _residual_and_jacobian(self, columns: list[Numeric], arrays: list[Numeric]) -> list[tuple[Numeric, Shape]]:
        q, t = arrays[:2]
        residual = column(self._residual(q, t))
        jacobian = self._along_dofs(residual, columns[0], q)
        return [(residual, (self.rows,)), (jacobian, (self.rows, self._space.nv))]

    @cached_property
    def pattern(self) -> np.ndarray:
        """Of each row and dof, whether the row depends on the dof (m, nv)."""
        return self._first.pattern(1)

    def _along_dofs(self, expression: Numeric, q: Numeric, q_array: Numeric) -> Numeric:
        """∂expression/∂q · N with q̇ = N v."""
        import casadi

        by_dof = [column(self._space.rate(q_array, unit)) for unit in np.eye(self._space.nv)]
        by_dof = casadi.sparsify(casadi.SX(casadi.horzcat(*by_dof)))  # zeros would hide which rows share no dof
        return casadi.mtimes(casadi.jacobian(expression, q), by_dof)
