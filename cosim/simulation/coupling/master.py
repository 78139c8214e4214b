"""The master of coupled parts: one step of the coupling as a pure function on one flat memory.

Jacobi: in a step every part extrapolates the outputs of the others. Gauss–Seidel: parts step one after the other, and
interpolate the outputs of those that have already got to the end of the step.

`Master` is traced with the pure functions of its parts. `CallingMaster` runs the same step on numbers: a part is then a
call, and what is between two calls is machine code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from cosim.core import ops
from cosim.core.compile.routine import Routine
from cosim.core.compile.trace import Shape
from cosim.core.layout import Layout
from cosim.core.types import Array, Numeric
from cosim.simulation.coupling.block_part import zeros_of
from cosim.simulation.coupling.couplings import Couplings, Terminal
from cosim.simulation.coupling.energy import EnergyCorrection, residuals
from cosim.simulation.coupling.extrapolation import line_before, polynomial, times_before, value_at
from cosim.simulation.coupling.start import HasFeedthrough, outputs_at_start
from cosim.simulation.coupling.step_control import EnergyControl

KEPT_VALUES = 3  # values of each output, at the last communication points


class MasterPart(HasFeedthrough, Protocol):
    """What the master needs of a part, such as `BlockPart`, where each function is described."""

    @property
    def order(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def input_layout(self) -> Layout: ...

    @property
    def output_layout(self) -> Layout: ...

    def at_start(self, t: Numeric, u: Numeric) -> tuple[Numeric, Numeric]: ...

    def advance(
        self, t: Numeric, h: Numeric, x: Numeric, coefficients: Numeric
    ) -> tuple[Numeric, Numeric, Numeric]: ...


@dataclass(frozen=True)
class Scheme:
    """How a master steps its parts: order of the polynomials (0 to 2); sequential: Gauss–Seidel, else Jacobi; sequence:
    the parts in the order in which they step."""

    order: int
    sequential: bool
    sequence: tuple[str, ...]
    control: EnergyControl | None = None
    correction: EnergyCorrection | None = None


class PartStage(NamedTuple):
    """A part in a step. state, outputs: its places in the memory, and among the outputs; inputs: the polynomials of its
    inputs (k + 1, nu), from the memory, the length of the step, and with Gauss–Seidel the outputs of the parts before
    it at the end of the step."""

    name: str
    state: slice
    outputs: slice
    inputs: Callable[..., Numeric]
    advance: Callable[..., tuple[Numeric, ...]]


@dataclass
class Master:
    """The memory: time, lengths of the last two steps (the last one first), states of the parts, outputs at the last
    three communication points (the last one first), for each bond the summed residual energy [J], the works of its
    ends in the last step and the squares of the largest effort and flow; how many steps were made; with a control the
    planned length, the error of the last accepted step and how many steps were repeated."""

    parts: Mapping[str, MasterPart]
    couplings: Couplings
    scheme: Scheme
    output_order: list[Terminal]  # see `in_order_of_evaluation`
    compiled: bool = True  # whether parts are routines of their own
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        bonds = len(self.couplings.bonds)
        self.layout = Layout(
            {
                "t": np.zeros(()),
                "lengths": np.zeros(KEPT_VALUES - 1),
                "states": {name: np.zeros(part.size) for name, part in self.parts.items()},
                "values": np.zeros((KEPT_VALUES, self.outputs.size)),
                "energy": np.zeros(bonds),
                "works": np.zeros((bonds, 2)),
                "largest": np.zeros((bonds, 2)),
                "planned": np.zeros(()),
                "error": np.zeros(()),
                "made": np.zeros(()),
                "refused": np.zeros(()),
            }
        )

    # --- what differs where parts are called on numbers ---

    def of_part(self, name: str, order: int) -> Callable[..., tuple[Numeric, ...]]:
        """`advance` of a part, as a step uses it; order: of the polynomials of its inputs."""
        part = self.parts[name]
        shapes = [(), (), (part.size,), (order + 1, part.input_layout.size)]
        return Routine(part.advance, shapes, name) if self.compiled else part.advance

    def between(
        self, fn: Callable[..., Numeric], shapes: Sequence[Shape], results: Sequence[Shape]
    ) -> Callable[..., Numeric]:
        """A pure function as a step uses it between its parts. shapes: of the arguments, and of the results."""
        return fn

    def start_part(self, name: str, t: float, u: Array) -> tuple[Numeric, Numeric]:
        """(state, outputs) of a part at the start, flat."""
        return self.parts[name].at_start(t, u)

    @property
    def repeats(self) -> bool:
        """Whether a step can be made again from the same memory."""
        return True

    def keep(self, memory: Array) -> None:
        """Let parts whose states are not in the memory keep them, so that steps can be made again from this memory."""

    def begin(self, memory: Array, h: Numeric) -> Numeric:
        """Let parts that compute elsewhere begin a step, where none waits for another; its length as functions of parts
        take it."""
        return h

    # --- places ---

    @cached_property
    def outputs(self) -> Layout:
        """Of the outputs of all parts."""
        return Layout({name: zeros_of(part.outputs) for name, part in self.parts.items()})

    @cached_property
    def _sources(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Of each part, for the elements of its inputs: places among the outputs, and whether they are delayed."""
        found = {}
        for name, part in self.parts.items():
            places, delayed = [np.zeros(0, dtype=int)], [np.zeros(0, dtype=bool)]
            for signal in part.inputs:
                origin = self.couplings.sources[Terminal(name, signal)]
                places.append(self.outputs.index(*origin.source))
                delayed.append(np.full(len(places[-1]), origin.initial is not None))
            found[name] = np.concatenate(places), np.concatenate(delayed)
        return found

    @cached_property
    def _transformed(self) -> dict[str, list[tuple[np.ndarray, float, float]]]:
        """Of each part, for its inputs with a transformation: their places, factor and offset."""
        found = {
            name: [self.couplings.sources[Terminal(name, signal)] for signal in part.inputs]
            for name, part in self.parts.items()
        }
        return {
            name: [
                (self.parts[name].input_layout.index(each.target.signal), each.factor, each.offset)
                for each in origins
                if each.transforms
            ]
            for name, origins in found.items()
        }

    @cached_property
    def _work_places(self) -> dict[str, list[int]]:
        """Part -> the places of the works of its ports among all bonds."""
        ends = [part for part, _ in self.couplings.bond_ends()]
        return {name: [k for k, end in enumerate(ends) if end == name] for name in self.parts}

    @cached_property
    def stages(self) -> list[PartStage]:
        """The parts in the order of their steps."""
        before: list[PartStage] = []
        for name in self.scheme.sequence:
            part, reached = self.parts[name], tuple(before) if self.scheme.sequential else ()
            order = min(self.scheme.order, part.order)
            inputs = self.between(
                self._inputs_of(name, order, reached),
                [(self.layout.size,), (), *((each.outputs.stop - each.outputs.start,) for each in reached)],
                [(order + 1, part.input_layout.size)],
            )
            places = self.layout.place("states", name).where, self.outputs.place(name).where
            before.append(PartStage(name, *places, inputs, self.of_part(name, order)))
        return before

    # --- start ---

    def initial(self, t: float, first: float) -> Array:
        """The memory at the start t [s]; first: length of the first step [s]."""
        states: dict[str, Array] = {}

        def start(name: str, inputs: dict[str, Array]) -> Mapping[str, Array]:
            part = self.parts[name]
            states[name], y = self.start_part(name, t, part.input_layout.pack(inputs))
            return part.output_layout.unpack(y)

        found = outputs_at_start(self.parts, self.couplings, self.output_order, start)
        values = np.concatenate([np.zeros(0), *(found[Terminal(*path)].reshape(-1) for path in self.outputs.places)])
        memory = self.layout.unpack(np.zeros(self.layout.size))
        memory["t"], memory["lengths"] = np.array(t), np.full(KEPT_VALUES - 1, first)
        memory["states"], memory["values"] = states, np.array([values] * KEPT_VALUES)
        memory["planned"] = np.array(first)
        return self.layout.pack(memory)

    def started(self, t: float, first: float, step: Callable[..., Numeric] | None = None) -> Array:
        """As `initial`; where inputs are extrapolated, and a step can be repeated, with a linear past whose slope is
        that to the values after a first step. step: `step` as machine code."""
        memory = self.initial(t, first)
        if self.scheme.order == 0 or not self.repeats:
            return memory
        self.keep(memory)
        after = np.asarray((step or self.step)(memory, np.array(first)), dtype=float)
        start, end = self.layout.unpack(memory), self.layout.unpack(after)
        now = start["values"][0]
        start["values"] = np.array([now, *line_before(now, end["values"][0], KEPT_VALUES - 1)])
        return self.layout.pack(start)

    # --- steps: pure functions ---

    @cached_property
    def row_places(self) -> np.ndarray:
        """In the memory, what a run records: time, repeated steps, outputs, summed residual energies."""
        values = self.layout.index("values")[: self.outputs.size]
        return np.concatenate(
            [self.layout.index("t"), self.layout.index("refused"), values, self.layout.index("energy")]
        )

    def step(self, memory: Numeric, h: Numeric) -> Numeric:
        """The memory after a step of length h [s]."""
        t, sequential = memory[self._time], self.scheme.sequential
        results: list[Numeric] = []  # state, outputs and works of each stage
        h = self.begin(memory, h)
        for _, state, _, inputs, advance in self.stages:
            reached = results[1::3] if sequential else ()
            results += advance(t, h, memory[state], inputs(memory, h, *reached))
        return self._ended(memory, h, *results)

    @cached_property
    def _time(self) -> tuple[Any, ...]:
        """Index that gives an array."""
        return self.layout.place("t").where.start, ...

    @cached_property
    def _ended(self) -> Callable[..., Numeric]:
        """The memory after a step, from that before, its length, and the state, outputs and works of each stage."""
        shapes = [
            (size,)
            for name, state, outputs, *_ in self.stages
            for size in (state.stop - state.start, outputs.stop - outputs.start, len(self._work_places[name]))
        ]
        return self.between(self._end, [(self.layout.size,), (), *shapes], [(self.layout.size,)])

    def _end(self, memory: Numeric, h: Numeric, *results: Numeric) -> Numeric:
        m = self.layout.unpack(memory)
        states, after, works = dict(m["states"]), m["values"][0], np.zeros(2 * len(self.couplings.bonds))
        for stage, x, y, work in zip(self.stages, results[::3], results[1::3], results[2::3], strict=True):
            states[stage.name] = x
            after = ops.concatenate([after[: stage.outputs.start], y, after[stage.outputs.stop :]])
            works = ops.set_at(works, self._work_places[stage.name], work)
        works = works.reshape(-1, 2)
        return self.layout.pack(
            m
            | {
                "t": m["t"] + h,
                "made": m["made"] + 1.0,
                "lengths": ops.array([h, m["lengths"][0]]),
                "states": states,
                "values": ops.concatenate([after, m["values"][0], m["values"][1]]).reshape(KEPT_VALUES, -1),
                "energy": m["energy"] + residuals(works),
                "works": works,
                "largest": self._largest(m["largest"], after),
            }
        )

    def controlled_step(self, memory: Numeric, end: Numeric) -> Numeric:
        """The memory after a step of the planned length, or to the time `end` [s] if that is nearer. A step that is
        refused leaves the memory as it was but for the planned length."""
        control = self.scheme.control
        assert control is not None
        if control.repeats:
            self.keep(memory)
        h = ops.array(ops.minimum(memory[self._planned], end - memory[self._time]))
        return self._judged(memory, self.step(memory, h), h)

    @cached_property
    def _planned(self) -> tuple[Any, ...]:
        return self.layout.place("planned").where.start, ...

    @cached_property
    def _judged(self) -> Callable[..., Numeric]:
        """The memory after a step, from those before and after it, and its length: accepted, or refused."""
        memory = (self.layout.size,)
        return self.between(self._judge, [memory, memory, ()], [memory])

    def _judge(self, memory: Numeric, after: Numeric, h: Numeric) -> Numeric:
        control = self.scheme.control
        assert control is not None
        m, done = self.layout.unpack(memory), self.layout.unpack(after)
        error = control.error(done["works"])
        planned, kept = control.plan(h, m["planned"], error, m["error"])
        accepted = self.layout.pack(done | {"planned": planned, "error": kept})
        again = m | {"planned": control.repeated_length(h, error), "refused": m["refused"] + 1.0}
        return ops.where(control.refused(h, error), self.layout.pack(again), accepted)

    # --- inputs ---

    def _inputs_of(self, name: str, order: int, before: Sequence[PartStage]) -> Callable[..., Numeric]:
        """See `PartStage`; before: the parts that get to the end of the step before this one."""

        def inputs(memory: Numeric, h: Numeric, *reached: Numeric) -> Numeric:
            m = self.layout.unpack(memory)
            values, times = m["values"], times_before(list(m["lengths"]))
            seen = polynomial([values[k] for k in range(order + 1)], times[: order + 1])
            for stage, y in zip(before, reached, strict=True):
                if not len(y):
                    continue
                place = stage.outputs
                line = polynomial([y, *(values[k][place] for k in range(order))], [h, *times[:order]])
                seen = [
                    ops.concatenate([old[: place.start], new, old[place.stop :]])
                    for old, new in zip(seen, line, strict=True)
                ]
            return self._inputs(name, seen, values[0], self._offsets(memory, h))

        return inputs

    def _inputs(self, name: str, seen: list[Numeric], now: Numeric, offsets: Mapping[Terminal, Numeric]) -> Numeric:
        """(order + 1, nu) polynomials of the inputs of a part; offsets: of inputs."""
        places, delayed = self._sources[name]
        rows = []
        for k, row in enumerate(seen):
            held = now[places] if k == 0 else np.zeros(len(places))
            rows.append(ops.array([h if late else x for h, x, late in zip(held, row[places], delayed, strict=True)]))
        for where, factor, offset in self._transformed[name]:
            scaled = [factor * row[where] for row in rows]
            scaled[0] = scaled[0] + offset
            rows = [ops.set_at(row, where, new) for row, new in zip(rows, scaled, strict=True)]
        for target, offset in offsets.items():
            if target.part == name:
                where = self.parts[name].input_layout.index(target.signal)
                rows[0] = ops.set_at(rows[0], where, rows[0][where] + offset)
        return ops.array(rows).reshape(len(seen), -1)

    def _bond_values(self, values: Numeric) -> list[tuple[Numeric, Numeric]]:
        """(effort, flow) of each bond, flat, from all outputs."""
        places = (
            (self.outputs.index(*b.effort.source), self.outputs.index(*b.flow.source)) for b in self.couplings.bonds
        )
        return [(values[effort], values[flow]) for effort, flow in places]

    def _offsets(self, memory: Numeric, h: Numeric) -> dict[Terminal, Numeric]:
        """What the correction adds to the inputs that bonds drive."""
        if self.scheme.correction is None:
            return {}
        offsets: dict[Terminal, Numeric] = {}
        m, rows = self.layout.unpack(memory), self.scheme.order + 1
        seen = polynomial([m["values"][k] for k in range(rows)], times_before(list(m["lengths"]))[:rows])
        middle = self._bond_values(value_at(seen, 0.5 * h))
        for k, (bond, (effort, flow)) in enumerate(zip(self.couplings.bonds, middle, strict=True)):
            largest = m["largest"][k]
            added = self.scheme.correction.offsets(m["energy"][k], h, effort, flow, (largest[0], largest[1]))
            offsets |= {bond.effort.target: added[0], bond.flow.target: added[1]}
        return offsets

    def _largest(self, before: Numeric, values: Numeric) -> Numeric:
        """(bonds, 2) squares of the largest effort and flow so far."""
        rows = [[effort @ effort, flow @ flow] for effort, flow in self._bond_values(values)]
        return ops.maximum(before, ops.array(rows)) if rows else before
