"""A tick of the plant and of parts that are not all compiled: Python that cannot be traced, FMUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from cosim.coupling.algebraic_loops import in_order_of_evaluation
from cosim.coupling.block_part import BlockPart
from cosim.coupling.couplings import Terminal
from cosim.coupling.part import Part
from cosim.coupling.python_master import PythonMaster
from cosim.coupling.start import sequence_of
from cosim.coupling.stepped_block import SteppedBlock
from cosim.plant.external_efforts import ORDER
from cosim.tick.coupled_plant import LAST, MECHANISM, Coupling, PlantPart
from cosim.types import Array


class SteppedPlant:
    """The plant on the memory of a tick, with the contract of a part that measures its work. advance: a tick of it."""

    order = ORDER
    repeats, variable = True, False
    bounded = True  # its steps end by themselves

    def __init__(self, part: PlantPart, x: Array, advance: Callable[[], object]) -> None:
        """x: its state in the memory."""
        self._part, self._x, self._advance = part, x, advance
        self.inputs, self.outputs, self.feedthrough = part.inputs, part.outputs, part.feedthrough
        self.has_dofs = part.has_dofs
        self.work = np.zeros(0)

    def measure(self, ports: Sequence[tuple[str, str]]) -> None:
        self._part = replace(self._part, ports=tuple(ports))

    def start(self, t: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self._give(t, inputs)
        return self._reached(t)

    def step(self, t: float, h: float, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self._give(t, {name: np.reshape(values, (len(values), -1)) for name, values in inputs.items()})
        before = self._part.work_done(self._x)
        self._advance()
        self.work = self._part.work_done(self._x) - before
        return self._reached(t + h)

    def _give(self, t: float, inputs: Mapping[str, Array]) -> None:
        """Store the polynomials of the efforts in the state of the plant."""
        columns = [np.atleast_1d(np.squeeze(inputs[name])) for name in self.inputs]
        rows = max((len(column) for column in columns), default=1)
        coefficients = np.zeros((rows, len(columns)))
        for k, column in enumerate(columns):
            coefficients[: len(column), k] = column
        self._x[:] = self._part.with_efforts(t, self._x, coefficients)

    def _reached(self, t: float) -> dict[str, Array]:
        values = np.asarray(self._part.output_values(t, self._x), dtype=float)
        return {name: np.array(value) for name, value in zip(self.outputs, values, strict=True)}

    def save(self) -> object:
        return self._x.copy()

    def restore(self, saved: object) -> None:
        assert isinstance(saved, np.ndarray)
        self._x[:] = saved

    def close(self) -> None:
        """Nothing to release."""


class PythonCoupledStep:
    """Steps the plant and the parts of a rig once per tick. Parts are started by the first step, and closed once."""

    def __init__(self, coupling: Coupling, plant: SteppedPlant, step: float) -> None:
        parts: dict[str, Part] = {MECHANISM: plant} if plant.has_dofs else {}
        for name, part in coupling.parts.items():
            parts[name] = SteppedBlock(replace(part, name=name)) if isinstance(part, BlockPart) else part.open()
        order = in_order_of_evaluation(parts, coupling.couplings)
        sequence = coupling.scheme.sequence or tuple(sequence_of(parts, order))
        scheme = replace(coupling.scheme, sequence=sequence)
        self._master = PythonMaster(parts, coupling.couplings, scheme, order, coupling.time_limit)
        self._coupling, self._tick, self._started = coupling, step, False
        self._step = step if coupling.first_step is None else coupling.first_step
        self._ticks = self._made = 0  # since the start

    def start(self) -> None:
        """Start the parts at t = 0. Raises InputError for one that cannot start."""
        if not self._started:
            self._master.start(0.0, self._step)
            if self._coupling.scheme.order > 0 and self._master.repeats:
                self._master.add_slope(self._step)
            self._started = True

    def advance(self) -> tuple[Array, Array, Array]:
        """A tick: (the record of its beginning, the outputs of all parts at its end, residual energies [J])."""
        self.start()
        record = self.record()
        self._ticks += 1
        self._advance_to(self._ticks * self._tick)
        return record, self._values(), self._master.energy

    def _advance_to(self, end: float) -> None:
        """One step of the coupling to the end of the tick [s], or several."""
        control = self._coupling.scheme.control
        if control is None:
            count = round(self._tick / self._step)
            for _ in range(count):
                self._master.step(self._step)
            self._made += count
            return
        for _ in range(control.most_steps(self._tick)):
            if end - self._master.t <= LAST * self._tick:
                return
            self._made += self._master.controlled_step(end)

    def _values(self) -> Array:
        return np.concatenate([value.reshape(-1) for value in self._master.now.values()])

    def record(self) -> Array:
        """See `CoupledStep.record`."""
        values = {terminal: value.reshape(-1) for terminal, value in self._master.now.items()}
        parts = [values[Terminal(name, out)] for name, part in self._coupling.parts.items() for out in part.outputs]
        bonds = [
            number
            for bond, energy in zip(self._coupling.couplings.bonds, self._master.energy, strict=True)
            for number in (values[bond.effort.source] @ values[bond.flow.source], energy)
        ]
        steps = [self._master.lengths[0], self._made, self._master.refused]
        return np.concatenate([*parts, bonds, steps if self._coupling.first_step is not None else []])

    def close(self) -> None:
        self._master.close()
