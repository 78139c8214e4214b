"""The compiled engine: whole ticks in compiled code."""

from __future__ import annotations

import numpy as np

from cosim.execution.engine import Engine
from cosim.tick.tick_model import TickModel
from cosim.tick.virtual_plant import VirtualPlant
from cosim.timing.tick_ring import PacingMemory, TickRing


class NativeEngine(Engine):
    """Runs whole ticks in compiled code; Python reads blocks of finished ticks."""

    kind = "compiled"

    def __init__(self, tick_model: TickModel) -> None:
        super().__init__(tick_model)
        self.memory = tick_model.memory()
        self._loop = tick_model.native_loop

    def _run_ticks(self, ring: TickRing, pace: PacingMemory | None) -> None:
        self._loop.run(self.memory, ring, pace)

    def _measure_once(self, until: int) -> tuple[np.ndarray, np.ndarray]:
        plant = VirtualPlant(self.tick_model)
        plant.memory[:] = self.memory
        plant.begin(self.number * self.tick_model.step_ns)
        position, velocity, _ = plant.measure()
        return position.copy(), velocity.copy()
