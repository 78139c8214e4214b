"""A block as a part on numbers: machine code where the block can be traced, else Python.

What makes `BlockPart` fit for symbols costs most of the time of a step in Python. `advance_in_python` does the same for
numbers alone: scalars are numbers, and values are packed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from cosim.core.compile import ArrayPort, compile
from cosim.core.compile.trace import Shape
from cosim.core.types import Array, Numeric
from cosim.mechanics.integrators.methods import INTEGRATORS, System
from cosim.simulation.coupling.block_part import MAX_STEPS, BlockPart
from cosim.simulation.coupling.extrapolation import packed, value_at

# (s since the beginning [s], state and works, length [s]) -> state and works after it
OwnStep = Callable[[Any, Array, Any], Array]


def on_numbers(fn: Callable[..., Numeric], shapes: Sequence[Shape], results: Sequence[Shape]) -> Callable[..., Numeric]:
    """A pure function as machine code. shapes: of the arguments, and of the results."""
    inputs, outputs = ([ArrayPort(f"{k}", each) for k, each in enumerate(shape)] for shape in (shapes, results))
    return compile(fn, inputs, outputs=outputs).native


def advance_on_numbers(part: BlockPart, rows: int) -> Callable[..., Numeric]:
    """`part.advance`; rows: of the coefficients."""
    if not part.compiled:
        return advance_in_python(part)
    sizes = part.size, part.output_layout.size, len(part.ports)
    shapes = [(), (), (part.size,), (rows, part.input_layout.size)]
    return on_numbers(part.advance, shapes, [(size,) for size in sizes])


class SteppedBlock:
    """A BlockPart that holds its state: a `Part` that measures its work."""

    order, repeats = BlockPart.order, BlockPart.repeats

    def __init__(self, part: BlockPart) -> None:
        self._part = part if not part.untraceable else replace(part, compiled=False)
        self.bounded = self._part.compiled  # its steps end by themselves
        self.inputs, self.outputs = part.inputs, part.outputs
        self.feedthrough, self.variable = part.feedthrough, part.variable
        self._x, self.work = np.zeros(part.size), np.zeros(len(part.ports))
        self._advance: dict[int, Callable[..., Numeric]] = {}  # by rows of the coefficients

    def measure(self, ports: Sequence[tuple[str, str]]) -> None:
        self._part = replace(self._part, ports=tuple(ports))
        self._advance.clear()

    def start(self, t: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self._x, y = self._part.at_start(t, self._part.input_layout.pack(dict(inputs)))
        return self._part.output_layout.unpack(y)

    def step(self, t: float, h: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        coefficients = packed(self._part.input_layout, inputs)
        advance = self._function(len(coefficients))
        self._x, y, self.work = advance(t, h, self._x, coefficients)
        return self._part.output_layout.unpack(y)

    def _function(self, rows: int) -> Callable[..., Numeric]:
        if rows not in self._advance:
            self._advance[rows] = advance_on_numbers(self._part, rows)
        return self._advance[rows]

    def save(self) -> object:
        return self._x

    def restore(self, saved: object) -> None:
        assert isinstance(saved, np.ndarray)
        self._x = saved

    def close(self) -> None:
        """Nothing to release."""


def advance_in_python(part: BlockPart) -> Callable[[float, float, Array, Array], tuple[Array, Array, Array]]:
    """`part.advance` for numbers."""
    scalar = part.integrator == "rk4" and part.state_layout.scalar and part.input_layout.scalar
    of_continuous = _scalar_integration if scalar else _integration
    steps, held = (_samples if part.sampled else of_continuous)(part), part.output_layout.size
    no_work = np.zeros(len(part.ports))

    def advance(t: float, h: float, x: Array, coefficients: Array) -> tuple[Array, Array, Array]:
        begin, duration = np.float64(t), np.float64(h)
        whole = h if part.coupling_step is None else part.coupling_step
        count = min(max(ceil(whole / part.step - 1e-6), 1), MAX_STEPS)
        step, xw = steps(begin, coefficients), np.concatenate([x, no_work])
        s, length = np.float64(0.0), duration / count
        for _ in range(count):
            xw = step(s, xw, length)
            s = s + length
        end, work = xw[: part.size], xw[part.size :]
        if part.sampled:
            return end, end[part.size - held :], work
        u = part.input_layout.numbers(value_at(coefficients, duration))
        _, y = part.equations(begin + duration, part.block.params, part.state_layout.numbers(end), u)
        return end, part.packed(y), work

    return advance


def _integration(part: BlockPart) -> Callable[[Any, Array], OwnStep]:
    state, inputs, coordinates = part.state_layout, part.input_layout, part.coordinates
    equations, params, method = part.equations, part.block.params, INTEGRATORS[part.integrator].step

    def steps(t: Any, coefficients: Array) -> OwnStep:
        def rate(s: Any, xw: Array) -> Array:
            u = inputs.numbers(value_at(coefficients, s))
            dx, y = equations(t + s, params, state.numbers(xw), u)
            rates = state.pack(dx)
            return np.concatenate([rates, _powers(part, u, y)]) if part.ports else rates

        def jacobian(*arguments: Any) -> Any:
            return part.system(t, coefficients).jacobian(*arguments)

        system = System(rate, coordinates, lambda s, xw: rate(s, xw)[coordinates], jacobian)
        return lambda s, xw, length: method(system, s, xw, length)[0]

    return steps


def _scalar_integration(part: BlockPart) -> Callable[[Any, Array], OwnStep]:
    """RK4 on lists of numbers, which for few of them takes less time than on arrays."""
    state, names, inputs = part.state_layout, [name for (name,) in part.state_layout.places], list(part.inputs)
    equations, params = part.equations, part.block.params

    def steps(t: Any, coefficients: Array) -> OwnStep:
        columns = list(zip(inputs, zip(*map(list, coefficients), strict=True), strict=True))

        def rate(s: Any, u: dict[str, Any], xw: list[Any]) -> list[Any]:
            dx, y = equations(t + s, params, dict(zip(names, xw, strict=False)), dict(u))  # works follow the state
            return [*state.elements(dx), *_powers(part, u, y)]

        def step(s: Any, xw: Array, h: Any) -> Array:
            x, half = list(xw), h / 2
            times = s, s + half, s + h
            begin, middle, end = ({name: value_at(column, time) for name, column in columns} for time in times)
            k1 = rate(s, begin, x)
            k2 = rate(s + half, middle, [a + half * k for a, k in zip(x, k1, strict=True)])
            k3 = rate(s + half, middle, [a + half * k for a, k in zip(x, k2, strict=True)])
            k4 = rate(s + h, end, [a + h * k for a, k in zip(x, k3, strict=True)])
            slopes = zip(x, k1, k2, k3, k4, strict=True)
            return np.array([a + (h / 6) * (p + 2.0 * q + 2.0 * r + w) for a, p, q, r, w in slopes])

        return step

    return steps


def _samples(part: BlockPart) -> Callable[[Any, Array], OwnStep]:
    state, inputs, equations, params = part.state_layout, part.input_layout, part.equations, part.block.params

    def steps(t: Any, coefficients: Array) -> OwnStep:
        def step(s: Any, xyw: Array, length: Any) -> Array:
            u = inputs.numbers(value_at(coefficients, s))
            after, y = equations(t + s, params, state.numbers(xyw), u)
            reached = [state.pack(after), part.packed(y)]
            if part.ports:
                # Simpson's rule, see `BlockPart`
                middle, end = (inputs.numbers(value_at(coefficients, s + f * length)) for f in (0.5, 1.0))
                weights = (u, 1.0 / 6.0), (middle, 4.0 / 6.0), (end, 1.0 / 6.0)
                reached.append(
                    xyw[part.size :] + length * sum(w * np.array(_powers(part, each, y)) for each, w in weights)
                )
            return np.concatenate(reached)

        return step

    return steps


def _powers(part: BlockPart, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> list[Any]:
    """W, of each port. Raises WrongResult for other outputs than those that the block declares."""
    try:
        powers = [
            np.reshape(inputs[i], -1) @ np.reshape(outputs[o], -1) if part.inputs[i].shape else inputs[i] * outputs[o]
            for i, o in part.ports
        ]
    except (KeyError, TypeError, ValueError):
        part.packed(dict(outputs))
        raise
    if not all(isinstance(power, float) for power in powers):
        part.packed(dict(outputs))
    return powers
