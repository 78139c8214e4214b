"""Calls of routines without an expression, such as searches in tables, inside an expression that is differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cosim.core import ops
from cosim.core.compile.trace import RecordedCall, Shape, column
from cosim.core.types import Numeric


class HeldCalls:
    """Calls whose results are constants for a derivative: symbols in the expression, and values when it is evaluated.

    `calls` is what `inlined` takes.
    """

    def __init__(self) -> None:
        self.calls: list[RecordedCall] = []

    @property
    def columns(self) -> list[Any]:
        """Casadi columns of the results, which the expression contains."""
        return [result for call in self.calls for result in call.results]

    def values(self, columns: Sequence[Any], arguments: Sequence[Numeric]) -> list[Any]:
        """Casadi columns of the values of `columns` above, for these values of the columns of the expression; a call
        may take results of earlier ones."""
        import casadi

        known, values = list(columns), [column(a) for a in arguments]
        for call in self.calls:
            given = casadi.substitute(list(call.arguments), known, values)
            boxes = [_boxed(item, shape) for item, shape in zip(given, call.routine.shapes, strict=True)]
            found = call.routine(*boxes)
            known += call.results
            values += map(column, found if isinstance(found, tuple) else (found,))
        return values[len(columns) :]


def _boxed(column: Any, shape: Shape) -> Numeric:
    """A casadi column as an array of numbers, or of symbols where it has any."""
    if column.is_constant():
        return np.array([float(value) for value in column.elements()]).reshape(shape)
    return ops.array(column.elements()).reshape(shape)
