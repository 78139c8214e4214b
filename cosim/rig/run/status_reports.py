"""Reports of the state of a run, computed from its finished ticks outside of the thread of the loop."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from cosim.output.run_status import RunStatus
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.tick.tick_block import TickBlock

PERIOD = 0.25  # s


class StatusReports:
    """Sends a `RunStatus` every PERIOD. ticks: of the whole run."""

    def __init__(self, rig: WiredRig, ticks: int, send: Callable[[RunStatus], None]) -> None:
        self.rig, self.ticks, self.send = rig, ticks, send
        self.missed = 0
        self._sent = time.perf_counter()
        self._tick = 0  # of the last status
        self._warned = rig.run_model.row.place("warned").where
        pacing, step = rig.run_spec.schedule.pacing, rig.run_model.step
        self._first = 0 if pacing is None else round(pacing.warm_up * pacing.rate / step)

    def add(self, block: TickBlock) -> None:
        """Take finished ticks into account, and send a status if it is time."""
        if block.stamps.size:
            self.missed += self._misses(block)
        now, tick = time.perf_counter(), int(block.numbers[-1])
        if now - self._sent < PERIOD and tick + 1 < self.ticks:
            return
        step = self.rig.run_model.step
        factor = (tick - self._tick) * step / max(now - self._sent, 1e-9)
        beyond = [name for name, mask in zip(self.rig.joints, block.rows[-1, self._warned], strict=True) if mask]
        self._sent, self._tick = now, tick
        self.send(RunStatus(min((tick + 1) / self.ticks, 1.0), tick * step, factor, self.missed, beyond))

    def _misses(self, block: TickBlock) -> int:
        """Ticks after the warm-up in which a task that was due ended after its deadline."""
        late = np.zeros(len(block.numbers), dtype=bool)
        for j, task in enumerate(self.rig.tasks):
            late |= task.due(block.numbers) & (block.stamps[:, 2 + j] - block.stamps[:, 0] > task.deadline_ns)
        return int(np.count_nonzero(late & (block.numbers >= self._first)))
