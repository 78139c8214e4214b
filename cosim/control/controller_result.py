"""What a controller returned, checked: its next state, its command and its signals."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real

import numpy as np

from cosim.core import ops
from cosim.core.compile.trace import origin
from cosim.core.errors import WrongResult, did_you_mean, shortened
from cosim.core.layout import Layout
from cosim.core.ops import is_symbolic
from cosim.core.types import COMMAND, Controller, Numeric, Signals, State, signals_of


def accepted(result: object, block: Controller, layout: Layout, n: int) -> tuple[State, dict[str, Numeric]]:
    """(next state, the fields of COMMAND (n,) and the signals by name) from what `block.update` returned; layout: of
    its state. Raises WrongResult for anything else."""
    try:
        return _checked(result, layout, block.outputs, signals_of(block), n)
    except ValueError as error:
        raise WrongResult(str(error), origin(block.update)) from error


def _checked(
    result: object, layout: Layout, declared: Signals, signals: Signals, n: int
) -> tuple[State, dict[str, Numeric]]:
    parts = result if isinstance(result, tuple) else (result,)
    if len(parts) != 2 or not all(isinstance(part, Mapping) for part in parts):
        types = ", ".join("nothing" if part is None else f"a {type(part).__name__}" for part in parts)
        raise ValueError(f"update returns {types}; return the next state and the outputs, two mappings")
    x, y = parts
    layout.check(x)
    for name in y:
        if name not in COMMAND and name not in signals:
            raise ValueError(f"the output '{name}' does not exist{did_you_mean(name, (*COMMAND, *signals))}")
        if name not in declared and name not in signals:
            raise ValueError(f"the output '{name}' is not declared; add it to the outputs")
    shapes = dict.fromkeys(COMMAND, (n,)) | {name: signal.shape for name, signal in signals.items()}
    return x, {name: _output(name, y, shape) for name, shape in shapes.items()}


def _output(name: str, y: Mapping[str, Numeric], shape: tuple[int, ...]) -> Numeric:
    """One output of a block. Raises ValueError if it is missing or no array of numbers of this shape."""
    if name not in y:
        raise ValueError(f"the output '{name}' is missing")
    value = ops.array(y[name])
    if value.dtype.kind not in "biufO" or not all(map(_is_number, value.flat if value.dtype == object else ())):
        raise ValueError(f"the output '{name}' must be real numbers of shape {shape}, is {_described(y[name])}")
    if value.shape != shape:
        raise ValueError(f"the output '{name}' has shape {value.shape}; it must be {shape}")
    return value


def _described(value: object) -> str:
    """What is no real number, and the type of its first such element."""
    elements = np.array(value, dtype=object).flat
    kind = next(type(element).__name__ for element in elements if not _is_number(element))
    return f"{shortened(' '.join(repr(value).split()))} ({kind})"


def _is_number(value: object) -> bool:
    return isinstance(value, Real) or is_symbolic(value)
