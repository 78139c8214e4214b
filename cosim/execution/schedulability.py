"""Whether the ticks of a rig fit their time: they are taken once without a clock, and measured, before the run."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from cosim.control.control_loop import ControlLoop
from cosim.errors import InputError
from cosim.execution.engine import Engine
from cosim.timing.clock_sources import PythonClock
from cosim.timing.clocks import native_clock
from cosim.timing.deadlines import TaskTime
from cosim.timing.native_loop import LoopStatus, PaceMemory, SharedWord, TickRing
from cosim.timing.pacing import Pacing, settings
from cosim.units import format_seconds

LEAST, MOST = 40, 4000  # ticks
PATIENCE = 1.0  # s, after which no more ticks are taken
AT_ONCE = 20  # ticks
TOLD = 3  # tasks that are named
WORTH = 0.05  # share of a tick that a task takes to be worth a word


class NonWaitingClock(PythonClock):
    """A clock that never lets wait."""

    def __init__(self) -> None:
        super().__init__()
        self._own = native_clock()
        self.functions = (*self._own.functions[:2], *self.functions[2:])

    def now(self) -> int:
        return self._own.now()

    def cpu(self) -> int:
        return self._own.cpu()

    def wait(self, due_ns: int) -> int:
        return self._own.now()


def measure_ticks(engine: Engine) -> tuple[np.ndarray, np.ndarray]:
    """(numbers (k,), stamps (k, 3 + tasks)) of ticks taken at once from where the engine is, to which it returns.

    None with real motors: they would move.
    """
    nothing = np.zeros(0, np.int64), np.zeros((0, 3 + len(engine.tasks)), np.int64)
    if engine.hardware:
        return nothing
    begun, wanted = time.perf_counter(), min(max(LEAST, 4 * max(stage.ticks for stage in engine.tasks)), MOST)
    rings = TickRing(engine.program, wanted, stamped=True)
    rings.words[SharedWord.PULSED] = 1
    first, snapshot = engine.number, engine.snapshot()
    with _set_aside([stage.loop for stage in engine.tasks if stage.loop is not None]):
        engine.open()
        engine.arm()
        while rings.waiting < wanted and time.perf_counter() - begun < PATIENCE:
            rings.words[SharedWord.START] = native_clock().now()
            pace = PaceMemory(
                NonWaitingClock(), settings(Pacing(), engine.simulation.step_ns), np.full(len(engine.tasks), 2**62)
            )
            engine.run_ticks(rings, min(AT_ONCE, wanted - rings.waiting), pace)
            if rings.status is not LoopStatus.FINISHED:
                break
        engine.close()
    engine.restore(snapshot)
    _, stamps = rings.read(wanted)
    return first + np.arange(len(stamps)), stamps


@contextmanager
def _set_aside(loops: Sequence[ControlLoop]) -> Iterator[None]:
    """Controllers that keep something of their own are rehearsed as copies."""
    kept = [(loop.block, loop.fallback) for loop in loops]
    for loop in loops:
        loop.block, loop.fallback = _copied(loop.block), _copied(loop.fallback)
    try:
        yield
    finally:
        for loop, (block, fallback) in zip(loops, kept, strict=True):
            loop.block, loop.fallback, loop.failure = block, fallback, ""


def _copied(block: Any) -> Any:
    try:
        return copy.deepcopy(block)
    except Exception:  # a block of the user's own that cannot be copied is rehearsed itself
        return block


def check_schedulable(
    engine: Engine, tasks: Sequence[TaskTime], period_ns: float, place: Callable[[tuple[Any, ...]], Any]
) -> None:
    """Raises InputError when the tasks of a tick usually take longer than the period, or longer than a deadline.

    place: of a key of the rig, for the error.
    """
    numbers, stamps = measure_ticks(engine)
    took = np.diff(stamps[:, 1:-1], axis=1)
    due = np.stack([task.due(numbers) for task in tasks], axis=1)
    usual = np.array([float(np.median(took[rows, j])) if rows.any() else 0.0 for j, rows in enumerate(due.T)])
    ends = np.cumsum(np.where(due, usual, 0.0), axis=1)  # from the beginning of each tick
    if not len(ends):
        return
    worst = int(np.argmax(ends[:, -1]))
    controllers = [loop.name for loop in engine.simulation.loops]  # as in the file
    needs = ends[worst, -1]
    shares = sorted(((usual[j], task.name) for j, task in enumerate(tasks) if due[worst, j]), reverse=True)
    named = ", ".join(f"{name} {format_seconds(size * 1e-9)}" for size, name in shares[:TOLD] if size > WORTH * needs)
    heaviest = shares[0][1]
    less = f" or give '{heaviest}' a longer period" if heaviest in controllers else ""
    if needs > period_ns:
        what = f"a tick takes {format_seconds(needs * 1e-9)} and has {format_seconds(period_ns * 1e-9)}: {named}"
        raise InputError(f"{what}; make the step longer{less}", place(("schedule", "step")))
    for j, task in enumerate(tasks):
        end = float(np.max(ends[due[:, j], j], initial=0.0))
        if end > task.deadline_ns:
            key = ("schedule", "deadlines", task.name)
            if task.name in controllers:
                key = ("controllers", controllers.index(task.name), "deadline")
            what = f"'{task.name}' is done {format_seconds(end * 1e-9)} after its tick has begun: {named}"
            raise InputError(f"{what}; give it more than {format_seconds(task.deadline_ns * 1e-9)}{less}", place(key))
