"""The simulated part of a rig as seen from the Python loop: it can be measured, commanded and stepped."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cosim.tick.memory_call import MemoryCall, bind
from cosim.tick.tick_model import TickModel


class VirtualPlant:
    """The memory of a `TickModel` in Python, with the parts of its ticks to be called one by one. Time is the
    tick's, in ns."""

    def __init__(self, simulation: TickModel) -> None:
        self.simulation = simulation
        self.memory = simulation.memory()
        parts = {part.name: part for stage in simulation.stages() for part in stage.parts}
        self._measure, self._advance = self.bound(parts["measure"]), self.bound(parts["advance"])
        self.sample = tuple(  # what was measured last
            self.view(*path) for path in (("measured", "position"), ("measured", "velocity"), ("effort",))
        )
        self._request = self.view("request")
        self._measured_ns: int | None = None
        self.begin(0)

    def view(self, *path: str) -> np.ndarray:
        """A part of the memory by its name, to be read or written in place."""
        where, shape = self.simulation.layout.place(*path)
        return self.memory[where].reshape(shape)

    def bound(self, part: MemoryCall, interpret: bool = False) -> Callable[[], object]:
        """A part of the tick as a call without arguments, in machine code where the simulation wants that."""
        return bind(part, self.memory, interpret or not self.simulation.compiled)

    def begin(self, t_ns: int) -> None:
        """It is this time now."""
        self.t_ns = t_ns
        # tick number times step, as in the native loop: equal to the bit
        self.view("t")[...] = round(t_ns / self.simulation.step_ns) * self.simulation.step

    def measure(self) -> tuple[np.ndarray, ...]:
        """Position, velocity, effort (nv,) of every joint, sampled once per tick however often it is asked for."""
        if self._measured_ns != self.t_ns:
            self._measure()
            self._measured_ns = self.t_ns
        return self.sample

    def ask(self, index: np.ndarray, request: np.ndarray) -> None:
        """Set the effort that the drives of the joints at `index` are asked for until further notice."""
        self._request[index] = request

    def advance(self) -> None:
        """Move on by one tick."""
        self._advance()

    def restored(self) -> None:
        """The memory is that of another time now: nothing has been measured in it."""
        self._measured_ns = None
