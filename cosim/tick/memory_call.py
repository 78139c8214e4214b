"""Pure functions whose arguments have their places in one memory, as calls without arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cosim.compile import ArrayPort, Compiled, compile
from cosim.layout import Region


class MemoryCall(NamedTuple):
    """A pure function, and where in the memory its arguments are: inputs, then outputs."""

    name: str
    fn: Callable[..., Any]
    inputs: tuple[Region, ...]
    outputs: tuple[Region, ...]


def bind(part: MemoryCall, memory: np.ndarray, interpret: bool) -> Callable[[], object]:
    """The part on this memory. interpret: run the Python function itself."""
    inputs, outputs = (
        [memory[where].reshape(shape) for where, shape in places] for places in (part.inputs, part.outputs)
    )
    ports, results = (
        [ArrayPort(f"{word}{k}", place.shape) for k, place in enumerate(places)]
        for word, places in (("in", part.inputs), ("out", part.outputs))
    )
    call = compile(part.fn, ports, part.name, results, interpret)
    target = outputs[0] if len(outputs) == 1 else tuple(outputs)
    if isinstance(call, Compiled):
        return lambda: call.native(*inputs, out=target)
    # what the function returns may be part of what it was given
    return lambda: call(*(array.copy() for array in inputs), out=target)
