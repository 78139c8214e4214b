"""How the scheduler runs ticks: the common protocol, and free running in the caller's thread."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple, Protocol

import numpy as np

from cosim.execution.engine import Engine
from cosim.execution.timing.privileges import Privilege, quiet_interpreter
from cosim.simulation.loop.tick_ring import LoopStatus, StopRequest, TickProgram, TickRing

FIRST_BLOCK, GROWTH = 32, 4  # ticks; blocks of a free run grow until one takes BLOCK_TIME [s] or has BLOCK_BYTES
BLOCK_TIME = 0.02
BLOCK_BYTES = 1 << 20
RECENT_TICKS = 4096  # whose rows stay where they are, for the cause of a fault

# takes rows (k, nr) and stamps of finished ticks; they may lie in a ring, see `UnpacedTicks`
StoreBlock = Callable[[np.ndarray, np.ndarray], object]


class ExecutionMode(Protocol):
    """How ticks are run between two calls of the scheduler."""

    privileges: tuple[Privilege, ...]

    def open(self, engine: Engine, stack: ExitStack) -> None:
        """Acquire the resources of the mode; `stack` releases them."""
        ...

    def arm(self) -> None:
        """Raises InputError when a privilege is missing without which ticks must not start."""
        ...

    def hold(self, run: Callable[[], object]) -> None:
        """Call run(), which keeps motors enabled until `start` and returns then, in the thread of the loop."""
        ...

    @property
    def start_deadline_ns(self) -> int:
        """A deadline for measurements before the start, on the clock of the drivers."""
        ...

    def start(self, ticks: int, before: Callable[[TickRing | None], object], end_hold: Callable[[], object]) -> None:
        """Start, or resume, so many ticks. before(ring) is called first; with the ring where they run in another
        thread. end_hold(): of what `hold` calls, as late as may be."""
        ...

    def change(self, places: np.ndarray, values: np.ndarray) -> int:
        """Between two ticks that run, store values (k,) at places (k,) of the memory; the number of the second one.
        Raises RunError when no tick follows."""
        ...

    def collect(self, remaining: int, store: StoreBlock) -> LoopStatus:
        """Wait for some of the remaining ticks; RUNNING, or how they ended."""
        ...

    def stop_after_tick(self, request: StopRequest, store: StoreBlock) -> LoopStatus:
        """End the ticks after the present one."""
        ...

    def fault_message(self, status: LoopStatus) -> str:
        """Why the pacing ended the ticks; empty when it did not."""
        ...


def block_ticks(program: TickProgram) -> int:
    """The most ticks in a block of a free run."""
    return max(FIRST_BLOCK, BLOCK_BYTES // (8 * program.row))


class UnpacedTicks:
    """Runs ticks without a clock, block by block in one ring. The rows of a block are used in their places: they change
    RECENT_TICKS ticks after the block at the earliest."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._most = block_ticks(engine.program)
        self._ring = TickRing(engine.program, RECENT_TICKS + 2 * self._most)

    def run(self, limit: int, remaining: int, store: StoreBlock) -> LoopStatus:
        """Run a block of up to `limit` of the remaining ticks; RUNNING when ticks remain."""
        count = min(limit, remaining, self._most, self._ring.room)
        try:
            self._engine.run_ticks(self._ring, count)
        finally:
            store(*self._ring.take())  # also the ticks before an interrupt
        status = self._ring.status
        return LoopStatus.RUNNING if status is LoopStatus.FINISHED and count < remaining else status


class PlannedChange(NamedTuple):
    """Values (k,) to be stored at places (k,) of the memory before a tick."""

    tick: int
    places: np.ndarray
    values: np.ndarray


class FreeRunning:
    """As fast as possible: a block of ticks in the caller's thread at each call."""

    privileges: tuple[Privilege, ...] = ()

    def __init__(self, planned: Sequence[PlannedChange] = ()) -> None:
        """planned: in the order of their ticks."""
        self._planned = deque(planned)

    def open(self, engine: Engine, stack: ExitStack) -> None:
        self._engine, self._ticks = engine, UnpacedTicks(engine)
        if engine.calls_python:
            stack.enter_context(quiet_interpreter())

    def arm(self) -> None:
        """Needs no privileges."""

    def hold(self, run: Callable[[], object]) -> None:
        threading.Thread(target=run, daemon=True).start()

    @property
    def start_deadline_ns(self) -> int:
        return self._engine.number * self._engine.tick_model.step_ns

    def start(self, ticks: int, before: Callable[[TickRing | None], object], end_hold: Callable[[], object]) -> None:
        before(None)
        end_hold()
        self._block = FIRST_BLOCK

    def change(self, places: np.ndarray, values: np.ndarray) -> int:
        self._engine.change(places, values)
        return self._engine.number

    def collect(self, remaining: int, store: StoreBlock) -> LoopStatus:
        while self._planned and self._planned[0].tick <= self._engine.number:
            self.change(*self._planned.popleft()[1:])
        until_change = self._planned[0].tick - self._engine.number if self._planned else remaining
        begun = time.perf_counter()
        status = self._ticks.run(min(self._block, until_change), remaining, store)
        if time.perf_counter() - begun < BLOCK_TIME / GROWTH:
            self._block *= GROWTH
        return status

    def stop_after_tick(self, request: StopRequest, store: StoreBlock) -> LoopStatus:
        return LoopStatus.STOPPED

    def fault_message(self, status: LoopStatus) -> str:
        return ""
