"""A pure function bound to one memory: a call without arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from cosim.core.compile import ArrayPort, Compiled, Interpreted, compile
from cosim.core.layout import Region
from cosim.core.types import Numeric


class MemoryCall(NamedTuple):
    """A pure function, and the regions of its arguments in the memory: inputs, then outputs."""

    name: str
    fn: Callable[..., Numeric]
    inputs: tuple[Region, ...]
    outputs: tuple[Region, ...]


def compile_call(call: MemoryCall, interpret: bool) -> Compiled | Interpreted:
    """The function of a call, for any memory; interpret: run the Python function itself."""
    ports, results = (
        [ArrayPort(f"{side}{k}", region.shape) for k, region in enumerate(regions)]
        for side, regions in (("in", call.inputs), ("out", call.outputs))
    )
    return compile(call.fn, ports, call.name, results, interpret)


def bind(call: MemoryCall, memory: np.ndarray, run: Compiled | Interpreted) -> Callable[[], object]:
    """The call on this memory; run: its function, of `compile_call`."""
    inputs, outputs = (
        [memory[where].reshape(shape) for where, shape in regions] for regions in (call.inputs, call.outputs)
    )
    return bound(run, inputs, outputs)


def bound(
    run: Compiled | Interpreted, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]
) -> Callable[[], object]:
    """The call of a compiled function with these arrays; they may overlap."""
    target = outputs[0] if len(outputs) == 1 else tuple(outputs)
    if isinstance(run, Compiled):
        return partial(run.native, *inputs, out=target)
    # copies: the function may return an array that it was given
    return lambda: run(*(array.copy() for array in inputs), out=target)
