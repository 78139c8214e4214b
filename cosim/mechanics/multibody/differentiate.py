"""Exact derivatives of user-defined functions: the hinge of a general joint, the rows of a constraint law.

A function is traced once with its own symbols; its derivatives are evaluated on numbers or become part of a larger
expression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cosim.core import ops
from cosim.core.compile.held_calls import HeldCalls
from cosim.core.compile.trace import Shape, column, inlined, symbols
from cosim.core.types import Numeric
from cosim.mechanics.multibody.mechanism import GeneralMotion, GivenMotion
from cosim.mechanics.multibody.spatial import Hinge, SpatialVector


class Derived:
    """A function of arrays given by casadi expressions, which are built once. Other symbols in them stay."""

    def __init__(
        self, name: str, shapes: Sequence[Shape], make: Callable[..., Sequence[tuple[Numeric, Shape]]]
    ) -> None:
        """make(columns, arrays) -> (expression, shape) of each result; columns and arrays hold the same symbols, as
        casadi columns and as arrays for user-defined functions."""
        import casadi

        columns, arrays = zip(*(symbols(f"x{k}", s) for k, s in enumerate(shapes)), strict=True)
        self._columns, self._held = columns, HeldCalls()
        with inlined(self._held.calls):
            results = make(list(columns), list(arrays))
        self._shapes = [shape for _, shape in results]
        self._expressions = [e for e, _ in results]
        known = [*columns, *self._held.columns]
        own = {element.element_hash() for c in known for element in c.elements()}
        used = casadi.symvar(casadi.veccat(*(e for e, _ in results)))
        self._others = [symbol for symbol in used if symbol.element_hash() not in own]
        self._fn = casadi.Function(name, [*known, *self._others], [e for e, _ in results])

    def __call__(self, *arrays: Numeric) -> list[Numeric]:
        held = self._held.values(self._columns, arrays) if self._held.calls else []
        if self._others or any(map(ops.is_symbolic, arrays)):
            values = self._fn.call([*(column(a) for a in arrays), *held, *self._others])
            return [_array(value, shape) for value, shape in zip(values, self._shapes, strict=True)]
        numbers = [np.asarray(value.elements(), dtype=float) for value in held]
        values = self._fn.call([*(np.asarray(a, dtype=float).ravel() for a in arrays), *numbers])
        # casadi's matrices are stored by columns
        return [np.array(v.full()).reshape(shape, order="F") for v, shape in zip(values, self._shapes, strict=True)]

    def pattern(self, k: int) -> np.ndarray:
        """Which elements of result k are not 0 for all arguments, bool."""
        import casadi

        return casadi.DM(self._fn.sparsity_out(k), 1.0).full() != 0.0

    def depends_on(self, k: int) -> tuple[bool, bool]:
        """(Whether the results are constant in array k, whether they have slopes in it.) Results that are constant
        piece by piece are neither."""
        import casadi

        results, x = casadi.veccat(*self._expressions), self._columns[k]
        constant = not any(casadi.which_depends(results, x, 1, False))
        return constant, casadi.sparsify(casadi.jacobian(results, x)).nnz() > 0


def _array(value: Numeric, shape: Shape) -> Numeric:
    """An expression as an array of symbols, constants as numbers."""
    elements = [float(e) if e.is_constant() else e for e in value.elements()]
    return ops.array(np.array(elements, dtype=object).reshape(shape, order="F") if elements else np.zeros(shape))


def along(expression: Numeric, pairs: Sequence[tuple[Numeric, Numeric]]) -> Numeric:
    """Σ ∂expression/∂x · ẋ over pairs (x, ẋ) of columns."""
    import casadi

    where = casadi.vertcat(*(x for x, _ in pairs))
    return casadi.jtimes(expression, where, casadi.vertcat(*(rate for _, rate in pairs)))


class HingeOf:
    """The hinge of a general joint from its place(q, t)."""

    def __init__(self, motion: GeneralMotion) -> None:
        n = len(motion.names)
        self._derived: Derived | None = None
        self._n, self._place = n, motion.place

    def _make(self, columns: list[Numeric], arrays: list[Numeric]) -> list[tuple[Numeric, Shape]]:
        import casadi

        (q, v, t), n = columns, self._n
        rotation, r = self._place(arrays[0], arrays[2])
        rotation_t = casadi.reshape(
            column(rotation), 3, 3
        )  # by columns: the transpose, from the joint's axes to the child's
        r = column(r)
        at_rest = casadi.DM.zeros(n), casadi.DM(1.0)

        def velocity(q_rate: Numeric, t_rate: Numeric) -> tuple[Numeric, Numeric]:
            moving = [(q, q_rate), (t, t_rate)]
            skew_rate = casadi.mtimes(rotation_t, casadi.reshape(along(column(rotation), moving), 3, 3).T)
            return along(r, moving), casadi.vertcat(skew_rate[2, 1], skew_rate[0, 2], skew_rate[1, 0])

        unit_velocities = [velocity(casadi.DM.eye(n)[:, k], casadi.DM(0.0)) for k in range(n)]
        drift, total = velocity(*at_rest), velocity(v, casadi.DM(1.0))
        moving = [(q, v), (t, casadi.DM(1.0))]
        linear = casadi.mtimes(
            rotation_t, casadi.horzcat(*(s for s, _ in unit_velocities), drift[0], along(total[0], moving))
        )
        angular = casadi.horzcat(*(w for _, w in unit_velocities), drift[1], along(total[1], moving))
        return [(linear, (3, n + 2)), (angular, (3, n + 2))]

    def __call__(self, q: Numeric, v: Numeric, t: Numeric) -> Hinge:
        if self._derived is None:
            self._derived = Derived("hinge", [(self._n,), (self._n,), ()], self._make)
        linear, angular = self._derived(q, v, t)
        *columns, drift, bias = (SpatialVector(linear[:, k], angular[:, k]) for k in range(self._n + 2))
        return Hinge(tuple(columns), drift, bias)


class HingeOfGiven:
    """The hinge of a joint whose coordinates c(t) are given: the one of its `joint`, with ċ as drift and c̈ in the bias.

    The derivatives with respect to time are those that c declares, so c may be a table.
    """

    def __init__(self, motion: GivenMotion) -> None:
        self._joint, self._sample = HingeOf(motion.joint), motion.sample

    def __call__(self, q: Numeric, v: Numeric, t: Numeric) -> Hinge:
        value, rate, bend = self._sample(t)
        hinge = self._joint(value, rate, t)
        drift, bias = hinge.drift, hinge.bias
        for k, column_k in enumerate(hinge.columns):
            drift, bias = drift + column_k * rate[k], bias + column_k * bend[k]
        return Hinge((), drift, bias)
