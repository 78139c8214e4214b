"""The memory of a tick for the Python engine: measured, commanded and stepped call by call, with parts that are not all
compiled (Python that cannot be traced, FMUs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from cosim.core.types import Array
from cosim.simulation.coupling.calling_master import CallingMaster
from cosim.simulation.coupling.couplings import Terminal
from cosim.simulation.tick.coupled_plant import CoupledStep
from cosim.simulation.tick.memory_call import MemoryCall, bind, compile_call
from cosim.simulation.tick.tick_model import TickModel

T = TypeVar("T")


class VirtualPlant:
    """The simulated plant of a `TickModel` with its own memory. Times are of ticks, in ns."""

    _coupling: CalledTicks | None = None  # with the parts that are not compiled

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

    def _coupled_advance(self, coupling: CalledTicks) -> Callable[[], object]:
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
        self._coupling = CalledTicks(self, self._step) if self.tick_model.coupled_in_python else None
        self._advance = self.bind(self._step) if self._coupling is None else self._coupled_advance(self._coupling)

    def close(self) -> None:
        """Release what these parts hold."""
        if self._coupling is not None:
            self._coupling.close()

    def discard_sample(self) -> None:
        """Forget the last sample; the next `measure` takes a new one, as after the memory was replaced."""
        self._measured_ns = None


class CalledTicks:
    """The ticks of a plant with parts that are not compiled, on the memory of a tick and that of their master. Parts
    are started by the first tick, and closed once."""

    def __init__(self, plant: VirtualPlant, call: MemoryCall) -> None:
        """call: the step of the plant alone, (t, state, held …) -> state."""
        model = plant.tick_model
        assert model.coupling is not None
        self._t, self._x, *self._held = (plant.memory[where].reshape(shape) for where, shape in call.inputs)
        self._coupling = model.coupling
        self._ticks = CoupledStep(model.coupling, model, model.held, model.compiled, calling=True)
        assert isinstance(self._ticks.master, CallingMaster)
        self._master = self._ticks.master
        self._values, self._energy = (self._master.layout.index(name) for name in ("values", "energy"))
        self._values = self._values[: self._master.outputs.size]
        self._memory: Array | None = None  # of the master
        self.supervise, self.close = self._master.supervisor.run, self._master.close

    def start(self) -> Array:
        """Start the parts at t = 0; the memory of the master. Raises InputError for one that cannot start."""
        if self._memory is None:
            self._ticks.plant.start = self._x.copy()
            self._memory = self._ticks.initial()
            self._x[:] = self._ticks.state_of_plant(self._memory, self._x)
            self._master.limit_steps(self._coupling.time_limit)
        return self._memory

    def advance(self) -> tuple[Array, Array, Array]:
        """A tick: (the record of its beginning, the outputs of all parts at its end, residual energies [J])."""
        memory = self.start()
        if self._coupling.publish is not None:
            places, values = self._master.outputs.places, memory[self._values]
            found = {Terminal(*path): values[where].reshape(shape) for path, (where, shape) in places.items()}
            self._coupling.publish(float(self._t), found)
        self._x[:], after, record = self._ticks.advance(self._t, self._x, memory, *self._held)
        self._memory = after
        return record, after[self._values], after[self._energy]
