"""The master on numbers: each part is a call, and what is between two calls is machine code.

So parts of any kind can be joined: FMUs, blocks that cannot be traced, parts in other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from math import isfinite
from typing import cast

import numpy as np
from numpy import empty, float64, ndarray  # looked up for every output of a step

from cosim.core.compile.trace import Shape
from cosim.core.errors import CosimError, RunError, describe_exception
from cosim.core.layout import Layout, Region
from cosim.core.types import Array, Numeric
from cosim.simulation.coupling.block_part import BlockPart, zeros_of
from cosim.simulation.coupling.couplings import Couplings, Terminal
from cosim.simulation.coupling.energy import work_meter
from cosim.simulation.coupling.master import Master, MasterPart, PartStage
from cosim.simulation.coupling.part import Part, StepsAside
from cosim.simulation.coupling.stepped_block import advance_on_numbers, on_numbers
from cosim.simulation.coupling.time_limit import Supervisor

FLOAT64 = np.dtype(float64)


class HeldPart:
    """A part that holds its state, with the contract of `MasterPart`: `advance` calls its `step`, and raises RunError
    for any error in it.

    Its state in the memory of the master is a number (1,), which changes when the part leaves a state that was kept. A
    step from another number than the last one returns to that state first.
    """

    size = 1

    def __init__(self, name: str, part: Part, couplings: Couplings) -> None:
        self.name, self.part, self.order = name, part, part.order
        given = {signal: each for signal, each in part.inputs.items() if Terminal(name, signal) in couplings.sources}
        self.inputs, self.outputs, self.feedthrough = given, part.outputs, part.feedthrough
        self.input_layout, self.output_layout = Layout(zeros_of(self.inputs)), Layout(zeros_of(self.outputs))
        self._given, self._results = (
            [(signal, *_place(layout.place(signal))) for (signal,) in layout.places]
            for layout in (self.input_layout, self.output_layout)
        )
        self._columns = [(signal, (slice(None), where)) for signal, where, _ in self._given]
        self._reshaped = [(signal, shape) for signal, _, shape in self._given if len(shape) > 1]
        self._size = self.output_layout.size
        self._ports = couplings.ports(name)
        self._works = work_meter(part, self._ports)
        self._numbers = count(1)
        self._state = np.zeros(self.size)
        self._y, self._no_work = np.zeros(self._size), np.zeros(0)  # the last outputs; the part may reuse its arrays
        self._kept: tuple[Array, object, Array] | None = None

    def at_start(self, t: float, u: Array) -> tuple[Array, Array]:
        return self._moved(self.part.start(t, self.input_layout.unpack(u)), t)

    def advance(self, t: Array, h: Array, x: Array, coefficients: Array) -> tuple[Array, Array, Array]:
        time, length = float(t), float(h)
        try:
            if self._kept is not None:
                self._return_to(x)
            before, inputs = self._y, self._polynomials(coefficients)
            state, y = self._moved(self.part.step(time, length, inputs), time + length)
            if not self._ports:
                return state, y, self._no_work
            ends = map(self.output_layout.unpack, (before, y))
            return state, y, self._works(length, inputs, *ends)
        except CosimError:
            raise
        except (Exception, SystemExit) as error:  # user code may raise anything
            raise failed(self.name, time, error) from error

    def begin(self, t: Array, h: Array, x: Array, coefficients: Array) -> None:
        """Start a step, of a part that computes elsewhere; `advance` waits for its end."""
        self._return_to(x)
        cast(StepsAside, self.part).begin_step(float(t), float(h), self._polynomials(coefficients))

    def keep(self, x: Array) -> None:
        """Keep this state, so that steps can be made from it again; only the last one is kept."""
        self._return_to(x)
        self._kept = self._state, self.part.save(), self._y

    def _return_to(self, x: Array) -> None:
        if x[0] != self._state[0]:
            assert self._kept is not None
            self._state, saved, self._y = self._kept
            assert x[0] == self._state[0], "only the state that was kept can be returned to"
            self.part.restore(saved)

    def _polynomials(self, coefficients: Array) -> dict[str, Array]:
        """The inputs by name, each (k + 1, …)."""
        inputs: dict[str, Array] = {}
        for name, columns in self._columns:
            inputs[name] = coefficients[columns]
        for name, shape in self._reshaped:
            inputs[name] = inputs[name].reshape(-1, *shape)
        return inputs

    def _moved(self, outputs: Mapping[str, Array], t: float) -> tuple[Array, Array]:
        """(state, outputs) at t, flat. Raises RunError: an output that is missing, of another shape or not finite."""
        y = empty(self._size)
        for name, where, shape in self._results:
            try:
                value = outputs[name]
            except KeyError:
                raise RunError(f"part '{self.name}' gave no output '{name}' at t = {t:.6g} s") from None
            if not ((type(value) is ndarray and value.dtype is FLOAT64) or type(value) is float64):
                value = np.asarray(value, dtype=float)
            if value.shape != shape:
                what = f"part '{self.name}' gave its output '{name}' in shape {value.shape} at t = {t:.6g} s"
                raise RunError(f"{what}; it declares {shape}")
            if not (np.isfinite(value).all() if shape else isfinite(value)):
                raise RunError(diverged(self.name, name, value, t))
            y[where] = value if len(shape) < 2 else value.reshape(-1)
        self._y = y
        if self._kept is not None and self._state is self._kept[0]:
            self._state = np.array([next(self._numbers)], dtype=float)
        return self._state, y


@dataclass
class CallingMaster(Master):
    """Parts are called: blocks, and others as `HeldPart`. A step raises RunError for a part that fails, diverges or
    hangs, with its name. time_limit [s]: of the start and of each step of a part, where these do not end by themselves.
    """

    time_limit: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        limited = not all(map(_is_bounded, self.parts.values()))
        self.supervisor = Supervisor(self.time_limit if limited else None)
        self._length = 0.0, np.zeros(())  # of the last step, as a number and as an array
        # compiled before motors are on
        _ = self.stages, self._ended, self._judged if self.scheme.control else None

    @property
    def _held(self) -> dict[str, HeldPart]:
        return {name: part for name, part in self.parts.items() if isinstance(part, HeldPart)}

    def limit_steps(self, seconds: float | None) -> None:
        """Change the time limit of the calls of parts, after a start that may take longer."""
        if self.supervisor.limit is not None:
            self.supervisor.limit = seconds

    def close(self) -> None:
        """Release the parts that do not hang."""
        for name, held in self._held.items():
            if name not in self.supervisor.hanging:
                held.part.close()

    # --- see `Master` ---

    def between(
        self, fn: Callable[..., Numeric], shapes: Sequence[Shape], results: Sequence[Shape]
    ) -> Callable[..., Numeric]:
        return on_numbers(fn, shapes, results) if self.compiled else fn

    def of_part(self, name: str, order: int) -> Callable[..., tuple[Numeric, ...]]:
        part = self.parts[name]
        if isinstance(part, HeldPart):
            return self._call(name, "step", part.advance) if self._is_limited(name) else part.advance
        if isinstance(part, BlockPart):
            advance = advance_on_numbers(part, order + 1)
        else:
            shapes = [(), (), (part.size,), (order + 1, part.input_layout.size)]
            sizes = part.size, part.output_layout.size, len(self.couplings.ports(name))
            advance = self.between(part.advance, shapes, [(size,) for size in sizes])

        def step(t: Array, h: Array, x: Array, coefficients: Array) -> tuple[Array, ...]:
            found = advance(t, h, x, coefficients)
            self._check(name, found[1], t + h)
            return found

        return self._call(name, "step", step)

    def start_part(self, name: str, t: float, u: Array) -> tuple[Numeric, Numeric]:
        state, y = self._call(name, "start", self.parts[name].at_start)(t, u)
        self._check(name, y, t)
        return state, y

    @property
    def repeats(self) -> bool:
        return all(held.part.repeats for held in self._held.values())

    def keep(self, memory: Array) -> None:
        for stage, held in self._held_stages:
            held.keep(memory[stage.state])

    def begin(self, memory: Array, h: Numeric) -> Array:
        if h != self._length[0]:  # most steps are as long as the last one
            self._length = float(h), np.array(h, dtype=float)
        length = self._length[1]
        for stage, held in self._aside:
            held.begin(memory[self._time], length, memory[stage.state], stage.inputs(memory, length))
        return length

    @cached_property
    def _held_stages(self) -> list[tuple[PartStage, HeldPart]]:
        return [(stage, self._held[stage.name]) for stage in self.stages if stage.name in self._held]

    @cached_property
    def _aside(self) -> list[tuple[PartStage, HeldPart]]:
        """Parts that compute elsewhere, where no step waits for another."""
        together = [] if self.scheme.sequential else self._held_stages
        return [(stage, held) for stage, held in together if isinstance(held.part, StepsAside)]

    # --- calls ---

    def _call(self, name: str, what: str, fn: Callable[..., tuple[Array, ...]]) -> Callable[..., tuple[Array, ...]]:
        """fn(t, …), the `start` or `step` of a part, within the time limit. Raises RunError for any error in it."""

        def call(t: Array, *arguments: Array) -> tuple[Array, ...]:
            try:
                return fn(t, *arguments)
            except CosimError:
                raise
            except (Exception, SystemExit) as error:  # user code may raise anything
                raise failed(name, float(t), error) from error

        call.__name__ = what
        return partial(self.supervisor.call, name, call) if self._is_limited(name) else call

    def _is_limited(self, name: str) -> bool:
        return self.supervisor.limit is not None and not _is_bounded(self.parts[name])

    def _check(self, name: str, y: Array, t: Numeric) -> None:
        """Raises RunError for outputs of a part that are not finite."""
        if not all(map(isfinite, y.tolist())):
            outputs = self.parts[name].output_layout.unpack(y)
            output = next(output for output, value in outputs.items() if not np.isfinite(value).all())
            raise RunError(diverged(name, output, outputs[output], float(t)))


def _is_bounded(part: MasterPart) -> bool:
    """Whether its start and steps end by themselves, without a time limit."""
    if isinstance(part, HeldPart):
        return getattr(part.part, "bounded", False)
    return not isinstance(part, BlockPart) or part.compiled


def _place(region: Region) -> tuple[int | slice, tuple[int, ...]]:
    """A region as (index, shape): an element of its own has a number."""
    where, shape = region
    return (where if shape else where.start), shape


def failed(part: str, t: float, error: BaseException) -> RunError:
    return RunError(f"part '{part}' failed at t = {t:.6g} s: {describe_exception(error)}")


def diverged(part: str, output: str, value: Array, t: float) -> str:
    """The message about an output that is not finite."""
    return f"part '{part}' diverged: its output '{output}' is {value} at t = {t:.6g} s"
