"""A pure function as plain data, for another program: its arithmetic operations in order, which numpy evaluates.

Who receives it runs nothing of the program that sent it: an operation is a row of one table of arithmetic, and takes
the results of earlier ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from cosim.core.compile import emit
from cosim.core.compile.lower import lower
from cosim.core.compile.operations import INSTRUCTIONS
from cosim.core.compile.trace import Shape, inlined, origin, trace
from cosim.core.errors import CompileError
from cosim.core.types import Numeric

MOST_OPERATIONS = 300_000
MOST_INPUTS = 100_000  # numbers

_BINARY: dict[str, Callable[..., Any]] = {
    **dict(zip(INSTRUCTIONS, (np.add, np.subtract, np.multiply, np.divide), strict=True)),
    "COPYSIGN": np.copysign,
    "FMIN": np.fmin,
    "FMAX": np.fmax,
    "POW": np.power,
    "CONSTPOW": np.power,
    "ATAN2": np.arctan2,
    "HYPOT": np.hypot,
    "FMOD": np.fmod,
    "REMAINDER": lambda x, y: x - y * np.round(x / y),
    "LT": np.less,
    "LE": np.less_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
    "AND": np.logical_and,
    "OR": np.logical_or,
    "IF_ELSE_ZERO": lambda c, x: np.where(c, x, 0.0),
}
_UNARY: dict[str, Callable[..., Any]] = {
    "NEG": np.negative,
    "SIGN": np.sign,
    "NOT": np.logical_not,
    "SIN": np.sin,
    "COS": np.cos,
    "TAN": np.tan,
    "ASIN": np.arcsin,
    "ACOS": np.arccos,
    "ATAN": np.arctan,
    "SINH": np.sinh,
    "COSH": np.cosh,
    "TANH": np.tanh,
    "ASINH": np.arcsinh,
    "ACOSH": np.arccosh,
    "ATANH": np.arctanh,
    "SQRT": np.sqrt,
    "FABS": np.abs,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "EXP": np.exp,
    "LOG": np.log,
    "ERF": special.erf,
    "LOG1P": np.log1p,
    "EXPM1": np.expm1,
}
# operation -> (number of its operands, what computes it)
OPERATIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    **{name: (1, function) for name, function in _UNARY.items()},
    **{name: (2, function) for name, function in _BINARY.items()},
    "SELECT": (3, np.where),
}


@dataclass(frozen=True)
class PortableFunction:
    """A pure function as data: the graph of its arithmetic operations.

    sizes: numbers of each input; nodes: ("INPUT", input, element), ("CONST", value) or (operation, *numbers of earlier
    nodes); outputs: the nodes of the elements of the result, whose shape is `shape`.
    """

    sizes: tuple[int, ...]
    nodes: tuple[tuple[Any, ...], ...]
    outputs: tuple[int, ...]
    shape: Shape

    @classmethod
    def of(cls, fn: Callable[..., Numeric], shapes: Sequence[Shape], name: str) -> PortableFunction:
        """A function of arrays of these shapes that returns one array.

        Raises CompileError for one that is not arithmetic alone, as with the rows of a table.
        """
        with inlined():
            traced = trace(fn, shapes, name)
        if traced.calls or len(traced.outputs) != 1 or traced.symbolic_parameters is not None:
            raise CompileError(f"'{name}' is not arithmetic alone", origin(fn))
        graph = lower(traced, emit.supported, origin(fn))
        nodes = tuple(node[:2] if node[0] == "CONST" else node for node in graph.nodes)
        sizes = tuple(math.prod(shape) for shape in shapes)
        return cls(sizes, nodes, tuple(graph.outputs[0]), traced.output_shapes[0])

    @classmethod
    def from_data(cls, data: Any) -> PortableFunction:
        """From `as_data`, which may come from anywhere. Raises ValueError, TypeError or KeyError for anything else."""
        sizes, shape = (tuple(_whole(item, MOST_INPUTS) for item in data[key]) for key in ("sizes", "shape"))
        outputs = tuple(_whole(item, len(data["nodes"]) - 1) for item in data["outputs"])
        if len(data["nodes"]) > MOST_OPERATIONS or sum(sizes) > MOST_INPUTS or math.prod(shape) != len(outputs):
            raise ValueError("too long, or of another shape than its outputs")
        nodes = tuple(_checked(node, number, sizes) for number, node in enumerate(data["nodes"]))
        return cls(sizes, nodes, outputs, shape)

    def as_data(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"sizes": self.sizes, "nodes": self.nodes, "outputs": self.outputs, "shape": self.shape}

    def __call__(self, *inputs: np.ndarray) -> np.ndarray:
        """(k, …) of inputs (k, n) each; n is 1 for an input (k,)."""
        count = len(inputs[0])
        columns = [np.asarray(given, float).reshape(count, -1) for given in inputs]
        values: list[Any] = []
        with np.errstate(all="ignore"):
            for kind, *operands in self.nodes:
                if kind == "INPUT":
                    values.append(columns[operands[0]][:, operands[1]])
                elif kind == "CONST":
                    values.append(operands[0])
                else:
                    values.append(OPERATIONS[kind][1](*(values[k] for k in operands)))
        found = np.empty((count, len(self.outputs)))
        for column, node in enumerate(self.outputs):
            found[:, column] = values[node]
        return found.reshape(count, *self.shape)


def _checked(node: Any, number: int, sizes: tuple[int, ...]) -> tuple[Any, ...]:
    """A node that may stand at this place. Raises ValueError or TypeError for any other."""
    kind, *operands = node
    if kind == "CONST":
        (value,) = operands
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError("a constant that is no number")
        return kind, float(value)
    if kind == "INPUT":
        which = _whole(operands[0], len(sizes) - 1)
        (element,) = operands[1:]
        return kind, which, _whole(element, sizes[which] - 1)
    if len(operands) != OPERATIONS[kind][0]:
        raise ValueError(f"{kind} with {len(operands)} operands")
    return kind, *(_whole(operand, number - 1) for operand in operands)


def _whole(value: Any, largest: int) -> int:
    """A whole number from 0. Raises TypeError or ValueError."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("expected a whole number")
    if not 0 <= value <= largest:
        raise ValueError(f"{value} is not within 0 and {largest}")
    return value
