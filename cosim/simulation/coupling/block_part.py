"""A block as a part: pure functions on flat arrays that advance it over a step of the coupling in steps of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cosim.core import ops
from cosim.core.compile.jacobian import Jacobian
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import Trace, origin
from cosim.core.compile.while_loop import repeated_while
from cosim.core.errors import CompileError, InputError, WrongResult, did_you_mean
from cosim.core.layout import Layout
from cosim.core.types import Array, ContinuousBlock, DiscreteBlock, Numeric, Signals, State
from cosim.mechanics.integrators.methods import INTEGRATORS, System
from cosim.simulation.coupling.extrapolation import value_at

METHODS = tuple(name for name, method in INTEGRATORS.items() if not method.multirate)
MAX_STEPS = 1_000_000  # of a part in one step of the coupling
_CLOCK = 4  # t at the beginning, time since then, steps that remain, length of each


def zeros_of(signals: Signals) -> dict[str, Array]:
    return {name: np.zeros(signal.shape) for name, signal in signals.items()}


@dataclass
class BlockPart:
    """A block as a part. block: a ContinuousBlock, or a DiscreteBlock whose period is `step`. step [s]: the longest of
    its integrator; a step of the coupling is divided evenly. initial: its state at the start, by default
    `block.initial()`. ports: (input, output) pairs whose product is a power; their work is integrated with the state.

    The outputs of a DiscreteBlock are held from a sample to the next. Its state as a part has these behind its own.
    """

    block: ContinuousBlock | DiscreteBlock
    step: float
    integrator: str = "rk4"
    initial: State | None = None
    name: str = "part"
    ports: tuple[tuple[str, str], ...] = ()
    compiled: bool = True
    coupling_step: float | None = None  # s, of the coupling where it is constant; then there are derivatives
    order = 2  # see `Part`
    repeats = True
    inputs: Signals = field(init=False)
    outputs: Signals = field(init=False)
    input_layout: Layout = field(init=False)
    output_layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        """Raises InputError: no such integrator, a step that is no positive time, a block of no known kind."""
        self.inputs, self.outputs = self.block.inputs, self.block.outputs
        self.input_layout, self.output_layout = Layout(zeros_of(self.inputs)), Layout(zeros_of(self.outputs))
        if not 0.0 < self.step < np.inf:
            raise InputError(f"the step is {self.step} s; it must be a time above 0", self.name)
        if self.integrator not in METHODS:
            what = f"there is no integrator '{self.integrator}'{did_you_mean(self.integrator, METHODS)}"
            raise InputError(what, self.name)
        if not self.sampled and not hasattr(self.block, "flow"):
            raise InputError(f"{type(self.block).__name__} has neither `flow` nor `update`", self.name)
        if self.initial is None:
            self.initial = self._own_initial()

    def _own_initial(self) -> State:
        try:
            return self.block.initial()  # type: ignore[union-attr]
        except (AttributeError, TypeError):
            what = f"{type(self.block).__name__} has no `initial()` without arguments; give `initial`, its state"
            raise InputError(what, self.name) from None

    # --- layouts ---

    @property
    def sampled(self) -> bool:
        return hasattr(self.block, "update")

    @property
    def variable(self) -> bool:
        """See `Part`."""
        return not self.sampled

    @cached_property
    def state_layout(self) -> Layout:
        """Of the block's own state."""
        assert self.initial is not None
        return Layout(self.initial)

    @property
    def size(self) -> int:
        """Elements of its state as a part."""
        return self.state_layout.size + (self.output_layout.size if self.sampled else 0)

    # --- pure functions ---

    def at_start(self, t: Numeric, u: Numeric) -> tuple[Numeric, Numeric]:
        """(state, outputs) at the start, flat, with the inputs u (nu,)."""
        assert self.initial is not None
        x = self.state_layout.pack(self.initial)
        if not self.sampled:
            return x, self.output_values(t, x, u)
        _, y = self._sample(t, x, u)
        return ops.concatenate([x, y]), y

    def advance(self, t: Numeric, h: Numeric, x: Numeric, coefficients: Numeric) -> tuple[Numeric, Numeric, Numeric]:
        """(state, outputs, work [J] of each port) at t + h from the state at t, all flat; coefficients (k + 1, nu): the
        inputs as a polynomial of the time since t."""
        whole = h if self.coupling_step is None else self.coupling_step
        count = ops.maximum(ops.ceil(whole / self.step - 1e-6), 1.0)
        clock = ops.array([t, 0.0, count, h / count])
        z = ops.concatenate([clock, x, np.zeros(len(self.ports))])
        if self.coupling_step is None:
            z, _, _ = self._steps(len(coefficients))(z, coefficients)
        else:
            z = ops.repeat(lambda z, c: self._one_step(z, c)[0], int(count), z, coefficients)
        end, work = z[_CLOCK : _CLOCK + self.size], z[_CLOCK + self.size :]
        return end, self.output_values(t + h, end, value_at(coefficients, h)), work

    def output_values(self, t: Numeric, x: Numeric, u: Numeric) -> Numeric:
        """(ny,) the outputs from its state as a part and the inputs (nu,) at the same time."""
        return x[self.state_layout.size :] if self.sampled else self._rates(t, x, u)[1]

    def _steps(self, rows: int) -> Callable[..., Numeric]:
        """Steps of its own, until none remains; rows: of the coefficients."""
        if rows not in self._loops:
            shapes = [(_CLOCK + self.size + len(self.ports),), (rows, self.input_layout.size)]
            self._loops[rows] = repeated_while(self._one_step, shapes, f"{self.name}_step", MAX_STEPS, self.compiled)
        return self._loops[rows]

    @cached_property
    def _loops(self) -> dict[int, Callable[..., Numeric]]:
        return {}

    def _one_step(self, z: Numeric, coefficients: Numeric) -> tuple[Numeric, Numeric]:
        t, s, left, length = (z[k] for k in range(_CLOCK))
        x = z[_CLOCK:]
        if self.sampled:
            end = self._sampled_step(t, s, length, x, coefficients)
        else:
            end, _ = INTEGRATORS[self.integrator].step(self.system(t, coefficients), s, x, length)
        left = left - 1.0
        now = ops.array([t, s + length, left, length])
        return ops.concatenate([now, end]), ops.where(left > 0.5, 1.0, 0.0)

    # --- continuous blocks ---

    def _rates(self, t: Numeric, x: Numeric, u: Numeric) -> tuple[Numeric, Numeric]:
        """(rates of the state, outputs), flat."""
        dx, y = self._flow(t, x, u)
        return self.state_layout.pack(dx), self.packed(y)

    def _flow(self, t: Numeric, x: Numeric, u: Numeric) -> tuple[State, dict[str, Numeric]]:
        state, inputs = self.state_layout.unpack(x), self.input_layout.unpack(u)
        return self.equations(t, self.block.params, state, inputs)

    def _rate(self, t: Numeric, s: Numeric, xw: Numeric, coefficients: Numeric) -> Numeric:
        """The rates of the state and of the works."""
        u = value_at(coefficients, s)
        dx, y = self._flow(t + s, xw[: self.size], u)
        return ops.concatenate([self.state_layout.pack(dx), self._powers(self.input_layout.unpack(u), y)])

    def packed(self, outputs: dict[str, Numeric]) -> Numeric:
        """Raises WrongResult for other outputs than those that the block declares, ValueError for no numbers."""
        try:
            return self.output_layout.pack(outputs)
        except ValueError:
            found, declared = (
                {name: np.shape(value) for name, value in each.items()} for each in (outputs, zeros_of(self.outputs))
            )
            if found == declared:
                raise
            what = f"{type(self.block).__name__} gives outputs of shapes {found}; it declares {declared}"
            raise WrongResult(what, origin(self.equations)) from None

    def _powers(self, inputs: Mapping[str, Numeric], outputs: Mapping[str, Numeric]) -> Numeric:
        """(ports,) W."""
        if not self.ports:
            return np.zeros(0)
        products = [np.reshape(inputs[i], -1) @ np.reshape(outputs[o], -1) for i, o in self.ports]
        return ops.array(products)

    def system(self, t: Numeric, coefficients: Numeric) -> System:
        def rates(s: Numeric, xw: Numeric) -> Numeric:
            return self._rate(t, s, xw, coefficients)[self.coordinates]

        def jacobian(s: Numeric, xw: Numeric, rate: Numeric) -> tuple[Numeric, Numeric]:
            slope = self._slope(len(coefficients))(ops.concatenate([s, xw]), t, coefficients)
            return slope[:, 1:], slope[:, 0]

        return System(lambda s, xw: self._rate(t, s, xw, coefficients), self.coordinates, rates, jacobian)

    @cached_property
    def coordinates(self) -> np.ndarray:
        """Elements of the state that are positions, which the semi-implicit method moves with the new velocities."""
        names = getattr(self.block, "positions", ())
        return np.concatenate([np.zeros(0, dtype=int), *(self.state_layout.index(name) for name in names)])

    def _slope(self, rows: int) -> Jacobian:
        if rows not in self._slopes:
            shapes = [(1 + self.size + len(self.ports),), (), (rows, self.input_layout.size)]
            self._slopes[rows] = Jacobian(
                lambda sx, t, c: self._rate(t, sx[0], sx[1:], c), shapes, f"{self.name}_slope"
            )
        return self._slopes[rows]

    @cached_property
    def _slopes(self) -> dict[int, Jacobian]:
        return {}

    # --- discrete blocks ---

    def _sample(self, t: Numeric, x: Numeric, u: Numeric) -> tuple[Numeric, Numeric]:
        state, inputs = self.state_layout.unpack(x), self.input_layout.unpack(u)
        after, y = self.equations(t, self.block.params, state, inputs)
        return self.state_layout.pack(after), self.packed(y)

    def _sampled_step(self, t: Numeric, s: Numeric, length: Numeric, xyw: Numeric, coefficients: Numeric) -> Numeric:
        """A sample at its beginning, and the outputs held over its length."""
        x, y = self._sample(t + s, xyw[: self.state_layout.size], value_at(coefficients, s))
        held = self.output_layout.unpack(y)
        # Simpson's rule is exact: the inputs are polynomials of order 2 at most
        powers = [
            weight * self._powers(self.input_layout.unpack(value_at(coefficients, s + part * length)), held)
            for part, weight in ((0.0, 1.0 / 6.0), (0.5, 4.0 / 6.0), (1.0, 1.0 / 6.0))
        ]
        return ops.concatenate([x, y, xyw[self.size :] + length * ops.sum(powers)])

    # --- what can be known of it ---

    @cached_property
    def _traced(self) -> Routine | CompileError:
        """From (t, x, u) to rates, or the state after a sample, and outputs."""
        shapes = [(), (self.state_layout.size,), (self.input_layout.size,)]
        try:
            found, again = (Routine(self._sample if self.sampled else self._rates, shapes, self.name) for _ in range(2))
            if found.symbol == again.symbol:
                return found
        except CompileError as error:
            return error
        what = "does not compute the same at every call: it keeps hidden state, reads a clock or draws random numbers"
        return CompileError(what, origin(self.equations))

    @property
    def equations(self) -> Callable[..., Any]:
        return getattr(self.block, "update" if self.sampled else "flow")

    @property
    def untraceable(self) -> str:
        """Why it has to run in Python; empty for one that can be compiled."""
        return str(self._traced) if isinstance(self._traced, CompileError) else ""

    @property
    def feedthrough(self) -> frozenset[tuple[str, str]]:
        """(input, output) where the output depends on the input at the same time; for a block that cannot be traced
        every pair. A held output depends on none."""
        return self._feedthrough

    @cached_property
    def _feedthrough(self) -> frozenset[tuple[str, str]]:
        if self.sampled:
            return frozenset()
        if isinstance(self._traced, CompileError):
            return frozenset((i, o) for i in self.inputs for o in self.outputs)
        return feedthrough_of(self._traced.trace, self.input_layout, self.output_layout)


def feedthrough_of(trace: Trace, inputs: Layout, outputs: Layout) -> frozenset[tuple[str, str]]:
    """(input, output) pairs of a function of (t, x, u) with flat inputs u, whose last result is the flat outputs.

    A call depends with all its results on whatever any of its arguments depends on.
    """
    import casadi

    column, result = trace.inputs[2], trace.outputs[-1]
    found = set()
    for (name,), (where, _) in inputs.places.items():
        reached = {element.element_hash() for element in casadi.vertsplit(column[where])}
        for call in trace.calls:
            if _uses(call.expressions, reached):
                reached |= {element.element_hash() for each in call.results for element in casadi.vertsplit(each)}
        found |= {(name, out) for (out,), (place, _) in outputs.places.items() if _uses([result[place]], reached)}
    return frozenset(found)


def _uses(expressions: Iterable[Numeric], symbols: set[int]) -> bool:
    import casadi

    return any(s.element_hash() in symbols for e in expressions for s in casadi.symvar(casadi.SX(e)))
