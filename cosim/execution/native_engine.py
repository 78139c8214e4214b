"""The compiled engine: whole ticks in compiled code, which calls what stays in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cosim.core.errors import RunError
from cosim.execution.engine import Engine, call_of_controller
from cosim.simulation.loop.tick_ring import PacingMemory, SharedWord, TickRing

if TYPE_CHECKING:
    from cosim.control.control_loop import ControlLoop
    from cosim.simulation.loop.native_loop import NativeLoop
    from cosim.simulation.tick.tick_model import TickModel


class NativeEngine(Engine):
    """Runs whole ticks in compiled code; Python reads blocks of finished ticks."""

    kind = "compiled"

    def __init__(self, tick_model: TickModel, memory: np.ndarray | None = None) -> None:
        """memory: by default a new one."""
        super().__init__(tick_model, tick_model.memory() if memory is None else memory)
        self._loop = self._make_loop()
        self._native: np.ndarray | None = None  # the functions of `NativeCall`
        self._names = [loop.name for loop in tick_model.python_loops]
        self._controllers = [call_of_controller(loop.name, self._controller(loop)) for loop in tick_model.python_loops]
        self.calls_python = bool(self._controllers)
        self._error: BaseException | None = None  # of what the loop has called in Python
        self._words = np.zeros(len(SharedWord), dtype=np.int64)  # of the ticks that run

    def _make_loop(self) -> NativeLoop:
        return self.tick_model.native_loop

    def arm(self) -> None:
        super().arm()
        self._loop.link()  # other code was begun meanwhile

    def _controller(self, loop: ControlLoop) -> Callable[[], object]:
        """One call of a controller that stays in Python."""
        from cosim.simulation.tick.controller_tracing import PythonController
        from cosim.simulation.tick.memory_call import bind, compile_call

        compiled_inputs = self.tick_model.inputs_of_python_controllers.get(loop.name)
        if compiled_inputs is not None:
            return PythonController(loop, self.view, compiled_inputs[1])
        (call,) = next(task.calls for task in self.tasks if task.loop is loop)
        return bind(call, self.memory, compile_call(call, interpret=True))

    @property
    def failures(self) -> tuple[str, ...]:
        return super().failures if self._controllers else ()

    def _call_controller(self, number: int) -> int:
        """See `NativeLoop.run`."""
        return self._call(f"controller '{self._names[number]}'", self._controllers[number])

    def _call(self, what: str, run: Callable[[], object]) -> int:
        """A call of Python from the compiled loop: 0, or 1 if it failed, which ends the loop; nothing may be raised
        through its code."""
        self.running, self.number = what, int(self._words[SharedWord.NUMBER])
        try:
            if not self.force_stopped:
                run()
            if self.force_stopped:  # perhaps while it ran
                raise RunError("the engine was stopped by force")
        except BaseException as error:
            self._error = error
            return 1
        finally:
            self.running = Engine.running
        return 0

    def _run_ticks(self, ring: TickRing, pace: PacingMemory | None) -> None:
        if not self.calls_python:
            self._loop.run(self.memory, ring, pace, native=self._native)
            return
        if not self.force_stopped:  # else no tick runs until the rig is armed again
            self.failure = ""
        self._error, self._words = None, ring.words
        # the guard reports a diverging run, not numpy's warnings
        with np.errstate(all="ignore"):
            self._loop.run(self.memory, ring, pace, self._call_controller, self._native)
        if self._error is not None:  # the ticks before it stay in the ring
            self._fail(int(ring.words[SharedWord.NUMBER]), self._error)
            self.stop()
            if not isinstance(self._error, Exception):
                raise self._error

    def _measure_once(self, until: int) -> tuple[np.ndarray, np.ndarray]:
        from cosim.simulation.tick.virtual_plant import VirtualPlant

        plant = VirtualPlant(self.tick_model)
        plant.memory[:] = self.memory
        plant.begin(self.number * self.tick_model.step_ns)
        position, velocity, _ = plant.measure()
        return position.copy(), velocity.copy()
