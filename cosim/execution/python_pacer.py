"""Pacing of the Python engine: the policy, clock and stamps of the compiled loop.

The clock of the drivers, on which their deadlines and measurement times are, is the rig's time in a free-running
run and the monotonic clock in a paced run.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

import numpy as np

from cosim.core.compile import Compiled, Interpreted
from cosim.simulation.loop.clocks import NO_TRIGGER
from cosim.simulation.loop.pacing import CHECK_CLOCK, PACE, SCHEDULE_NEXT, check_clock, schedule_next
from cosim.simulation.loop.tick_ring import (
    STATUS_OF_RESULT,
    LoopStatus,
    PacingMemory,
    SharedWord,
    TickProgram,
    TickRing,
)
from cosim.simulation.tick.memory_call import MemoryCall, bind, compile_call


@cache
def policies(interpret: bool) -> tuple[tuple[MemoryCall, Compiled | Interpreted], ...]:
    """`schedule_next` and `check_clock` on the memory of a `PacingMemory`, compiled once."""
    calls = []
    for fn, names in ((schedule_next, SCHEDULE_NEXT), (check_clock, CHECK_CLOCK)):
        inputs, outputs = (tuple(PACE.place(name) for name in side) for side in names)
        calls.append(MemoryCall(fn.__name__, fn, inputs, outputs))
    return tuple((call, compile_call(call, interpret)) for call in calls)


class Pacer(Protocol):
    """What the loop calls around each tick. Times are in ns on the clock of the drivers."""

    def wait(self, words: np.ndarray) -> LoopStatus:
        """Wait until the next tick may begin; RUNNING, or how the run ends."""
        ...

    def now(self) -> int: ...

    def due(self) -> int:
        """When the present tick was due."""
        ...

    def deadline(self, task: int, t_ns: int) -> int:
        """The deadline of a task of the tick at the rig's time t_ns."""
        ...

    def ended(self, task: int) -> None:
        """Record the end of a task."""
        ...

    def stamp(self, ring: TickRing, place: int) -> None:
        """Store the stamps of the tick."""
        ...

    def schedule_next(self, k: int, number: int) -> LoopStatus:
        """Schedule the tick after the k-th; RUNNING, or how the run ends."""
        ...


class NoPacer:
    """Free running: ticks follow one another without a clock."""

    _t_ns = 0

    def wait(self, words: np.ndarray) -> LoopStatus:
        return LoopStatus.STOPPED if words[SharedWord.STOP] else LoopStatus.RUNNING

    def now(self) -> int:
        return self._t_ns

    def due(self) -> int:
        return self._t_ns

    def deadline(self, task: int, t_ns: int) -> int:
        self._t_ns = t_ns
        return t_ns

    def ended(self, task: int) -> None: ...

    def stamp(self, ring: TickRing, place: int) -> None: ...

    def schedule_next(self, k: int, number: int) -> LoopStatus:
        return LoopStatus.RUNNING


class ClockPacer:
    """Ticks paced by a clock."""

    def __init__(self, pace: PacingMemory, program: TickProgram, words: np.ndarray, interpret: bool) -> None:
        self._program, self._clock = program, pace.clock
        self._deadlines = pace.deadlines.tolist()
        self._memory = {name: pace.memory[where].reshape(shape) for (name,), (where, shape) in PACE.places.items()}
        self._schedule_next, self._check_clock = (bind(call, pace.memory, run) for call, run in policies(interpret))
        self._start = self._due = self._woke = self._previous_woke = int(words[SharedWord.START])
        self._triggered = bool(words[SharedWord.TRIGGERED])
        self._ends = [0] * len(self._deadlines)
        self._previous = self._clock.now()

    def wait(self, words: np.ndarray) -> LoopStatus:
        self._woke = self._clock.wait(self._due)
        if words[SharedWord.STOP]:
            return LoopStatus.STOPPED
        if self._woke == NO_TRIGGER:
            return LoopStatus.NO_TRIGGER
        if self._triggered:
            self._start, self._due = self._woke - int(self._memory["due"]), self._woke
        for name, time in (("due", self._due), ("previous", self._previous), ("woke", self._woke)):
            self._memory[name][...] = time - self._start
        self._check_clock()
        self._ends = [self._woke] * len(self._ends)
        return STATUS_OF_RESULT[int(self._memory["result"])]

    def now(self) -> int:
        return self._clock.now()

    def due(self) -> int:
        return self._due

    def deadline(self, task: int, t_ns: int) -> int:
        return self._due + self._deadlines[task]

    def ended(self, task: int) -> None:
        # a task that does not run ends with the one before
        self._ends[task:] = [self._clock.now()] * (len(self._ends) - task)

    def stamp(self, ring: TickRing, place: int) -> None:
        ring.stamps[place] = (self._due, self._woke, *self._ends, self._clock.cpu())

    def schedule_next(self, k: int, number: int) -> LoopStatus:
        self._previous = self._ends[-1]
        late = any(
            end - self._due > deadline and number % task.ticks == task.phase
            for task, end, deadline in zip(self._program.tasks, self._ends, self._deadlines, strict=True)
        )
        interval = self._woke - self._previous_woke if self._triggered and k else 0
        self._previous_woke = self._woke
        for name, value in (("k", k), ("late", late), ("interval", interval), ("ended", self._previous - self._start)):
            self._memory[name][...] = value
        self._schedule_next()
        self._due = self._start + int(self._memory["due"])
        return STATUS_OF_RESULT[int(self._memory["result"])]
