"""Timing pre-check: whether the ticks of a rig fit their period and deadlines, measured before the run."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from cosim.control.control_loop import ControlLoop
from cosim.core.errors import InputError, SourceLocation
from cosim.core.units import format_seconds
from cosim.execution.engine import Engine
from cosim.execution.timing.clock_sources import PythonClock
from cosim.execution.timing.deadlines import TaskTime
from cosim.simulation.loop.clocks import native_clock
from cosim.simulation.loop.pacing import Pacing, settings
from cosim.simulation.loop.tick_ring import LoopStatus, PacingMemory, SharedWord, TickRing

MIN_TICKS, MAX_TICKS = 40, 4000
TIME_LIMIT = 1.0  # s, after which no more blocks of ticks are run
BLOCK = 20  # ticks
MAX_TASKS = 3  # by name
MIN_FRACTION = 0.05  # of a tick, of tasks by name
NO_DEADLINE = 1 << 62  # ns


class NonWaitingClock(PythonClock):
    """A clock whose waits end immediately."""

    def __init__(self) -> None:
        super().__init__()
        self._native = native_clock()
        self.functions = (*self._native.functions[:2], *self.functions[2:])

    def now(self) -> int:
        return self._native.now()

    def cpu(self) -> int:
        return self._native.cpu()

    def wait(self, due_ns: int) -> int:
        return self._native.now()


def measure_ticks(engine: Engine) -> tuple[np.ndarray, np.ndarray]:
    """(numbers (k,), stamps (k, 3 + tasks)) of ticks run without waiting from the engine's state, which is restored.

    None with real motors: they would move.
    """
    tasks = engine.program.tasks
    if engine.hardware:
        return np.zeros(0, np.int64), np.zeros((0, 3 + len(tasks)), np.int64)
    begun = time.perf_counter()
    count = min(max(MIN_TICKS, 4 * max(task.ticks for task in tasks)), MAX_TICKS)
    ring = TickRing(engine.program, count, stamped=True)
    ring.words[SharedWord.TRIGGERED] = 1
    first, snapshot = engine.number, engine.snapshot()
    constants, deadlines = settings(Pacing(), engine.tick_model.step_ns), np.full(len(tasks), NO_DEADLINE)
    with _copies(engine.tick_model.loops if engine.calls_python else []):  # compiled ones have no hidden state
        engine.open()
        engine.arm()
        while ring.waiting < count and time.perf_counter() - begun < TIME_LIMIT:
            ring.words[SharedWord.START] = native_clock().now()
            pace = PacingMemory(NonWaitingClock(), constants, deadlines)
            engine.run_ticks(ring, min(BLOCK, count - ring.waiting), pace)
            if ring.status is not LoopStatus.FINISHED:
                break
        engine.close()
    engine.restore(snapshot)
    _, stamps = ring.read(count)
    return first + np.arange(len(stamps)), stamps


@contextmanager
def _copies(loops: Sequence[ControlLoop]) -> Iterator[None]:
    """Replace controllers by copies, so that hidden state of theirs does not change."""
    originals = [(loop.block, loop.fallback) for loop in loops]
    for loop in loops:
        loop.block, loop.fallback = _copied(loop.block), _copied(loop.fallback)
    try:
        yield
    finally:
        for loop, (block, fallback) in zip(loops, originals, strict=True):
            loop.block, loop.fallback, loop.failure = block, fallback, ""


def _copied(block: Any) -> Any:
    try:
        return copy.deepcopy(block)
    except Exception:  # user code that cannot be copied is used itself
        return block


def check_schedulable(
    engine: Engine,
    tasks: Sequence[TaskTime],
    period_ns: float,
    place: Callable[[tuple[str | int, ...]], SourceLocation | str | None],
) -> None:
    """Raises InputError when the median times of the tasks of a tick exceed the period, or a deadline.

    place: where a key of the rig is, for the error.
    """
    numbers, stamps = measure_ticks(engine)
    times = np.diff(stamps[:, 1:-1], axis=1)
    due = np.stack([task.due(numbers) for task in tasks], axis=1)
    usual = np.array([float(np.median(times[rows, j])) if rows.any() else 0.0 for j, rows in enumerate(due.T)])
    ends = np.cumsum(np.where(due, usual, 0.0), axis=1)  # from the beginning of each tick
    if not len(ends):
        return
    worst = int(np.argmax(ends[:, -1]))
    controllers = [loop.name for loop in engine.tick_model.loops]  # in the order of the file
    needed = ends[worst, -1]
    by_time = sorted(((usual[j], task.name) for j, task in enumerate(tasks) if due[worst, j]), reverse=True)
    listed = ", ".join(
        f"{name} {format_seconds(ns * 1e-9)}" for ns, name in by_time[:MAX_TASKS] if ns > MIN_FRACTION * needed
    )
    slowest = by_time[0][1]
    fix = f" or give '{slowest}' a longer period" if slowest in controllers else ""
    if needed > period_ns:
        what = f"a tick takes {format_seconds(needed * 1e-9)} and has {format_seconds(period_ns * 1e-9)}: {listed}"
        raise InputError(f"{what}; make the step longer{fix}", place(("schedule", "step")))
    for j, task in enumerate(tasks):
        end = float(np.max(ends[due[:, j], j], initial=0.0))
        if end > task.deadline_ns:
            key = ("schedule", "deadlines", task.name)
            if task.name in controllers:
                key = ("controllers", controllers.index(task.name), "deadline")
            what = f"'{task.name}' ends {format_seconds(end * 1e-9)} after its tick has begun: {listed}"
            raise InputError(f"{what}; give it more than {format_seconds(task.deadline_ns * 1e-9)}{fix}", place(key))
