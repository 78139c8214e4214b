"""A block as a part on numbers: machine code where the block can be traced, else Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from cosim.core.compile import ArrayPort, compile
from cosim.core.types import Array, Numeric
from cosim.simulation.coupling.block_in_python import advance_in_python
from cosim.simulation.coupling.block_part import BlockPart


class SteppedBlock:
    """A BlockPart that holds its state: a `Part` that measures its work."""

    order = 2
    repeats = True

    def __init__(self, part: BlockPart) -> None:
        self._part = part if not part.untraceable else replace(part, compiled=False)
        self.bounded = self._part.compiled  # its steps end by themselves
        self.inputs, self.outputs = part.inputs, part.outputs
        self.feedthrough, self.variable = part.feedthrough, not part.sampled
        self._x, self.work = np.zeros(part.size), np.zeros(len(part.ports))
        self._advance: dict[int, Callable[..., Numeric]] = {}  # by rows of the coefficients
        self._inputs = [(name, *part.input_layout.place(name)) for name in part.inputs]

    def measure(self, ports: Sequence[tuple[str, str]]) -> None:
        self._part = replace(self._part, ports=tuple(ports))
        self._advance.clear()

    def start(self, t: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self._x, y = self._part.at_start(t, self._part.input_layout.pack(dict(inputs)))
        return self._part.output_layout.unpack(y)

    def step(self, t: float, h: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        rows = max((len(each) for each in inputs.values()), default=1)
        coefficients = np.zeros((rows, self._part.input_layout.size))
        for name, where, _ in self._inputs:
            coefficients[:, where] = inputs[name].reshape(rows, -1)
        self._x, y, self.work = self._function(rows)(t, h, self._x, coefficients)
        return self._part.output_layout.unpack(y)

    def _function(self, rows: int) -> Callable[..., Numeric]:
        if rows not in self._advance:
            part = self._part
            if part.compiled:
                self._advance[rows] = _on_numbers(part, rows)
            else:
                self._advance[rows] = advance_in_python(part) if part.untraceable else part.advance
        return self._advance[rows]

    def save(self) -> object:
        return self._x

    def restore(self, saved: object) -> None:
        assert isinstance(saved, np.ndarray)
        self._x = saved

    def close(self) -> None:
        """Nothing to release."""


def _on_numbers(part: BlockPart, rows: int) -> Callable[..., Numeric]:
    """`part.advance` as machine code that is called without checks of its arguments in Python."""
    shapes = {"t": (), "h": (), "x": (part.size,), "coefficients": (rows, part.input_layout.size)}
    advance = compile(part.advance, [ArrayPort(name, shape) for name, shape in shapes.items()], part.name).native
    sizes = part.size, part.output_layout.size, len(part.ports)

    def call(t: float, h: float, x: Array, coefficients: Array) -> tuple[Array, ...]:
        return advance(np.array(t), np.array(h), x, coefficients, out=tuple(np.empty(size) for size in sizes))

    return call
