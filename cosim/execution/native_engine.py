"""The compiled engine: whole ticks in compiled code."""

from __future__ import annotations

import dataclasses

import numpy as np

from cosim.compile.routine import Routine
from cosim.execution.engine import Engine
from cosim.tick.memory_call import MemoryCall
from cosim.tick.tick_model import TickModel
from cosim.tick.virtual_plant import VirtualPlant
from cosim.timing.native_loop import NativeLoop
from cosim.timing.tick_ring import LoopTask, PacingMemory, RoutineCall, TickRing


class NativeEngine(Engine):
    """Runs whole ticks in compiled code; Python reads blocks of finished ticks."""

    kind = "compiled"

    def __init__(self, tick_model: TickModel) -> None:
        super().__init__(tick_model)
        self.memory = tick_model.memory()
        tasks = tuple(LoopTask(tuple(map(_routine_call, task.calls)), task.ticks, task.phase) for task in self.tasks)
        self._loop = NativeLoop(dataclasses.replace(self.program, tasks=tasks))

    def _run_ticks(self, ring: TickRing, pace: PacingMemory | None) -> None:
        self._loop.run(self.memory, ring, pace)

    def _measure_once(self, until: int) -> tuple[np.ndarray, np.ndarray]:
        plant = VirtualPlant(self.tick_model)
        plant.memory[:] = self.memory
        plant.begin(self.number * self.tick_model.step_ns)
        position, velocity, _ = plant.measure()
        return position.copy(), velocity.copy()


def _routine_call(call: MemoryCall) -> RoutineCall:
    shapes = [region.shape for region in call.inputs]
    routine = call.fn if isinstance(call.fn, Routine) else Routine(call.fn, shapes, call.name)
    return RoutineCall(routine, tuple(r.where for r in call.inputs), tuple(r.where for r in call.outputs))
