"""The compiled engine of rigs with real motors: ticks in compiled code, their buses included.

Enabling, stopping and judging stay in Python. The loop ends a tick in which a drive, its feedback or its connection is
not as it should be, switches the motors off, and the drivers in Python, which get what was received last, report why.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from cosim.core.errors import RunError, describe_exception
from cosim.execution.hardware.compiled_groups import CompiledGroups, with_buses
from cosim.execution.hardware.driver_group import DriverGroup
from cosim.execution.hardware_engine import HardwareEngine
from cosim.execution.native_engine import NativeEngine
from cosim.simulation.loop.native_loop import NativeLoop
from cosim.simulation.loop.tick_ring import LoopStatus, PacingMemory, SharedWord, TickRing
from cosim.simulation.tick.tick_model import TickModel
from cosim.simulation.tick.virtual_plant import VirtualPlant


class BusEngine(HardwareEngine, NativeEngine):
    """Runs whole ticks in compiled code around drivers that have a cycle in machine code; in real time only."""

    def __init__(
        self,
        tick_model: TickModel,
        virtual_plant: VirtualPlant,
        groups: Sequence[DriverGroup],
        watchdog: float | None = None,
    ) -> None:
        """See `HardwareEngine`; groups: also of the simulated motors, which the ticks contain."""
        self._real = sum(group.real for group in groups)
        super().__init__(tick_model, virtual_plant, groups, True, None, watchdog)

    def _make_loop(self) -> NativeLoop:
        names = [task.name for task in self.tasks]
        return NativeLoop(with_buses(self.tick_model.compiled_program, names, self._real))

    def open(self) -> None:
        for group in self.hardware_manager.groups:
            if group.hardware is not None:
                group.hardware.load_cycle()  # before motors are on
        super().open()

    def _run_ticks(self, ring: TickRing, pace: PacingMemory | None) -> None:
        assert pace is not None
        if not self.force_stopped:  # else no tick runs until the rig is armed again
            self.failure = ""
        try:
            self._run_groups(CompiledGroups(self.hardware_manager), ring, pace)
        except BaseException as error:
            ring.words[SharedWord.STATUS] = LoopStatus.FAULT
            self.stop()
            if not self.force_stopped and not self.failure:
                what = str(error) if isinstance(error, RunError) else describe_exception(error)
                self.failure = self._stopped_at(int(ring.words[SharedWord.NUMBER]), what)
            if not isinstance(error, Exception):
                raise

    def _run_groups(self, groups: CompiledGroups, ring: TickRing, pace: PacingMemory) -> None:
        """Raises RunError for what ended the ticks, unless it was the guard."""
        try:
            groups.take_over()
            self._native = groups.table
            if self._watchdog is not None:
                self._watchdog.follow(lambda: int(ring.words[SharedWord.NUMBER]))
            super()._run_ticks(ring, pace)
        finally:
            if self._watchdog is not None:
                self._watchdog.suspend()
            groups.hand_back()
        if ring.status is not LoopStatus.FAULT:
            return
        groups.check()
        if groups.suspect:
            now = time.monotonic_ns()
            self.hardware_manager.read(now, time.monotonic_ns, now)
            raise RunError("the loop stopped for feedback that looks sound now; check the drives and their bus")
        self.stop()
