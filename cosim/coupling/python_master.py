"""The master of parts of any kind, in Python: the scheme of `CompiledMaster` on the contract of a part."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from cosim.coupling.correction import EnergyCorrection
from cosim.coupling.couplings import BondEnds, Couplings, Terminal
from cosim.coupling.energy import MeasuresWork, residuals, trapezoidal_work
from cosim.coupling.extrapolation import line_before, polynomial, times_before, value_at
from cosim.coupling.master import KEPT, Scheme
from cosim.coupling.part import Part
from cosim.coupling.start import outputs_at_start
from cosim.coupling.time_limit import HangingPart, within
from cosim.errors import CosimError, RunError, describe_exception
from cosim.types import Array


@dataclass
class _PartPlan:
    """What a step needs to know of a part. inputs: (name, place of the source among all outputs, whether
    it is delayed); outputs: (name, place, shape); ports: of its bonds, and their places among the works of all ends."""

    name: str
    part: Part
    inputs: list[tuple[str, int, bool]]
    outputs: list[tuple[str, int, tuple[int, ...]]]
    ports: list[tuple[str, str]]
    work_places: list[int]
    order: int
    measures: bool  # whether the part gives the works itself
    time_limit: float | None  # s, of its start and steps; None for a part that is `bounded`: they end by themselves


@dataclass
class _Past:
    """What a repeated step returns to."""

    t: float
    lengths: list[float]
    values: list[list[Array]]
    energy: Array
    largest: Array
    saved: list[object]


@dataclass
class PythonMaster:
    """Holds what the memory of `CompiledMaster` holds: `t` [s], `lengths` [s], `values` (the last three of each
    output, in their order), `energy` [J], `works` [J], `largest`, `planned` [s], `error`, `refused`."""

    parts: Mapping[str, Part]
    couplings: Couplings
    scheme: Scheme
    output_order: list[Terminal]
    time_limit: float | None = None  # s, of a start and of a step of a part
    t: float = field(init=False, default=0.0)
    values: list[list[Array]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        bonds = len(self.couplings.bonds)
        self.lengths = [0.0] * (KEPT - 1)
        self.energy, self.works, self.largest = np.zeros(bonds), np.zeros((bonds, 2)), np.zeros((bonds, 2))
        self.planned, self.error, self.refused = 0.0, 0.0, 0
        self._hanging: set[str] = set()
        self._places = {terminal: k for k, terminal in enumerate(self.output_order)}
        self._plans = [self._plan(name) for name in self.scheme.sequence]
        for plan in self._plans:
            if plan.measures:
                cast(MeasuresWork, plan.part).measure(plan.ports)

    def _plan(self, name: str) -> _PartPlan:
        part = self.parts[name]
        terminals = (Terminal(name, signal) for signal in part.inputs)
        origins = [self.couplings.sources[each] for each in terminals if each in self.couplings.sources]
        inputs = [(each.target.signal, self._places[each.source], each.initial is not None) for each in origins]
        outputs = [(signal, self._places[Terminal(name, signal)], each.shape) for signal, each in part.outputs.items()]
        places = [k for k, (end, _) in enumerate(self.couplings.bond_ends()) if end == name]
        order = min(self.scheme.order, part.order)
        measures, ports = isinstance(part, MeasuresWork), self.couplings.ports(name)
        limit = None if getattr(part, "bounded", False) else self.time_limit
        return _PartPlan(name, part, inputs, outputs, ports, places, order, measures, limit)

    @property
    def now(self) -> dict[Terminal, Array]:
        """The outputs of all parts at `t`."""
        return {terminal: self.values[place][0] for terminal, place in self._places.items()}

    @property
    def repeats(self) -> bool:
        return all(part.repeats for part in self.parts.values())

    # --- start ---

    def start(self, t: float, first: float) -> None:
        """Start all parts at t [s]; first: length of the first step [s]. Raises InputError for a part that cannot."""
        plans = {plan.name: plan for plan in self._plans}

        def start(name: str, inputs: dict[str, Array]) -> Mapping[str, Array]:
            return self._checked(plans[name], self._call(plans[name], plans[name].part.start, t, inputs), t)

        found = outputs_at_start(self.parts, self.couplings, self.output_order, start)
        self.t, self.lengths, self.planned = t, [first] * (KEPT - 1), first
        self.values = [[found[each]] * KEPT for each in self.output_order]

    def add_slope(self, first: float) -> None:
        """Make a first step and return; the outputs get a linear past with the slope that it finds. All parts must
        repeat steps."""
        past = self.save()
        self.step(first)
        after = [values[0] for values in self.values]
        self.restore(past)
        now = [values[0] for values in self.values]
        self.values = [[a, *line_before(a, b, KEPT - 1)] for a, b in zip(now, after, strict=True)]

    def save(self) -> _Past:
        saved = [plan.part.save() for plan in self._plans]
        return _Past(self.t, self.lengths, self.values, self.energy, self.largest, saved)

    def restore(self, past: _Past) -> None:
        self.t, self.lengths, self.values = past.t, past.lengths, past.values
        self.energy, self.largest = past.energy, past.largest
        for plan, saved in zip(self._plans, past.saved, strict=True):
            plan.part.restore(saved)

    # --- steps ---

    def step(self, h: float) -> None:
        """One step of length h [s]. Raises RunError for a part that fails, diverges or hangs."""
        t, bonds = self.t, self.couplings.bonds
        offsets = self._offsets(self.scheme.correction, h) if self.scheme.correction else {}
        unknown: list[Array | None] = [None] * len(self.values)
        after, works = unknown.copy(), np.zeros(2 * len(bonds)) if bonds else None
        reached = after if self.scheme.sequential else unknown
        for plan in self._plans:
            inputs = {name: self._input(plan.order, place, late, reached, h) for name, place, late in plan.inputs}
            for (name, signal), offset in offsets.items():
                if name == plan.name:
                    inputs[signal] = np.concatenate([inputs[signal][:1] + offset, inputs[signal][1:]])
            outputs = self._checked(plan, self._call(plan, plan.part.step, t, h, inputs), t + h)
            if works is not None and plan.ports:
                works[plan.work_places] = self._measured(plan, h, inputs, outputs)
            for signal, place, _ in plan.outputs:
                after[place] = outputs[signal]
        self.values = [[new, a, b] for new, (a, b, _) in zip(cast(list[Array], after), self.values, strict=True)]
        self.t, self.lengths = t + h, [h, *self.lengths[:-1]]
        if works is not None:
            self.works = works.reshape(-1, 2)
            self.energy = self.energy + residuals(self.works)
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

    def _input(self, order: int, place: int, delayed: bool, reached: Sequence[Array | None], h: float) -> Array:
        """(order + 1, ...) the polynomial of an input; reached: outputs at the end of the step that are known."""
        values, newest = self.values[place], None if delayed else reached[place]
        if order == 0:
            return (values[0] if newest is None else newest)[None]
        if delayed:
            return np.array([values[0], *[np.zeros_like(values[0])] * order])
        times = times_before(self.lengths)
        if newest is not None:
            values, times = [newest, *values], [h, *times]
        return np.array(polynomial(values[: order + 1], times[: order + 1]))

    def _measured(
        self, plan: _PartPlan, h: float, inputs: Mapping[str, Array], reached: Mapping[str, Array]
    ) -> Sequence[float] | Array:
        """(ports,) works [J] of the ports of a part in this step."""
        if plan.measures:
            return cast(MeasuresWork, plan.part).work
        before = {output: self.values[self._places[Terminal(plan.name, output)]][0] for _, output in plan.ports}
        return [trapezoidal_work(port, h, inputs, before, reached) for port in plan.ports]

    def _bond_now(self, bond: BondEnds) -> tuple[Array, Array]:
        """Effort and flow at the last communication point, flat."""
        effort, flow = (self.values[self._places[end.source]][0].reshape(-1) for end in (bond.effort, bond.flow))
        return effort, flow

    def _offsets(self, correction: EnergyCorrection, h: float) -> dict[Terminal, Array]:
        """What the correction adds to the inputs that bonds drive."""
        offsets: dict[Terminal, Array] = {}
        times, rows = times_before(self.lengths), self.scheme.order + 1
        for k, bond in enumerate(self.couplings.bonds):
            ends = [self.values[self._places[end.source]][:rows] for end in (bond.effort, bond.flow)]
            effort, flow = (value_at(polynomial(values, times[:rows]), 0.5 * h).reshape(-1) for values in ends)
            largest = self.largest[k, 0], self.largest[k, 1]
            added = correction.offsets(self.energy[k], h, effort, flow, largest)
            for end, offset in zip((bond.effort, bond.flow), added, strict=True):
                offsets[end.target] = offset.reshape(self.values[self._places[end.source]][0].shape)
        return offsets

    def _call(self, plan: _PartPlan, fn: Callable[..., Any], *arguments: Any) -> Mapping[str, Array]:
        """The outputs after a call of `start` or `step` of a part, whose first argument is the time. Raises RunError
        for any error of a part."""
        try:
            if plan.time_limit is None:
                return fn(*arguments)
            what = f"the {fn.__name__} of part '{plan.name}' at t = {arguments[0]:.6g} s"
            return within(plan.time_limit, what, fn, *arguments)
        except HangingPart:
            self._hanging.add(plan.name)
            raise
        except CosimError:
            raise
        except Exception as error:
            raise RunError(
                f"part '{plan.name}' failed at t = {arguments[0]:.6g} s: {describe_exception(error)}"
            ) from error

    def close(self) -> None:
        """Release the parts that do not hang."""
        for name, part in self.parts.items():
            if name not in self._hanging:
                part.close()

    def _checked(self, plan: _PartPlan, outputs: Mapping[str, Array], t: float) -> dict[str, Array]:
        """The outputs of a part as arrays. Raises RunError: one that is missing, of another shape or not finite."""
        checked = {}
        for signal, _, shape in plan.outputs:
            if signal not in outputs:
                raise RunError(f"part '{plan.name}' gave no output '{signal}' at t = {t:.6g} s")
            value = checked[signal] = np.array(outputs[signal], dtype=float)  # a copy: a part may reuse its arrays
            if value.shape != shape:
                what = f"part '{plan.name}' gave its output '{signal}' in shape {value.shape} at t = {t:.6g} s"
                raise RunError(f"{what}; it declares {shape}")
            if not (np.isfinite(value).all() if shape else math.isfinite(value)):
                raise RunError(diverged(plan.name, signal, value, t))
        return checked


def diverged(part: str, output: str, value: Array, t: float) -> str:
    """The message about an output that is not finite."""
    return f"part '{part}' diverged: its output '{output}' is {value} at t = {t:.6g} s"
