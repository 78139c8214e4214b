"""The memory of a tick for the Python engine: measured, commanded and stepped call by call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cosim.tick.memory_call import MemoryCall, bind, compile_call
from cosim.tick.python_coupling import PythonCoupledStep, SteppedPlant
from cosim.tick.tick_model import TickModel


class VirtualPlant:
    """The simulated plant of a `TickModel` with its own memory. Times are those of ticks, in ns."""

    def __init__(self, tick_model: TickModel) -> None:
        self.tick_model = tick_model
        self.memory = tick_model.memory()
        calls = {call.name: call for task in tick_model.tasks for call in task.calls}
        self._measure, self._advance = self.bind(calls["measure"]), self.bind(calls["advance"])
        # the last sample
        self.sample = (
            self.view("measured", "position"),
            self.view("measured", "velocity"),
            self.view("measured_effort"),
        )
        self._coupling = _coupling_of(self, self._advance)
        self._request = self.view("request")
        self._enabled = self.view("enabled") if tick_model.plant.periods else None
        self._measured_ns: int | None = None
        self.begin(0)

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
        self.view("t")[...] = round(t_ns / self.tick_model.step_ns) * self.tick_model.step

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
        if self._coupling is None:
            self._advance()
            return
        record, values, energy = self._coupling.advance()
        self.view("coupled")[:], self.view("coupling", "values")[0] = record, values
        self.view("coupling", "energy")[:] = energy

    def open(self) -> None:
        """Start the parts beside the plant that are not compiled."""
        if self._coupling is not None:
            self._coupling.start()

    def restart(self) -> None:
        """Let these parts begin anew."""
        self.close()
        self._coupling = _coupling_of(self, self._advance)

    def close(self) -> None:
        """Release what these parts hold."""
        if self._coupling is not None:
            self._coupling.close()

    def discard_sample(self) -> None:
        """Forget the last sample; the next `measure` takes a new one, as after the memory was replaced."""
        self._measured_ns = None


def _coupling_of(plant: VirtualPlant, advance: Callable[[], object]) -> PythonCoupledStep | None:
    """None where all parts are compiled."""
    model = plant.tick_model
    if model.coupling is None or not model.coupling.in_python:
        return None
    stepped = SteppedPlant(model.plant_part, plant.view("plant"), advance)
    return PythonCoupledStep(model.coupling, stepped, model.step)
