"""The simulated part of a rig as seen from the Python loop: it can be measured, commanded and stepped."""

from __future__ import annotations

import numpy as np

from cosim.compile import Port, compile
from cosim.simulation import Simulation


class World:
    """Plant and sensors of a `Simulation` with their state. Time is the tick's, in ns."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        state = simulation.initial()
        self.plant = simulation.plant.layout.pack(state["plant"])
        self._sensors = simulation.sensor_layout.pack(state["sensors"])
        self.request = np.zeros(simulation.nv)
        self.sample: tuple[np.ndarray, ...] = ()  # position, velocity, effort (nv,)
        self._measured_ns: int | None = None
        nx, ns, nv = (simulation.nx,), self._sensors.shape, (simulation.nv,)
        t, x, s, request = Port("t", ()), Port("x", nx), Port("sensors", ns), Port("request", nv)
        outputs = [Port("sensors", ns), Port("position", nv), Port("velocity", nv), Port("effort", nv)]
        interpret = not simulation.compiled
        self._measure = compile(simulation.measure, [t, x, s, request], "measure", outputs, interpret)
        self._advance = compile(simulation.advance, [t, x, request], "advance", [Port("x", nx)], interpret)

    def measure(self, t_ns: int) -> tuple[np.ndarray, ...]:
        """Sample every joint, once per tick however often it is asked."""
        if self._measured_ns != t_ns:
            self._sensors, *sample = self._measure(self._seconds(t_ns), self.plant, self._sensors, self.request)
            self.sample = tuple(sample)
            self._measured_ns = t_ns
        return self.sample

    def ask(self, index: np.ndarray, request: np.ndarray) -> None:
        """Set the effort that the drives of the joints at `index` are asked for until further notice."""
        self.request[index] = request

    def advance(self, t_ns: int) -> None:
        """Move on by one tick from t_ns."""
        self.plant = self._advance(self._seconds(t_ns), self.plant, self.request)

    def _seconds(self, t_ns: int) -> float:
        # tick number times step, as in the native loop: equal to the bit
        return round(t_ns / self.simulation.step_ns) * self.simulation.step
