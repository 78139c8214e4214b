"""Times of ticks that run back to back, without waiting for a clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager

import numpy as np

from benchmarks.emulation import SteppedClock, emulation_for, serving
from cosim.core.errors import RunError
from cosim.execution.engine import Engine
from cosim.execution.timing.clock_sources import PythonClock
from cosim.rig.rig import Rig
from cosim.simulation.loop.clocks import native_clock
from cosim.simulation.loop.pacing import Pacing, settings
from cosim.simulation.loop.tick_ring import LoopStatus, PacingMemory, SharedWord, TickRing

FEEDBACK_NS = 5_000_000  # in which drives must report their position after they are enabled
DEADLINE_NS = 1_000_000_000  # of every task
WARM_UP_TICKS = 20


class BackToBackClock(PythonClock):
    """Ticks follow each other without a wait; `before` is called before each. ticks, others: durations of both [ns]."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self._own, self._before = native_clock(), before
        self.ticks: list[int] = []
        self.others: list[int] = []
        self._begun = 0

    def begin(self) -> None:
        self._begun = 0

    def now(self) -> int:
        return self._own.now()

    def cpu(self) -> int:
        return self._own.cpu()

    def wait(self, due_ns: int) -> int:
        ended = self.now()
        if self._begun:
            self.ticks.append(ended - self._begun)
        self._before()
        self._begun = self.now()
        self.others.append(self._begun - ended)
        return self._begun


def enable_engine(engine: Engine) -> None:
    """Open the drivers, enable the motors and start from the measured positions."""
    engine.open()
    engine.arm()
    engine.start_from_measured(0.1, time.monotonic_ns() + FEEDBACK_NS)


def time_ticks(engine: Engine, clock: BackToBackClock, count: int) -> np.ndarray:
    """(count, tasks + 1) durations [ns] of `count` ticks: of every task, and of the whole tick with the loop around it.

    Raises RunError with the reason when the ticks end before.
    """
    rings = TickRing(engine.program, count + 1, stamped=True)
    rings.words[SharedWord.START], rings.words[SharedWord.TRIGGERED] = clock.now(), 1
    pace = PacingMemory(clock, settings(Pacing(), engine.tick_model.step_ns), np.full(len(engine.tasks), DEADLINE_NS))
    clock.begin()
    clock.ticks.clear()
    engine.run_ticks(rings, count + 1, pace)  # a tick is over when the next one begins
    if rings.status is not LoopStatus.FINISHED:
        raise RunError(engine.fault_message(rings.status, rings.read(count)[0]) or "the ticks ended early")
    _, stamps = rings.read(count)
    return np.column_stack([np.diff(stamps[:, 1:-1], axis=1), clock.ticks[:count]])


@contextmanager
def ticks_with_answers(rig: Rig, keys: Iterable[str]) -> Iterator[tuple[Engine, BackToBackClock]]:
    """The engine of a rig of a file and overrides, after its first ticks, and the clock of the ticks to come.

    Before each tick the emulated drives, in the same thread, receive their commands, reply and advance by a step.
    """
    clock = SteppedClock()
    emulation, engine = emulation_for(rig.spec.path, keys, clock), rig.engine()

    def answer() -> None:
        clock.advance(emulation.step_ns)
        emulation.step()

    emulation.open()
    with closing(emulation), closing(engine):
        with serving(emulation):  # opening and enabling wait for replies
            enable_engine(engine)
            time_ticks(engine, BackToBackClock(), WARM_UP_TICKS)
        yield engine, BackToBackClock(answer)
