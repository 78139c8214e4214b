"""The master of parts of any kind, in Python: the scheme of `CompiledMaster` on the contract of a part."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
    """What a step needs to know of a part. inputs: (name, source, whether it is delayed); ports: of its bonds, and
    their places among the works of all ends of bonds."""

    name: str
    part: Part
    inputs: list[tuple[str, Terminal, bool]]
    ports: list[tuple[str, str]]
    work_places: list[int]
    order: int


@dataclass
class _Past:
    """What a repeated step returns to."""

    t: float
    lengths: list[float]
    values: dict[Terminal, list[Array]]
    energy: Array
    largest: Array
    saved: list[object]


@dataclass
class PythonMaster:
    """Holds what the memory of `CompiledMaster` holds: `t` [s], `lengths` [s], `values` (the last three of each
    output), `energy` [J], `works` [J], `largest`, `planned` [s], `error`, `refused`."""

    parts: Mapping[str, Part]
    couplings: Couplings
    scheme: Scheme
    output_order: list[Terminal]
    time_limit: float | None = None  # s, of a start and of a step of a part
    t: float = field(init=False, default=0.0)
    values: dict[Terminal, list[Array]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        bonds = len(self.couplings.bonds)
        self.lengths = [0.0] * (KEPT - 1)
        self.energy, self.works, self.largest = np.zeros(bonds), np.zeros((bonds, 2)), np.zeros((bonds, 2))
        self.planned, self.error, self.refused = 0.0, 0.0, 0
        self._hanging: set[str] = set()
        self._plans = [self._plan(name) for name in self.scheme.sequence]
        for plan in self._plans:
            if isinstance(plan.part, MeasuresWork):
                plan.part.measure(plan.ports)

    def _plan(self, name: str) -> _PartPlan:
        part = self.parts[name]
        driven = {signal: self.couplings.driven[Terminal(name, signal)] for signal in part.inputs}
        inputs = [(signal, each.source, each.initial is not None) for signal, each in driven.items()]
        places = [k for k, (end, _) in enumerate(self.couplings.bond_ends()) if end == name]
        order = min(self.scheme.order, part.order)
        return _PartPlan(name, part, inputs, self.couplings.ports(name), places, order)

    @property
    def repeats(self) -> bool:
        return all(part.repeats for part in self.parts.values())

    # --- start ---

    def start(self, t: float, first: float) -> None:
        """Start all parts at t [s]; first: length of the first step [s]. Raises InputError for a part that cannot."""

        def start(name: str, inputs: dict[str, Array]) -> Mapping[str, Array]:
            return self._checked(name, self._call(name, "start", t, inputs), t)

        found = outputs_at_start(self.parts, self.couplings, self.output_order, start)
        self.t, self.lengths, self.planned = t, [first] * (KEPT - 1), first
        self.values = {each: [value] * KEPT for each, value in found.items()}

    def add_slope(self, first: float) -> None:
        """Make a first step and return; the outputs get a past on the line to its end. All parts must repeat steps."""
        past = self.save()
        self.step(first)
        after = {each: values[0] for each, values in self.values.items()}
        self.restore(past)
        for each, values in self.values.items():
            self.values[each] = [values[0], *line_before(values[0], after[each], KEPT - 1)]

    def save(self) -> _Past:
        saved = [plan.part.save() for plan in self._plans]
        return _Past(self.t, self.lengths, dict(self.values), self.energy, self.largest, saved)

    def restore(self, past: _Past) -> None:
        self.t, self.lengths, self.values = past.t, past.lengths, dict(past.values)
        self.energy, self.largest = past.energy, past.largest
        for plan, saved in zip(self._plans, past.saved, strict=True):
            plan.part.restore(saved)

    # --- steps ---

    def step(self, h: float) -> None:
        """One step of length h [s]. Raises RunError for a part that fails, diverges or hangs."""
        t, times = self.t, times_before(self.lengths)
        offsets = self._offsets(times, h)
        after: dict[Terminal, Array] = {}
        works = np.zeros(2 * len(self.couplings.bonds))
        for plan in self._plans:
            reached = after if self.scheme.sequential else {}
            inputs = {name: self._input(plan.order, source, late, reached, h) for name, source, late in plan.inputs}
            for name in inputs if offsets else ():
                if (offset := offsets.get(Terminal(plan.name, name))) is not None:
                    inputs[name][0] += offset
            outputs = self._checked(plan.name, self._call(plan.name, "step", t, h, inputs), t + h)
            if plan.ports:
                works[plan.work_places] = self._measured(plan, h, inputs, outputs)
            for signal, value in outputs.items():
                after[Terminal(plan.name, signal)] = value
        self.values = {each: [after[each], *values[:-1]] for each, values in self.values.items()}
        self.t, self.lengths = t + h, [h, *self.lengths[:-1]]
        if self.couplings.bonds:
            self.works = works.reshape(-1, 2)
            self.energy = self.energy + residuals(self.works)
            self.largest = np.maximum(
                self.largest, [[e @ e, f @ f] for e, f in map(self._bond_now, self.couplings.bonds)]
            )

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
        planned = float(control.next_length(h, error, self.error))
        self.planned, self.error = max(planned, self.planned) if h < self.planned else planned, error
        return True

    def _input(self, order: int, source: Terminal, delayed: bool, reached: Mapping[Terminal, Array], h: float) -> Array:
        """(order + 1, ...) the polynomial of an input; reached: outputs at the end of the step that are known."""
        values = self.values[source]
        if source in reached and not delayed:
            values, times = [reached[source], *values], [h, *times_before(self.lengths)]
        else:
            times = times_before(self.lengths)
        if order == 0 or delayed:
            coefficients = np.zeros((order + 1, *values[0].shape))
            coefficients[0] = values[0]
            return coefficients
        return np.array(polynomial(values[: order + 1], times[: order + 1]))

    def _measured(
        self, plan: _PartPlan, h: float, inputs: Mapping[str, Array], reached: Mapping[str, Array]
    ) -> Sequence[float] | Array:
        """(ports,) works [J] of the ports of a part in this step."""
        if isinstance(plan.part, MeasuresWork):
            return plan.part.work
        before = {output: self.values[Terminal(plan.name, output)][0] for _, output in plan.ports}
        return [trapezoidal_work(port, h, inputs, before, reached) for port in plan.ports]

    def _bond_now(self, bond: BondEnds) -> tuple[Array, Array]:
        """Effort and flow at the last communication point, flat."""
        effort, flow = (self.values[end.source][0].reshape(-1) for end in (bond.effort, bond.flow))
        return effort, flow

    def _offsets(self, times: Sequence[float], h: float) -> dict[Terminal, Array]:
        """What the correction adds to the inputs that bonds drive."""
        offsets: dict[Terminal, Array] = {}
        correction, rows = self.scheme.correction, self.scheme.order + 1
        if correction is None:
            return offsets
        for k, bond in enumerate(self.couplings.bonds):
            ends = [self.values[end.source][:rows] for end in (bond.effort, bond.flow)]
            effort, flow = (value_at(polynomial(values, times[:rows]), 0.5 * h).reshape(-1) for values in ends)
            largest = self.largest[k, 0], self.largest[k, 1]
            added = correction.offsets(self.energy[k], h, effort, flow, largest)
            for end, offset in zip((bond.effort, bond.flow), added, strict=True):
                offsets[end.target] = offset.reshape(self.values[end.source][0].shape)
        return offsets

    def _call(self, name: str, what: str, t: float, *arguments: Any) -> Mapping[str, Array]:
        """The outputs after a call of `start` or `step` of a part. Raises RunError for any error of a part."""
        fn = getattr(self.parts[name], what)
        try:
            if self.time_limit is None:
                return fn(t, *arguments)
            return within(self.time_limit, f"the {what} of part '{name}' at t = {t:.6g} s", fn, t, *arguments)
        except HangingPart:
            self._hanging.add(name)
            raise
        except CosimError:
            raise
        except Exception as error:
            raise RunError(f"part '{name}' failed at t = {t:.6g} s: {describe_exception(error)}") from error

    def close(self) -> None:
        """Release the parts that do not hang."""
        for name, part in self.parts.items():
            if name not in self._hanging:
                part.close()

    def _checked(self, name: str, outputs: Mapping[str, Array], t: float) -> dict[str, Array]:
        """The outputs of a part as arrays. Raises RunError: one that is missing or not finite."""
        checked = {}
        for signal in self.parts[name].outputs:
            if signal not in outputs:
                raise RunError(f"part '{name}' gave no output '{signal}' at t = {t:.6g} s")
            value = checked[signal] = np.asarray(outputs[signal], dtype=float)
            if not (math.isfinite(value) if not value.shape else np.isfinite(value).all()):
                raise RunError(diverged(name, signal, value, t))
        return checked


def diverged(part: str, output: str, value: Array, t: float) -> str:
    """What a run says of an output that is not finite."""
    return f"part '{part}' diverged: its output '{output}' is {value} at t = {t:.6g} s"
