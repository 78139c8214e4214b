"""The master of parts that can be compiled: one step of the coupling as a pure function on one flat memory.

Jacobi: in a step every part extrapolates the outputs of the others. Gauss–Seidel: parts step one after the other, and
interpolate the outputs of those that have already got to the end of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from cosim.core import ops
from cosim.core.compile.routine import Routine
from cosim.core.layout import Layout
from cosim.core.types import Array, Numeric, State
from cosim.simulation.coupling.block_part import zeros_of
from cosim.simulation.coupling.couplings import Couplings, Terminal
from cosim.simulation.coupling.energy import EnergyCorrection, residuals
from cosim.simulation.coupling.extrapolation import line_before, polynomial, times_before, value_at
from cosim.simulation.coupling.start import HasFeedthrough, outputs_at_start
from cosim.simulation.coupling.step_control import EnergyControl

KEPT = 3  # values of each output, at the last communication points


class CompiledPart(HasFeedthrough, Protocol):
    """What the master needs of a part, such as `BlockPart`, where each function is described."""

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


@dataclass
class CompiledMaster:
    """The memory: time, lengths of the last two steps (the last one first), states of the parts, outputs at the last
    three communication points (the last one first), for each bond the summed residual energy [J], the works of its
    ends in the last step and the squares of the largest effort and flow; how many steps were made; with a control the
    planned length, the error of the last accepted step and how many steps were repeated."""

    parts: Mapping[str, CompiledPart]
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
                "lengths": np.zeros(KEPT - 1),
                "states": {name: np.zeros(part.size) for name, part in self.parts.items()},
                "values": np.zeros((KEPT, self.outputs.size)),
                "energy": np.zeros(bonds),
                "works": np.zeros((bonds, 2)),
                "largest": np.zeros((bonds, 2)),
                "planned": np.zeros(()),
                "error": np.zeros(()),
                "made": np.zeros(()),
                "refused": np.zeros(()),
            }
        )

    @cached_property
    def outputs(self) -> Layout:
        """Of the outputs of all parts."""
        return Layout({name: zeros_of(part.outputs) for name, part in self.parts.items()})

    @cached_property
    def _advance(self) -> dict[str, Callable[..., Numeric]]:
        made: dict[str, Callable[..., Numeric]] = {}
        for name, part in self.parts.items():
            shapes = [(), (), (part.size,), (self.scheme.order + 1, part.input_layout.size)]
            made[name] = Routine(part.advance, shapes, name) if self.compiled else part.advance
        return made

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

    # --- start ---

    def initial(self, t: float, first: float) -> Array:
        """The memory at the start t [s]; first: length of the first step [s]."""
        states: dict[str, Array] = {}

        def start(name: str, inputs: dict[str, Array]) -> Mapping[str, Array]:
            part = self.parts[name]
            states[name], y = part.at_start(t, part.input_layout.pack(inputs))
            return part.output_layout.unpack(y)

        found = outputs_at_start(self.parts, self.couplings, self.output_order, start)
        values = np.concatenate([np.zeros(0), *(found[Terminal(*path)].reshape(-1) for path in self.outputs.places)])
        memory = self.layout.unpack(np.zeros(self.layout.size))
        memory["t"], memory["lengths"] = np.array(t), np.full(KEPT - 1, first)
        memory["states"], memory["values"] = states, np.array([values] * KEPT)
        memory["planned"] = np.array(first)
        return self.layout.pack(memory)

    def with_slope(self, memory: Array, after: Array) -> Array:
        """The memory at the start with a linear past, whose slope is that to the values after a first step."""
        start, end = self.layout.unpack(memory), self.layout.unpack(after)
        now = start["values"][0]
        start["values"] = np.array([now, *line_before(now, end["values"][0], KEPT - 1)])
        return self.layout.pack(start)

    # --- steps: pure functions ---

    @property
    def row_size(self) -> int:
        return 2 + self.outputs.size + len(self.couplings.bonds)

    def row(self, memory: Numeric) -> Numeric:
        """What a run records: time, repeated steps, outputs, summed residual energies."""
        m = self.layout.unpack(memory)
        return ops.concatenate([m["t"], m["refused"], m["values"][0], m["energy"]])

    def step(self, memory: Numeric, h: Numeric) -> Numeric:
        """The memory after a step of length h [s]."""
        m = self.layout.unpack(memory)
        values, times, order = m["values"], times_before(list(m["lengths"])), self.scheme.order
        seen = polynomial([values[k] for k in range(order + 1)], times[: order + 1])
        offsets = self._offsets(m, seen, h)
        states, after, works = dict(m["states"]), values[0], np.zeros(2 * len(self.couplings.bonds))
        for name in self.scheme.sequence:
            part = self.parts[name]
            inputs = self._inputs(name, seen, values[0], offsets)
            states[name], y, work = self._advance[name](m["t"], h, states[name], inputs)
            works = ops.set_at(works, self._work_places[name], work)
            place = self.outputs.place(name).where
            after = ops.concatenate([after[: place.start], y, after[place.stop :]])
            if self.scheme.sequential and part.output_layout.size:
                reached = [y, *(values[k][place] for k in range(order))]
                line = polynomial(reached, [h, *times[:order]])
                seen = [
                    ops.concatenate([old[: place.start], new, old[place.stop :]])
                    for old, new in zip(seen, line, strict=True)
                ]
        works = works.reshape(-1, 2)
        return self.layout.pack(
            m
            | {
                "t": m["t"] + h,
                "made": m["made"] + 1.0,
                "lengths": ops.array([h, m["lengths"][0]]),
                "states": states,
                "values": ops.concatenate([after, values[0], values[1]]).reshape(KEPT, -1),
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
        m = self.layout.unpack(memory)
        h = ops.minimum(m["planned"], end - m["t"])
        done = self.layout.unpack(self.step(memory, h))
        error = control.error(done["works"])
        planned, kept = control.plan(h, m["planned"], error, m["error"])
        accepted = self.layout.pack(done | {"planned": planned, "error": kept})
        again = m | {"planned": control.repeated_length(h, error), "refused": m["refused"] + 1.0}
        return ops.where(control.refused(h, error), self.layout.pack(again), accepted)

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

    def _offsets(self, m: State, seen: list[Numeric], h: Numeric) -> dict[Terminal, Numeric]:
        """What the correction adds to the inputs that bonds drive."""
        if self.scheme.correction is None:
            return {}
        offsets: dict[Terminal, Numeric] = {}
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
