"""A controller in the loop: its joints, its rate, its reference, and the fallback that replaces it when it fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from cosim.control.bumpless_start import BumplessStart
from cosim.control.controller_result import accepted
from cosim.control.guard import is_finite
from cosim.control.tunables import Tunables
from cosim.core import ops
from cosim.core.compile import ArrayPort, compile_for_batches
from cosim.core.compile.trace import trace
from cosim.core.errors import CompileError, MissingInput, describe_exception, did_you_mean
from cosim.core.layout import Layout
from cosim.core.ops import is_symbolic
from cosim.core.types import (
    ALL,
    COMMAND,
    FEEDBACK,
    REFERENCE,
    Array,
    Controller,
    Numeric,
    Parameters,
    Signals,
    State,
    Trajectory,
    signals_of,
)


@dataclass(frozen=True)
class Locks:
    """Dofs that may be locked: latched at the start, by events later, and those that brakes and stops hold."""

    latched: tuple[int, ...] = ()
    latching: tuple[int, ...] = ()
    held: tuple[int, ...] = ()

    @property
    def changing(self) -> tuple[int, ...]:
        """The dofs whose lock may change."""
        return (*self.latching, *self.held)


class TrajectorySamples:
    """Positions and velocities of a trajectory in the ticks of a run, looked at before it begins. Called with a count:
    (position, velocity) (count, n) of the first ticks, arrays that must not be changed."""

    def __init__(self, trajectory: Trajectory, n: int, step: float, compiled: bool) -> None:
        """n: joints; step [s]; compiled: False for plain Python, as with a trajectory that cannot be traced."""
        self._trajectory, self._step = trajectory, step
        self._taken = np.zeros((0, n)), np.zeros((0, n))
        self._compiled = compiled

    def __call__(self, count: int) -> tuple[Array, Array]:
        taken = len(self._taken[0])
        if count > taken:
            more = self._sample(self._step * np.arange(taken, count))
            first, second = (np.concatenate(pair) for pair in zip(self._taken, more, strict=True))
            self._taken = first, second
        return self._taken[0][:count], self._taken[1][:count]

    def _motion(self, t: Numeric) -> tuple[Numeric, Numeric]:
        sample = self._trajectory.sample(t)
        return sample["position"], sample["velocity"]

    def _sample(self, times: Array) -> tuple[Array, Array]:
        """(position, velocity) (k, n) at times (k,) [s]."""
        if self._compiled:
            try:
                return self._function(times)
            except CompileError:  # Python code of a user
                self._compiled = False
        rows = [self._motion(float(t)) for t in times]
        shape = len(rows), self._taken[0].shape[1]
        position, velocity = (np.array([row[k] for row in rows], dtype=float) for k in (0, 1))
        return position.reshape(shape), velocity.reshape(shape)

    @cached_property
    def _function(self) -> Callable[[Array], tuple[Array, Array]]:
        return compile_for_batches(self._motion, [ArrayPort("t", ())], "trajectory")


class DeclaredInputs(dict[str, Numeric]):
    """The inputs that a block declares, by name."""

    def __missing__(self, name: str) -> Numeric:
        """Raises MissingInput."""
        known = (*FEEDBACK, *REFERENCE, *ALL)
        if name in known:
            raise MissingInput(f"'{name}' is not in the inputs; add it to them")
        raise MissingInput(f"there is no input '{name}'{did_you_mean(str(name), known)}")


@dataclass
class ControlLoop:
    """A controller of the joints at `index`, called every `ticks` ticks from tick `phase` on.

    fallback: a controller that replaces `block` permanently when that raises or commands values that are not finite; it
    holds the position measured at that time.
    """

    name: str
    block: Controller
    index: np.ndarray  # (n,) of its joints in the model's order
    ticks: int
    trajectory: Trajectory
    phase: int = 0
    priority: int = 0
    deadline_ns: int | None = None
    fallback: Controller | None = None
    locks: Locks = field(default_factory=Locks)

    parameter_slice: slice = field(init=False, default_factory=lambda: slice(0))  # in the parameters of all loops
    failure: str = field(init=False, default="")  # the exception for which the fallback took over
    compiled_fallback: Callable[..., Numeric] | None = field(init=False, default=None)  # for Python controllers
    _samples: TrajectorySamples | None = field(init=False, default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.layout = Layout(self.initial())
        self.tunables = Tunables(self.block.params)

    @cached_property
    def state_layout(self) -> Layout:
        """Of the controller alone."""
        return Layout(self.block.initial())

    @property
    def signals(self) -> Signals:
        """What the controller computes besides its command, to be recorded."""
        return signals_of(self.block)

    @cached_property
    def signal_layout(self) -> Layout:
        """Of the signals of the controller."""
        return Layout({name: np.zeros(signal.shape) for name, signal in self.signals.items()})

    def initial(self) -> State:
        """The state of the controller and of its fallback."""
        state: State = {"block": self.block.initial()}
        if self.fallback is not None:
            state |= {"fallback": self.fallback.initial(), "hold_position": np.zeros(len(self.index))}
        return state

    @property
    def fallback_active(self) -> np.ndarray:
        """(1,) 0, the initial value of the flag that the fallback is active; empty without a fallback."""
        return np.zeros(0 if self.fallback is None else 1)

    @cached_property
    def feedforward(self) -> np.ndarray:
        """(n,) whether the trajectory has an effort for the joint, which the controller adds to its own."""
        if "reference_effort" not in self.block.inputs:
            return np.zeros(len(self.index), dtype=bool)
        try:
            (efforts,) = trace(lambda t: self.trajectory.sample(t)["effort"], [()], "effort").outputs
        except CompileError:  # Python code of a user, which may return any effort
            return np.ones(len(self.index), dtype=bool)
        return np.array([not ops.is_zero(effort) for effort in efforts.elements()], dtype=bool)

    def samples(self, step: float, compiled: bool) -> TrajectorySamples:
        """Of its trajectory, taken once; step [s]."""
        if self._samples is None:
            self._samples = TrajectorySamples(self.trajectory, len(self.index), step, compiled)
        return self._samples

    def needs_reference(self, what: str) -> bool:
        """Whether the controller follows this part of the reference. One that follows positions counts as following
        velocity and acceleration too."""
        return "reference_position" in self.block.inputs or f"reference_{what}" in self.block.inputs

    def update(
        self,
        t: Numeric,
        p: Numeric,
        x: Numeric,
        fallback_active: Numeric,
        q: Numeric,
        v: Numeric,
        effort: Numeric,
        a: Numeric,
        locks: Numeric,
        start: Numeric,
    ) -> tuple[Numeric, ...]:
        """(next state, fallback_active, the fields of COMMAND, the signals): one call of the controller on flat arrays.

        p: its tunable parameters; x: its state; q, v, effort: (nv,) as measured; a: (nv,) accelerations of prescribed
        joints, 0 of others; locks: (2, nv), see `Plant.locks`; start: the `BumplessStart` of nv joints as one array.
        """
        state = self.layout.unpack(x)
        u = self.inputs(t, q, v, effort, a, locks, start)
        run = partial(self._run, self.block, self.state_layout, t, self.tunables.apply(p), state["block"], u)
        if self.fallback is None:
            state["block"], y = run()
            return self.layout.pack(state), fallback_active, *self._flat(y)
        return self._with_fallback(run, state, fallback_active, (t, q, v, effort, a, locks))

    def inputs(
        self, t: Numeric, q: Numeric, v: Numeric, effort: Numeric, a: Numeric, locks: Numeric, start: Numeric
    ) -> dict[str, Numeric]:
        """The inputs of the controller by name; see `update`."""
        reference = BumplessStart.of(start, len(q)).at(self.index).reference(self.trajectory, t)
        return self._inputs_of(self.block, self._measured_inputs(q, v, effort, a, locks), reference)

    def run_fallback(
        self,
        t: Numeric,
        x: Numeric,
        q: Numeric,
        v: Numeric,
        effort: Numeric,
        a: Numeric,
        locks: Numeric,
        hold_position: Numeric,
    ) -> tuple[Numeric, ...]:
        """(next state of the fallback, then the fields of COMMAND): one call of the fallback on flat arrays.

        hold_position: (n,) its reference."""
        assert self.fallback is not None
        at_rest = {what: np.zeros(len(self.index)) for what in ("velocity", "acceleration", "effort")}
        reference, layout = {"position": hold_position, **at_rest}, Layout(self.fallback.initial())
        u = self._inputs_of(self.fallback, self._measured_inputs(q, v, effort, a, locks), reference)
        x, y = self._run(self.fallback, layout, t, self.fallback.params, layout.unpack(x), u)
        return layout.pack(x), *(y[name] for name in COMMAND)

    def _measured_inputs(
        self, q: Numeric, v: Numeric, effort: Numeric, a: Numeric, locks: Numeric
    ) -> dict[str, Numeric]:
        """The inputs of controllers that are not references."""
        measured = dict(zip(FEEDBACK, (q, v, effort), strict=True))
        of_all = dict(zip(ALL, (q, v, effort, a, self._locked(locks)), strict=True))
        return of_all | {name: values[self.index] for name, values in measured.items()}

    def _locked(self, locks: Numeric) -> Numeric:
        """(nv,) 1 for dofs that the controller must take as locked. Its own joints are only if they are latched: it may
        drive them out of a stop or against a brake. Locks that never change are constants of the trace."""
        dofs = np.arange(locks.shape[1])
        own, held = np.isin(dofs, self.index), np.isin(dofs, self.locks.held)
        latched = np.isin(dofs, self.locks.latched).astype(float)
        latched = ops.where(np.isin(dofs, self.locks.latching), locks[0], latched)
        return ops.where(held & ~own, locks[1], latched)

    @staticmethod
    def _inputs_of(
        block: Controller, measured: dict[str, Numeric], reference: dict[str, Numeric]
    ) -> dict[str, Numeric]:
        """The inputs that one of the two blocks declares. Raises ValueError for one that does not exist."""
        u = measured | {f"reference_{name}": value for name, value in reference.items()}
        unknown = [name for name in block.inputs if name not in u]
        if unknown:
            raise ValueError(f"there is no input '{unknown[0]}'{did_you_mean(unknown[0], u)}")
        return DeclaredInputs({name: u[name] for name in block.inputs})

    def _run(
        self, block: Controller, state: Layout, t: Numeric, p: Parameters, x: State, u: dict[str, Numeric]
    ) -> tuple[State, dict[str, Numeric]]:
        """(next state, command and signals) of one of the two blocks. Raises WrongResult for any other result."""
        return accepted(block.update(t, p, x, u), block, state, len(self.index))

    def accepted(self, result: object) -> tuple[State, list[Numeric]]:
        """(next state, the fields of COMMAND and the signals) from what the controller returned. Raises WrongResult
        for anything else."""
        state, y = accepted(result, self.block, self.state_layout, len(self.index))
        return state, self._flat(y)

    def _flat(self, y: dict[str, Numeric]) -> list[Numeric]:
        """The fields of COMMAND, and the signals as one vector."""
        return [*(y[name] for name in COMMAND), self.signal_layout.pack({name: y[name] for name in self.signals})]

    def _with_fallback(
        self,
        run: Callable[[], tuple[State, dict[str, Numeric]]],
        state: State,
        fallback_active: Numeric,
        inputs: tuple[Numeric, ...],
    ) -> tuple[Numeric, ...]:
        """The result of `update` with a fallback, whose command counts from the failure of the controller on. In
        Python a failed controller is not called again, and the fallback is not called before. The signals of a failed
        controller are 0.

        run: one call of the controller; inputs: t, q, v, effort, a, locks.
        """
        n, tracing = len(self.index), any(map(is_symbolic, inputs))
        x, y, signals = state["block"], [np.full(n, np.nan)] * len(COMMAND), np.zeros(self.signal_layout.size)
        try:
            if tracing or not fallback_active[0]:
                x, results = run()
                *y, signals = self._flat(results)
        except (Exception, SystemExit) as error:  # code of a user may raise anything
            if tracing:
                raise
            self.failure = describe_exception(error)
        is_valid: Numeric = 1.0
        for values in y:
            for value in values:
                is_valid = ops.where(is_finite(value), is_valid, 0.0)
        before = fallback_active[0] > 0.0
        after = ops.logical_or(before, is_valid < 0.5)
        hold_position = ops.where(before, state["hold_position"], inputs[1][self.index])
        layout = Layout(state["fallback"])
        fallback_state, fallback_command = layout.pack(state["fallback"]), y
        if tracing or after:
            fallback: Callable[..., Numeric] = self.compiled_fallback or self.run_fallback
            fallback_state, *fallback_command = fallback(inputs[0], fallback_state, *inputs[1:], hold_position)
        continued = self.layout.pack({"block": x, "fallback": state["fallback"], "hold_position": hold_position})
        replaced = self.layout.pack(
            {"block": state["block"], "fallback": layout.unpack(fallback_state), "hold_position": hold_position}
        )
        outputs = [ops.where(after, b, a) for a, b in zip(y, fallback_command, strict=True)]
        signals = ops.where(after, 0.0, signals)
        return ops.where(after, replaced, continued), ops.array([ops.where(after, 1.0, 0.0)]), *outputs, signals
