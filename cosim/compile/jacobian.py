"""Exact derivatives: the Jacobian of a pure function as a function of the same arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from cosim import ops
from cosim.compile.routine import Routine
from cosim.compile.trace import Shape, column, inlined, symbols
from cosim.types import Numeric


class Jacobian:
    """J = ∂fn(x, *others)/∂x for fn: (n,) -> (m,). On symbols it is one call, with structural zeros.

    Built by tracing fn; on numbers it is evaluated by casadi, without machine code.
    """

    def __init__(self, fn: Callable[..., Numeric], shapes: Sequence[Shape], name: str) -> None:
        """Raises CompileError if fn cannot be traced."""
        self.fn, self.shapes, self.name = fn, tuple(shapes), name
        self._columns, boxes = zip(*(symbols(f"x{k}", s) for k, s in enumerate(shapes)), strict=True)
        import casadi

        with inlined():
            value = column(fn(*boxes))
        self._expression = casadi.jacobian(value, self._columns[0])
        pattern = self._expression.sparsity()
        self.shape = pattern.shape
        self._rows, self._cols = np.array(pattern.row(), dtype=int), np.array(pattern.get_col(), dtype=int)

    @cached_property
    def _numeric(self) -> Callable[..., Any]:
        import casadi

        return casadi.Function(self.name, list(self._columns), [self._expression])

    @cached_property
    def _nonzeros(self) -> Routine:
        def nonzeros(*arguments: Numeric) -> Numeric:
            import casadi

            entries = casadi.vertcat(*self._expression.nonzeros()) if len(self._rows) else casadi.SX(0, 1)
            (values,) = casadi.substitute([entries], list(self._columns), [column(a) for a in arguments])
            return ops.array([values[k] for k in range(len(self._rows))])

        return Routine(nonzeros, self.shapes, self.name)

    def __call__(self, *arguments: Numeric) -> Numeric:
        if not any(map(ops.is_symbolic, arguments)):
            return np.array(self._numeric(*arguments).full())
        dense = np.zeros(self.shape, dtype=object)
        dense[self._rows, self._cols] = list(self._nonzeros(*arguments))
        return ops.array(dense)
