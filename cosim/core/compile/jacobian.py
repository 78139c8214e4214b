"""Exact derivatives: the Jacobian of a pure function as a function of the same arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from cosim.core import ops
from cosim.core.compile.elimination import Elimination
from cosim.core.compile.held_calls import HeldCalls
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import Shape, column, inlined, symbols
from cosim.core.types import Numeric


class Jacobian:
    """J = ∂fn(x, *others)/∂x for fn: (n,) -> (m,). On symbols it is one call, with structural zeros.

    Built by tracing fn; on numbers it is evaluated by casadi, without machine code.
    """

    def __init__(self, fn: Callable[..., Numeric], shapes: Sequence[Shape], name: str) -> None:
        """Raises CompileError if fn cannot be traced."""
        self.fn, self.shapes, self.name = fn, tuple(shapes), name
        self._columns, boxes = zip(*(symbols(f"x{k}", s) for k, s in enumerate(shapes)), strict=True)
        self._held = HeldCalls()
        with inlined(self._held.calls):
            self._expression = self._derivative(boxes)
        pattern = self._expression.sparsity()
        self.shape = pattern.shape
        self._rows, self._cols = np.array(pattern.row(), dtype=int), np.array(pattern.get_col(), dtype=int)

    def _derivative(self, boxes: Sequence[Numeric]) -> Any:
        """∂fn/∂x as a casadi expression."""
        import casadi

        return casadi.jacobian(column(self.fn(*boxes)), self._columns[0])

    @cached_property
    def _numeric(self) -> Callable[..., Any]:
        import casadi

        return casadi.Function("f", [*self._columns, *self._held.columns], [self._expression])

    @cached_property
    def _nonzeros(self) -> Routine:
        def nonzeros(*arguments: Numeric) -> Numeric:
            import casadi

            entries = casadi.vertcat(*self._expression.nonzeros()) if len(self._rows) else casadi.SX(0, 1)
            given = [*(column(a) for a in arguments), *self._held.values(self._columns, arguments)]
            (values,) = casadi.substitute([entries], [*self._columns, *self._held.columns], given)
            return ops.array([values[k] for k in range(len(self._rows))])

        return Routine(nonzeros, self.shapes, self.name)

    def __call__(self, *arguments: Numeric) -> Numeric:
        if not any(map(ops.is_symbolic, arguments)):
            return np.array(self._numeric(*arguments, *self._held.values(self._columns, arguments)).full())
        dense = np.zeros(self.shape, dtype=object)
        dense[self._rows, self._cols] = list(self._nonzeros(*arguments))
        return ops.array(dense)


class ImplicitJacobian(Jacobian):
    """J = df/dx for f(x, z(x)), where z (k,) solves r(x, z) = 0; fn(x, z, *others) returns (f (m,), r (k,)).

    By the implicit function theorem J = ∂f/∂x − ∂f/∂z (∂r/∂z)⁻¹ ∂r/∂x. Where r is simpler than the solution z(x), as
    the equations of motion are than the accelerations, so are its derivatives. ∂r/∂z: see `Elimination`.
    """

    def _derivative(self, boxes: Sequence[Numeric]) -> Any:
        import casadi

        x, z, *_ = self._columns
        value, residual = map(column, self.fn(*boxes))
        by_x, by_z = (casadi.jacobian(residual, of) for of in (x, z))
        change = casadi.SX(-_matrix(Elimination(_array(by_z)).solve(_array(by_x))))
        return casadi.sparsify(casadi.jacobian(value, x) + casadi.mtimes(casadi.jacobian(value, z), change))


class Linearisation:
    """(fn(x, *others), ∂fn/∂x) together, up to rounding, for fn: (n,) -> (m,); inlined where it is called with symbols.

    Quotients are products with reciprocals: value and derivatives share many divisors.
    """

    def __init__(self, fn: Callable[..., Numeric], shapes: Sequence[Shape]) -> None:
        """Raises CompileError if fn cannot be traced."""
        import casadi

        self._columns, boxes = zip(*(symbols(f"x{k}", s) for k, s in enumerate(shapes)), strict=True)
        with inlined():
            value = column(fn(*boxes))
        slope = casadi.jacobian(value, self._columns[0])
        pattern = slope.sparsity()
        places = np.array(pattern.row(), dtype=int), np.array(pattern.get_col(), dtype=int)
        self.nonzero = np.zeros(pattern.shape, dtype=bool)  # derivatives that are not 0 in general
        self.nonzero[places] = True
        self._places = places
        self._expressions = _with_reciprocals(self._columns, casadi.vertcat(value, *slope.nonzeros()))

    @cached_property
    def _numeric(self) -> Callable[..., Any]:
        import casadi

        return casadi.Function("linearisation", list(self._columns), [self._expressions])

    def __call__(self, *arguments: Numeric) -> tuple[Numeric, Numeric]:
        """fn (m,) and its derivatives (m, n)."""
        import casadi

        if any(map(ops.is_symbolic, arguments)):
            given = [column(a) for a in arguments]
            (found,) = casadi.substitute([self._expressions], list(self._columns), given)
            values: Any = ops.array(found.elements())
        else:
            values = np.array(self._numeric(*arguments).full())[:, 0]
        m = len(self.nonzero)
        slope = np.zeros(self.nonzero.shape, dtype=object)
        slope[self._places] = list(values[m:])
        return values[:m], ops.array(slope.tolist())


def _with_reciprocals(columns: Sequence[Any], expressions: Any) -> Any:
    """The same expressions with products with reciprocals instead of quotients."""
    import casadi

    known = {symbol.element_hash() for column in columns for symbol in column.elements()}
    numbers = [symbol for symbol in casadi.symvar(expressions) if symbol.element_hash() not in known]  # of the rig
    f = casadi.Function("f", [*columns, *numbers], [casadi.densify(expressions)])
    elements = [column.elements() for column in (*columns, *numbers)]
    value: dict[int, Any] = {}
    reciprocals: dict[int, Any] = {}
    results: list[Any] = [0.0] * f.nnz_out(0)
    for k in range(f.n_instructions()):
        operation, given, out = f.instruction_id(k), f.instruction_input(k), f.instruction_output(k)
        if operation == casadi.OP_OUTPUT:
            results[out[1]] = value[given[0]]
        elif operation == casadi.OP_INPUT:
            value[out[0]] = elements[given[0]][given[1]]
        elif operation == casadi.OP_CONST:
            value[out[0]] = casadi.SX(f.instruction_constant(k))
        elif operation == casadi.OP_DIV:
            divisor = value[given[1]]
            key = divisor.element_hash()
            if key not in reciprocals:
                reciprocals[key] = 1.0 / divisor if divisor.is_constant() else ops.reciprocal(divisor).item()
            value[out[0]] = value[given[0]] * reciprocals[key]
        elif len(given) == 1:
            value[out[0]] = casadi.SX.unary(operation, value[given[0]])
        else:
            value[out[0]] = casadi.SX.binary(operation, *(value[i] for i in given))
    return casadi.vertcat(*results)


def _array(matrix: Any) -> Numeric:
    """A casadi matrix as an array of symbols, with 0 for structural zeros."""
    dense, pattern = np.zeros(matrix.shape, dtype=object), matrix.sparsity()
    for i, j, entry in zip(pattern.row(), pattern.get_col(), matrix.nonzeros(), strict=True):
        dense[i, j] = entry
    return dense.view(ops.Traced)


def _matrix(array: Numeric) -> Any:
    """The inverse of `_array`."""
    import casadi

    return casadi.sparsify(casadi.reshape(column(np.transpose(array)), *array.shape))
