"""The memory of a tick for the Python engine: measured, commanded and stepped call by call, with parts that are not all
compiled (Python that cannot be traced, FMUs).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from cosim.core import ops
from cosim.core.compile import ArrayPort, compile
from cosim.core.types import Array, Numeric
from cosim.simulation.coupling.block_part import BlockPart
from cosim.simulation.coupling.couplings import Terminal
from cosim.simulation.coupling.part import Part
from cosim.simulation.coupling.python_master import PythonMaster
from cosim.simulation.coupling.start import in_order_of_evaluation, sequence_of
from cosim.simulation.coupling.stepped_block import SteppedBlock
from cosim.simulation.plant.external_efforts import ORDER
from cosim.simulation.tick.coupled_plant import LAST, MECHANISM, Coupling, PlantPart
from cosim.simulation.tick.memory_call import MemoryCall, bind, bound, compile_call
from cosim.simulation.tick.tick_model import TickModel

T = TypeVar("T")


class VirtualPlant:
    """The simulated plant of a `TickModel` with its own memory. Times are of ticks, in ns."""

    _coupling: PythonCoupledStep | None = None  # with the parts that are not compiled

    def __init__(self, tick_model: TickModel) -> None:
        self.tick_model, self._memory = tick_model, tick_model.memory()
        calls = {call.name: call for task in tick_model.tasks for call in task.calls}
        self._measure = self.bind(calls["measure"])
        # the last sample
        self.sample = (
            self.view("measured", "position"),
            self.view("measured", "velocity"),
            self.view("measured_effort"),
        )
        self._step = calls["advance"]
        self._t = self.view("t")
        self.restart()
        self._request = self.view("request")
        self._enabled = self.view("enabled") if tick_model.plant.periods else None
        self._measured_ns: int | None = None
        self.begin(0)

    @property
    def memory(self) -> np.ndarray:
        """The same array for the life of the plant."""
        return self._memory

    def view(self, *path: str) -> np.ndarray:
        """A part of the memory by its name, to be read or written in place."""
        where, shape = self.tick_model.layout.place(*path)
        return self.memory[where].reshape(shape)

    def bind(self, call: MemoryCall, interpret: bool = False) -> Callable[[], object]:
        """A call of the tick on this memory, compiled unless the run or `interpret` requests the interpreter."""
        return bind(call, self.memory, compile_call(call, interpret or not self.tick_model.compiled))

    def begin(self, t_ns: int) -> None:
        """Begin the tick at this time."""
        self.t_ns = t_ns
        # tick number times step, equal to the bit to the compiled loop
        self._t[...] = round(t_ns / self.tick_model.step_ns) * self.tick_model.step

    def measure(self) -> tuple[np.ndarray, ...]:
        """Position, velocity, effort (nv,) of every joint, sampled once per tick."""
        if self._measured_ns != self.t_ns:
            self._measure()
            self._measured_ns = self.t_ns
        return self.sample

    def request(self, index: np.ndarray, effort: np.ndarray) -> None:
        """Request this effort of the drives of the joints at `index` until the next request."""
        self._request[index] = effort

    def enable(self, index: np.ndarray, enabled: np.ndarray) -> None:
        """Switch the simulated drives of the joints at `index` on (1) or off (0) where these know it."""
        if self._enabled is not None:
            self._enabled[index] = enabled

    def advance(self) -> None:
        """Step the plant by one tick, with the parts beside it."""
        self._advance()

    def _coupled_advance(self, coupling: PythonCoupledStep) -> Callable[[], object]:
        record, values, energy = self.view("coupled"), self.view("coupling", "values"), self.view("coupling", "energy")

        def advance() -> None:
            record[:], values[0], energy[:] = coupling.advance()

        return advance

    def supervise(self, fn: Callable[..., T], *arguments: object) -> T:
        """fn(*arguments), in which parts that are not compiled have their time limit. Raises RunError for one that
        hangs."""
        return fn(*arguments) if self._coupling is None else self._coupling.supervise(fn, *arguments)

    def open(self) -> None:
        """Start the parts beside the plant that are not compiled."""
        if self._coupling is not None:
            self._coupling.start()

    def restart(self) -> None:
        """Let these parts begin anew."""
        self.close()
        self._coupling = _coupling_of(self, self._step)
        self._advance = self.bind(self._step) if self._coupling is None else self._coupled_advance(self._coupling)

    def close(self) -> None:
        """Release what these parts hold."""
        if self._coupling is not None:
            self._coupling.close()

    def discard_sample(self) -> None:
        """Forget the last sample; the next `measure` takes a new one, as after the memory was replaced."""
        self._measured_ns = None


def _coupling_of(plant: VirtualPlant, call: MemoryCall) -> PythonCoupledStep | None:
    """None where all parts are compiled. call: the step of the plant alone, (t, state, held …) -> state."""
    model = plant.tick_model
    if model.coupling is None or not model.coupling.in_python:
        return None
    if not model.plant_part.has_dofs:
        return PythonCoupledStep(model.coupling, None, model.step)
    t, x, *held = (plant.memory[where].reshape(shape) for where, shape in call.inputs)
    stepped = SteppedPlant(model.plant_part, model.step, t, x, held, not model.compiled)
    return PythonCoupledStep(model.coupling, stepped, model.step)


class SteppedPlant:
    """The plant on the memory of a tick, with the contract of a part that measures its work."""

    order = ORDER
    repeats, variable = True, False
    bounded = True  # its steps end by themselves

    def __init__(
        self, part: PlantPart, step: float, t: Array, x: Array, held: Sequence[Array], interpret: bool
    ) -> None:
        """t, x, held: the time, its state, and what else `PlantPart` needs, in the memory; step [s]: of a tick."""
        self._part, self._x = part, x
        self.inputs, self.outputs, self.feedthrough = part.inputs, part.outputs, part.feedthrough
        self._coefficients = np.zeros((ORDER + 1, len(part.inputs)))
        self._columns = list(enumerate(part.inputs))
        self._reached, self.work = np.zeros(len(part.outputs)), np.zeros(len(part.ports))
        given, results = (t, x, self._coefficients, *held), (x, self._reached, self.work)

        def advance(t: Numeric, x: Numeric, coefficients: Numeric, *held: Numeric) -> tuple[Numeric, ...]:
            after, y, work = part.advance(t, step, ops.concatenate([x, *held]), coefficients)
            return after[: len(x)], y, work

        inputs, outputs = ([ArrayPort(f"value{k}", a.shape) for k, a in enumerate(each)] for each in (given, results))
        run = compile(advance, inputs, "advance_coupled", outputs, interpret)
        self._advance = bound(run, given, results)

    def measure(self, ports: Sequence[tuple[str, str]]) -> None:
        assert tuple(ports) == self._part.ports

    def start(self, t: float, inputs: Mapping[str, Array]) -> dict[str, Any]:
        self._give({name: np.reshape(value, (1,)) for name, value in inputs.items()})
        self._x[:] = self._part.with_efforts(t, self._x, self._coefficients)
        return dict(zip(self.outputs, np.asarray(self._part.output_values(t, self._x), dtype=float), strict=True))

    def step(self, t: float, h: float, inputs: Mapping[str, Array]) -> dict[str, Any]:
        self._give(inputs)
        self._advance()
        return dict(zip(self.outputs, self._reached, strict=True))

    def _give(self, inputs: Mapping[str, Array]) -> None:
        """Take the polynomials of the efforts."""
        for k, name in self._columns:
            column = inputs[name]
            self._coefficients[: len(column), k] = column
            self._coefficients[len(column) :, k] = 0.0

    def save(self) -> object:
        return self._x.copy()

    def restore(self, saved: object) -> None:
        assert isinstance(saved, np.ndarray)
        self._x[:] = saved

    def close(self) -> None:
        """Nothing to release."""


class PythonCoupledStep:
    """Steps the plant and the parts of a rig once per tick. Parts are started by the first step, and closed once."""

    def __init__(self, coupling: Coupling, plant: SteppedPlant | None, step: float) -> None:
        """plant: None for a rig of parts only; step [s]: of a tick."""
        parts: dict[str, Part] = {} if plant is None else {MECHANISM: plant}
        for name, part in coupling.parts.items():
            parts[name] = SteppedBlock(replace(part, name=name)) if isinstance(part, BlockPart) else part.open()
        order = in_order_of_evaluation(parts, coupling.couplings)
        sequence = coupling.scheme.sequence or tuple(sequence_of(parts, order))
        scheme = replace(coupling.scheme, sequence=sequence)
        self._master = PythonMaster(parts, coupling.couplings, scheme, order, coupling.start_limit)
        self._coupling, self._tick, self._started = coupling, step, False
        self._step = step if coupling.first_step is None else coupling.first_step
        self._ticks = self._made = 0  # since the start
        outputs = [Terminal(name, output) for name, part in coupling.parts.items() for output in part.outputs]
        elements = np.arange(sum(math.prod(parts[each.part].outputs[each.signal].shape) for each in order))
        self._places = np.concatenate([elements[:0], *(elements[self._master.place(each).where] for each in outputs)])
        self._bonds = [
            [self._master.place(end.source).where for end in (bond.effort, bond.flow)]
            for bond in coupling.couplings.bonds
        ]
        self.supervise = self._master.supervisor.run

    def start(self) -> None:
        """Start the parts at t = 0. Raises InputError for one that cannot start."""
        if not self._started:
            self._master.start(0.0, self._step)
            if self._coupling.scheme.order > 0 and self._master.repeats:
                self._master.add_slope(self._step)
            self._master.limit_steps(self._coupling.time_limit)
            self._started = True

    def advance(self) -> tuple[Array, Array, Array]:
        """A tick: (the record of its beginning, the outputs of all parts at its end, residual energies [J])."""
        self.start()
        if self._coupling.publish is not None:
            values = {each: self._master.now(each) for each in self._master.output_order}
            self._coupling.publish(self._master.t, values)
        record = self.record()
        self._ticks += 1
        self._advance_to(self._ticks * self._tick)
        return record, self._master.values[0], self._master.energy

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

    def record(self) -> Array:
        """See `CoupledStep.record`."""
        values, energy = self._master.values[0], self._master.energy
        bonds = [each for k, (e, f) in enumerate(self._bonds) for each in (values[e] @ values[f], energy[k])]
        steps = [self._master.lengths[0], self._made, self._master.refused]
        return np.concatenate([values[self._places], bonds, steps if self._coupling.first_step is not None else []])

    def close(self) -> None:
        self._master.close()
