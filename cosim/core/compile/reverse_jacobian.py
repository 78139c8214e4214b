"""The Jacobian of a function by passes backwards: of one that calls what has no expression but an adjoint of its own,
such as the solver of contacts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cosim.core.compile.adjoint import Differentiation
from cosim.core.compile.array_entry import ArrayPort
from cosim.core.compile.compiled import Compiled
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import RoutineBase, Shape
from cosim.core.types import Array, Numeric


class ReverseJacobian:
    """J = ∂fn(x, *others)/∂x (m, n) for fn: (n,) -> (m,), on numbers: one pass backwards for each of its results, in
    machine code."""

    def __init__(self, fn: Callable[..., Numeric], shapes: Sequence[Shape], name: str) -> None:
        """Raises CompileError if fn cannot be traced, or calls what has no adjoint."""
        routine, derive = Routine(fn, shapes, name), Differentiation()
        adjoint = derive.adjoint(routine, (0,), (0,))
        self._forward, self._backward = _compiled(derive.taped(routine)), _compiled(adjoint)
        self._results = routine.output_sizes[0]

    def __call__(self, *arguments: Numeric) -> Array:
        given = [np.asarray(argument, dtype=float) for argument in arguments]
        found = self._forward(*(a.reshape(p.shape) for a, p in zip(given, self._forward.inputs, strict=True)))
        tape = found[1:] if isinstance(found, tuple) else ()
        flat = [argument.reshape(-1) for argument in given]
        return np.array([self._backward(*flat, *tape, seed) for seed in np.eye(self._results)])


def _compiled(routine: RoutineBase) -> Compiled:
    return Compiled(routine, [ArrayPort(f"x{k}", shape) for k, shape in enumerate(routine.shapes)])
