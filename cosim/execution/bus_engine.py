"""The compiled engine of rigs with hardware: ticks in compiled code, real motors and the emergency stop included.

The cycle of a driver is machine code where it can be; else the loop calls the driver in Python, as the Python engine
does. Enabling, stopping and judging stay in Python. The loop ends a tick in which a drive, its feedback or its
connection is not as it should be, switches the motors off, and the drivers in Python, which get what was received last,
report why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cosim.core.errors import RunError
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.execution.hardware.estop import Estop
from cosim.execution.hardware.loop_calls import CalledFunction, HardwareCalls
from cosim.execution.hardware_engine import HardwareEngine
from cosim.execution.native_engine import NativeEngine
from cosim.simulation.loop.native_loop import NativeLoop
from cosim.simulation.loop.tick_ring import LoopStatus, PacingMemory, SharedWord, TickRing
from cosim.simulation.tick.tick_model import TickModel
from cosim.simulation.tick.virtual_plant import VirtualPlant

if TYPE_CHECKING:
    from cosim.execution.hardware.compiled_groups import CompiledGroups  # which needs Numba

Rows = dict[int, tuple[int, int]]  # number of a group -> (function, context)


class BusEngine(HardwareEngine, NativeEngine):
    """Runs whole ticks in compiled code around drivers; real ones in real time only."""

    def __init__(
        self,
        tick_model: TickModel,
        virtual_plant: VirtualPlant,
        groups: Sequence[DriverGroup],
        estop: Callable[[ExitStack], Estop] | None = None,
        watchdog: float | None = None,
    ) -> None:
        """See `HardwareEngine`; groups: also of the simulated motors, which the ticks contain."""
        self._real = [k for k, group in enumerate(groups) if group.real]
        called = [k for k in self._real if groups[k].called]
        self._calls = HardwareCalls(len(self._real), len(self._real) - len(called), estop is not None)
        super().__init__(tick_model, virtual_plant, groups, False, estop, watchdog)
        self.calls_python = bool(self.calls_python or called or estop is not None)
        self._read_clock: Callable[[], int] = time.monotonic_ns  # of the present ticks
        self._reads = {k: self._function("read", partial(self._read_group, k)) for k in called}
        self._writes = {k: self._function("write", partial(self._write_group, k)) for k in called}
        self._look = self._function("read", lambda due, until: self._check_estop())

    def _make_loop(self) -> NativeLoop:
        names = [task.name for task in self.tasks]
        return NativeLoop(self._calls.added_to(self.tick_model.compiled_program, names))

    # --- what the loop calls in Python ---

    def _function(self, task: str, run: Callable[[int, int], object]) -> CalledFunction:
        """A part of a task."""
        return CalledFunction(lambda due, until: self._call(f"task '{task}'", partial(run, due, until)))

    def _read_group(self, k: int, due: int, until: int) -> None:
        self.hardware_manager.read_group(k, until, self._read_clock, due)

    def _write_group(self, k: int, due: int, until: int) -> None:
        self.hardware_manager.write_group(k, until, self._read_clock)

    # --- the ticks ---

    def open(self) -> None:
        for group in self.hardware_manager.groups:
            if group.hardware is not None and not group.called:
                group.hardware.load_cycle()  # before motors are on
        super().open()

    def _run_ticks(self, ring: TickRing, pace: PacingMemory | None) -> None:
        if pace is not None:
            self._read_clock = pace.clock.now
        if not self.force_stopped:  # else no tick runs until the rig is armed again
            self.failure = ""
        try:
            self._run_groups(ring, pace)
        except BaseException as error:
            ring.words[SharedWord.STATUS] = LoopStatus.FAULT
            self.stop()
            if not self.failure:
                self._fail(int(ring.words[SharedWord.NUMBER]), error)
            if not isinstance(error, Exception):
                raise

    def _run_groups(self, ring: TickRing, pace: PacingMemory | None) -> None:
        """Raises RunError for what the drivers in machine code say of the end of the ticks."""
        groups = self._in_machine_code()
        self._native = self._table(groups)
        try:
            if groups is not None:
                groups.take_over()
            if self._watchdog is not None:
                self._watchdog.follow(lambda: int(ring.words[SharedWord.NUMBER]))
            super()._run_ticks(ring, pace)
        finally:
            if self._watchdog is not None:
                self._watchdog.suspend()
            if groups is not None:
                groups.hand_back()
        if ring.status is not LoopStatus.FAULT:
            return
        if groups is not None and not self.failure:
            self._judge(groups)
        self.stop()

    def _in_machine_code(self) -> CompiledGroups | None:
        """The real drivers whose cycles are, if there are any."""
        if not self._calls.stops:
            return None
        from cosim.execution.hardware.compiled_groups import CompiledGroups

        return CompiledGroups(self.hardware_manager)

    def _table(self, groups: CompiledGroups | None) -> np.ndarray:
        """The functions of the loop, in the order of `HardwareCalls`."""
        reads: Rows = {k: function.row for k, function in self._reads.items()}
        writes: Rows = {k: function.row for k, function in self._writes.items()}
        stops: Rows = {}
        if groups is not None:
            for rows, part in zip((reads, writes, stops), groups.table.tolist(), strict=True):
                rows |= dict(zip(groups.numbers, map(tuple, part), strict=True))
        ordered = [*map(reads.get, self._real), *map(writes.get, self._real), *stops.values(), self._look.row]
        return np.array(ordered, np.int64)

    def _judge(self, groups: CompiledGroups) -> None:
        """Raises RunError for what ended the ticks, unless it was the guard."""
        groups.check()
        for k, due in groups.suspects:
            now = time.monotonic_ns()
            self.hardware_manager.read_group(k, now, time.monotonic_ns, due)
            raise RunError("the loop stopped for feedback that looks sound now; check the drives and their bus")
