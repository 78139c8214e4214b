"""A block as a part on numbers: machine code where the block can be traced, else Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from cosim.compile import ArrayPort, compile
from cosim.coupling.block_part import BlockPart
from cosim.types import Array, Numeric


class SteppedBlock:
    """A BlockPart that holds its state: a `Part` that measures its work."""

    order = 2
    repeats = True

    def __init__(self, part: BlockPart) -> None:
        self._part = part if not part.untraceable else replace(part, compiled=False)
        self.inputs, self.outputs = part.inputs, part.outputs
        self.feedthrough, self.variable = part.feedthrough, not part.sampled
        self._x, self.work = np.zeros(part.size), np.zeros(len(part.ports))
        self._advance: dict[int, Callable[..., Numeric]] = {}  # by rows of the coefficients

    def measure(self, ports: Sequence[tuple[str, str]]) -> None:
        self._part = replace(self._part, ports=tuple(ports))
        self._advance.clear()

    def start(self, t: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self._x, y = self._part.at_start(t, self._part.input_layout.pack(dict(inputs)))
        return self._part.output_layout.unpack(y)

    def step(self, t: float, h: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        rows = max((len(each) for each in inputs.values()), default=1)
        layout = self._part.input_layout
        coefficients = np.array([layout.pack({name: each[k] for name, each in inputs.items()}) for k in range(rows)])
        self._x, y, self.work = self._function(rows)(t, h, self._x, coefficients.reshape(rows, layout.size))
        return self._part.output_layout.unpack(y)

    def _function(self, rows: int) -> Callable[..., Numeric]:
        if rows not in self._advance:
            part = self._part
            shapes = {"t": (), "h": (), "x": (part.size,), "coefficients": (rows, part.input_layout.size)}
            ports = [ArrayPort(name, shape) for name, shape in shapes.items()]
            self._advance[rows] = compile(part.advance, ports, part.name) if part.compiled else part.advance
        return self._advance[rows]

    def save(self) -> object:
        return self._x

    def restore(self, saved: object) -> None:
        assert isinstance(saved, np.ndarray)
        self._x = saved

    def close(self) -> None:
        """Nothing to release."""
