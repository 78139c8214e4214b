"""The master of parts of any kind, in Python: the scheme of `CompiledMaster` on the contract of a part."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import numpy as np

from cosim.core.errors import CosimError, RunError, describe_exception
from cosim.core.layout import Layout, Region
from cosim.core.types import Array
from cosim.simulation.coupling.couplings import BondEnds, Couplings, Terminal
from cosim.simulation.coupling.energy import EnergyCorrection, MeasuresWork, residuals, trapezoidal_work
from cosim.simulation.coupling.extrapolation import InputSources, line_before, polynomial, times_before, value_at
from cosim.simulation.coupling.master import KEPT, Scheme
from cosim.simulation.coupling.part import Part, StepsAside
from cosim.simulation.coupling.start import outputs_at_start
from cosim.simulation.coupling.time_limit import Supervisor


@dataclass
class _PartPlan:
    """What a step needs to know of a part. inputs: (name, its columns among the elements of all inputs, shape);
    reshaped: those with several indices; transformed: (columns, factor, offset) of those with a transformation;
    outputs: (name, place among the outputs of all parts, shape); ports: of its bonds, and their places among the works
    of all ends."""

    name: str
    part: Part
    inputs: list[tuple[str, int | slice, tuple[int, ...]]]
    reshaped: list[tuple[str, tuple[int, ...]]]
    sources: InputSources
    transformed: list[tuple[slice, float, float]]
    outputs: list[tuple[str, int | slice, tuple[int, ...]]]
    ports: list[tuple[str, str]]
    work_places: Array
    measures: bool  # whether the part gives the works itself
    start: Callable[..., Mapping[str, Array]]  # within the time limit
    step: Callable[..., Mapping[str, Array]]


@dataclass
class _Past:
    """What a repeated step returns to."""

    t: float
    lengths: list[float]
    values: tuple[Array, ...]
    energy: Array
    largest: Array
    saved: list[object]


@dataclass
class PythonMaster:
    """Holds what the memory of `CompiledMaster` holds: `t` [s], `lengths` [s], `values` (outputs (n,) of all parts in
    their order, at the last three communication points; never changed in place), `energy` [J], `works` [J], `largest`
    (only with a correction), `planned` [s], `error`, `refused`."""

    parts: Mapping[str, Part]
    couplings: Couplings
    scheme: Scheme
    output_order: list[Terminal]
    time_limit: float | None = None  # s, of a start and of a step of a part
    t: float = field(init=False, default=0.0)
    values: tuple[Array, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        bonds = len(self.couplings.bonds)
        self.lengths = [0.0] * (KEPT - 1)
        self.energy, self.works, self.largest = np.zeros(bonds), np.zeros((bonds, 2)), np.zeros((bonds, 2))
        self.planned, self.error, self.refused = 0.0, 0.0, 0
        self._layout = Layout({str(each): np.zeros(self._shape(each)) for each in self.output_order})
        limited = not all(map(_is_bounded, self.parts.values()))
        self.supervisor = Supervisor(self.time_limit if limited else None)
        self._plans = [self._plan(name) for name in self.scheme.sequence]
        # with Jacobi no step waits for another
        together = [] if self.scheme.sequential else self._plans
        self._aside = [(plan, plan.part) for plan in together if isinstance(plan.part, StepsAside)]
        for plan in self._plans:
            if plan.measures:
                cast(MeasuresWork, plan.part).measure(plan.ports)

    def _plan(self, name: str) -> _PartPlan:
        part = self.parts[name]
        terminals = (Terminal(name, signal) for signal in part.inputs)
        origins = [self.couplings.sources[each] for each in terminals if each in self.couplings.sources]
        layout = Layout({each.target.signal: np.zeros(self._shape(each.source)) for each in origins})
        inputs = [(name, *_place(layout.place(name))) for (name,) in layout.places]
        done = self.scheme.sequence[: self.scheme.sequence.index(name)] if self.scheme.sequential else ()
        sources = InputSources(
            min(self.scheme.order, part.order),
            [np.arange(self._layout.size)[self.place(each.source).where] for each in origins],
            [each.initial is not None for each in origins],
            [each.source.part in done for each in origins],
        )
        transformed = [(layout.place(o.target.signal).where, o.factor, o.offset) for o in origins if o.transforms]
        outputs = [(signal, *_place(self.place(Terminal(name, signal)))) for signal in part.outputs]
        places = np.array([k for k, (end, _) in enumerate(self.couplings.bond_ends()) if end == name], dtype=int)
        measures, ports = isinstance(part, MeasuresWork), self.couplings.ports(name)
        calls = [part.start, part.step]
        if self.supervisor.limit is not None and not _is_bounded(part):
            calls = [partial(self.supervisor.call, name, call) for call in calls]
        reshaped = [(signal, shape) for signal, _, shape in inputs if len(shape) > 1]
        return _PartPlan(name, part, inputs, reshaped, sources, transformed, outputs, ports, places, measures, *calls)

    def _shape(self, output: Terminal) -> tuple[int, ...]:
        return self.parts[output.part].outputs[output.signal].shape

    def place(self, output: Terminal) -> Region:
        """Its place among the outputs of all parts."""
        return self._layout.place(str(output))

    def now(self, output: Terminal) -> Array:
        """An output at `t`."""
        where, shape = self.place(output)
        return self.values[0][where].reshape(shape)

    @property
    def repeats(self) -> bool:
        return all(part.repeats for part in self.parts.values())

    # --- start ---

    def start(self, t: float, first: float) -> None:
        """Start all parts at t [s]; first: length of the first step [s]. Raises InputError for a part that cannot."""
        plans = {plan.name: plan for plan in self._plans}

        def start(name: str, inputs: dict[str, Array]) -> Mapping[str, Array]:
            plan, checked = plans[name], np.empty(self._layout.size)
            self._store(plan, self._started(plan, t, inputs), t, checked)
            return {signal: checked[where].reshape(shape) for signal, where, shape in plan.outputs}

        found = outputs_at_start(self.parts, self.couplings, self.output_order, start)
        self.t, self.lengths, self.planned = t, [first] * (KEPT - 1), first
        self.values = (self._layout.pack({str(each): found[each] for each in self.output_order}),) * KEPT

    def add_slope(self, first: float) -> None:
        """Make a first step and return; the outputs get a linear past with the slope that it finds. All parts must
        repeat steps."""
        past = self.save()
        self.step(first)
        after = self.values[0]
        self.restore(past)
        now = self.values[0]
        self.values = (now, *line_before(now, after, KEPT - 1))

    def save(self) -> _Past:
        saved = [plan.part.save() for plan in self._plans]
        return _Past(self.t, self.lengths, self.values, self.energy, self.largest, saved)

    def restore(self, past: _Past) -> None:
        self.t, self.lengths, self.values = past.t, past.lengths, past.values
        self.energy, self.largest = past.energy, past.largest
        for plan, saved in zip(self._plans, past.saved, strict=True):
            plan.part.restore(saved)

    # --- steps ---

    def limit_steps(self, seconds: float | None) -> None:
        """Change the time limit of the calls of parts, after a start that may take longer."""
        if self.supervisor.limit is not None:
            self.supervisor.limit = seconds

    def step(self, h: float) -> None:
        """One step of length h [s]. Raises RunError for a part that fails, diverges or hangs."""
        t, end, bonds, past = self.t, self.t + h, self.couplings.bonds, self.values
        offsets = self._offsets(self.scheme.correction, h) if self.scheme.correction else None
        after, works = past[0].copy(), np.zeros(2 * len(bonds)) if bonds else None
        times = times_before(self.lengths) if self.scheme.order else [0.0]
        for plan, part in self._aside:
            part.begin_step(t, h, self._inputs(plan, h, after, times, offsets))
        for plan in self._plans:
            inputs = self._inputs(plan, h, after, times, offsets)
            try:
                outputs = plan.step(t, h, inputs)
            except CosimError:
                raise
            except (Exception, SystemExit) as error:  # user code may raise anything
                raise _failure(plan.name, t, error) from error
            self._store(plan, outputs, end, after)
            if works is not None and plan.ports:
                works[plan.work_places] = self._measured(plan, h, inputs, outputs)
        self.values = (after, *past[:-1])
        self.t, self.lengths = end, [h, *self.lengths[:-1]]
        if works is not None:
            self.works = works.reshape(-1, 2)
            self.energy = self.energy + residuals(self.works)
        if self.scheme.correction:
            self.largest = np.maximum(self.largest, [[e @ e, f @ f] for e, f in map(self._bond_now, bonds)])

    def controlled_step(self, end: float) -> bool:
        """A step of the planned length, or to the time `end` [s] if that is nearer. Returns False for one that was
        refused: it is undone, and the planned length is shorter."""
        control = self.scheme.control
        assert control is not None
        h = min(self.planned, end - self.t)
        past = self.save() if control.repeats else None
        self.step(h)
        error = float(control.error(self.works))
        if past is not None and control.refused(h, error):
            self.restore(past)
            self.planned, self.refused = float(control.repeated_length(h, error)), self.refused + 1
            return False
        self.planned, self.error = map(float, control.plan(h, self.planned, error, self.error))
        return True

    def _inputs(
        self,
        plan: _PartPlan,
        h: float,
        reached: Array,
        times: Sequence[float],
        offsets: Mapping[Terminal, Array] | None,
    ) -> dict[str, Array]:
        """The polynomials of all inputs of a part; reached, times: see `InputSources`, offsets: see `_offsets`."""
        coefficients = plan.sources.polynomials(h, reached, self.values, times)
        for where, factor, offset in plan.transformed:
            coefficients[:, where] *= factor
            coefficients[0, where] += offset
        inputs = {name: coefficients[:, where] for name, where, _ in plan.inputs}
        for name, shape in plan.reshaped:
            inputs[name] = inputs[name].reshape(-1, *shape)
        if offsets is not None:
            self._add_offsets(plan.name, inputs, offsets)
        return inputs

    def _measured(
        self, plan: _PartPlan, h: float, inputs: Mapping[str, Array], reached: Mapping[str, Array]
    ) -> Sequence[float] | Array:
        """(ports,) works [J] of the ports of a part in this step."""
        if plan.measures:
            return cast(MeasuresWork, plan.part).work
        before = {output: self.now(Terminal(plan.name, output)) for _, output in plan.ports}
        return [trapezoidal_work(port, h, inputs, before, reached) for port in plan.ports]

    def _bond_now(self, bond: BondEnds) -> tuple[Array, Array]:
        """Effort and flow at the last communication point, flat."""
        effort, flow = (self.now(end.source).reshape(-1) for end in (bond.effort, bond.flow))
        return effort, flow

    def _offsets(self, correction: EnergyCorrection, h: float) -> dict[Terminal, Array]:
        """What the correction adds to the inputs that bonds drive."""
        offsets: dict[Terminal, Array] = {}
        times, rows = times_before(self.lengths), self.scheme.order + 1
        for k, bond in enumerate(self.couplings.bonds):
            places = [self.place(end.source).where for end in (bond.effort, bond.flow)]
            ends = [[past[where] for past in self.values[:rows]] for where in places]
            effort, flow = (value_at(polynomial(values, times[:rows]), 0.5 * h).reshape(-1) for values in ends)
            largest = self.largest[k, 0], self.largest[k, 1]
            added = correction.offsets(self.energy[k], h, effort, flow, largest)
            for end, offset in zip((bond.effort, bond.flow), added, strict=True):
                offsets[end.target] = offset.reshape(self.place(end.source).shape)
        return offsets

    @staticmethod
    def _add_offsets(part: str, inputs: dict[str, Array], offsets: Mapping[Terminal, Array]) -> None:
        for (name, signal), offset in offsets.items():
            if name == part:
                inputs[signal] = np.concatenate([inputs[signal][:1] + offset, inputs[signal][1:]])

    def _started(self, plan: _PartPlan, t: float, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """The outputs of a part at the start. Raises RunError for any error of the part."""
        try:
            return plan.start(t, inputs)
        except CosimError:
            raise
        except (Exception, SystemExit) as error:
            raise _failure(plan.name, t, error) from error

    def close(self) -> None:
        """Release the parts that do not hang."""
        for name, part in self.parts.items():
            if name not in self.supervisor.hanging:
                part.close()

    def _store(self, plan: _PartPlan, outputs: Mapping[str, Array], t: float, values: Array) -> None:
        """Store the outputs of a part at their places. Raises RunError: one that is missing, of another shape or not
        finite."""
        for signal, where, shape in plan.outputs:
            if signal not in outputs:
                raise RunError(f"part '{plan.name}' gave no output '{signal}' at t = {t:.6g} s")
            value = outputs[signal]
            if shape or type(value) is not np.float64:  # else it is a scalar already
                value = np.asarray(value, dtype=float)
                if value.shape != shape:
                    what = f"part '{plan.name}' gave its output '{signal}' in shape {value.shape} at t = {t:.6g} s"
                    raise RunError(f"{what}; it declares {shape}")
            if not (np.isfinite(value).all() if shape else math.isfinite(value)):
                raise RunError(diverged(plan.name, signal, value, t))
            values[where] = value if len(shape) < 2 else value.reshape(-1)


def _is_bounded(part: Part) -> bool:
    """Whether its start and steps end by themselves, without a time limit."""
    return getattr(part, "bounded", False)


def _place(region: Region) -> tuple[int | slice, tuple[int, ...]]:
    """A region as (index, shape): an element of its own has a number."""
    where, shape = region
    return (where if shape else where.start), shape


def _failure(part: str, t: float, error: BaseException) -> RunError:
    """The error of the run for an error in the code of a part at t [s]."""
    return RunError(f"part '{part}' failed at t = {t:.6g} s: {describe_exception(error)}")


def diverged(part: str, output: str, value: Array, t: float) -> str:
    """The message about an output that is not finite."""
    return f"part '{part}' diverged: its output '{output}' is {value} at t = {t:.6g} s"
