"""How the loop in Python keeps its time: the same policy, clock and stamps as the loop in machine code has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from cosim.tick.memory_call import MemoryCall, bind
from cosim.timing.clocks import NO_PULSE
from cosim.timing.native_loop import ENDINGS, LoopStatus, PaceMemory, SharedWord, TickProgram, TickRing
from cosim.timing.pacing import FOLLOW, PACE, WAKE, follow, wake


class Pacer(Protocol):
    """What the loop asks around each tick."""

    def wait(self, words: np.ndarray) -> LoopStatus:
        """Until the next tick may begin; RUNNING, or how the run ends."""
        ...

    def now(self) -> int:
        """The time [ns] on the clock of the drivers."""
        ...

    def due(self) -> int:
        """The same when the tick was due."""
        ...

    def deadline(self, task: int, t_ns: int) -> int:
        """By when a task of the tick at t_ns is to be done [ns], on the clock of the drivers."""
        ...

    def ended(self, task: int) -> None:
        """A task that ran is done."""
        ...

    def stamp(self, rings: TickRing, place: int) -> None: ...

    def follow(self, k: int, number: int) -> LoopStatus:
        """After the k-th tick; RUNNING, or how the run ends."""
        ...


class NoPacer:
    """No clock: ticks follow one another, and the time of the drivers is that of the rig."""

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

    def stamp(self, rings: TickRing, place: int) -> None: ...

    def follow(self, k: int, number: int) -> LoopStatus:
        return LoopStatus.RUNNING


class ClockPacer:
    """Holds ticks to a pace."""

    def __init__(self, pace: PaceMemory, program: TickProgram, words: np.ndarray, interpret: bool) -> None:
        self._program, self._clock = program, pace.clock
        self._deadlines = pace.deadlines.tolist()
        self._word = {name: pace.memory[where].reshape(shape) for (name,), (where, shape) in PACE.places.items()}
        self._follow, self._wake = (
            self._bound(fn, sides, pace.memory, interpret) for fn, sides in ((follow, FOLLOW), (wake, WAKE))
        )
        self._start = self._due = self._woke = self._woken = int(words[SharedWord.START])
        self._pulsed = bool(words[SharedWord.PULSED])
        self._ends = [0] * len(self._deadlines)
        self._before = self._clock.now()

    @staticmethod
    def _bound(fn: Any, sides: Any, memory: np.ndarray, interpret: bool) -> Callable[[], object]:
        inputs, outputs = (tuple(PACE.place(word) for word in side) for side in sides)
        return bind(MemoryCall(fn.__name__, fn, inputs, outputs), memory, interpret)

    def wait(self, words: np.ndarray) -> LoopStatus:
        self._woke = self._clock.wait(self._due)
        if words[SharedWord.STOP]:
            return LoopStatus.STOPPED
        if self._woke == NO_PULSE:
            return LoopStatus.NO_PULSE
        if self._pulsed:
            self._start, self._due = self._woke - int(self._word["due"]), self._woke
        for word, time in (("due", self._due), ("before", self._before), ("woke", self._woke)):
            self._word[word][...] = time - self._start
        self._wake()
        self._ends = [self._woke] * len(self._ends)
        return ENDINGS[int(self._word["verdict"])]

    def now(self) -> int:
        return self._clock.now()

    def due(self) -> int:
        return self._due

    def deadline(self, task: int, t_ns: int) -> int:
        return self._due + self._deadlines[task]

    def ended(self, task: int) -> None:
        # a task that does not run ends with the one before
        self._ends[task:] = [self._clock.now()] * (len(self._ends) - task)

    def stamp(self, rings: TickRing, place: int) -> None:
        rings.stamps[place] = (self._due, self._woke, *self._ends, self._clock.cpu())

    def follow(self, k: int, number: int) -> LoopStatus:
        self._before = self._ends[-1]
        late = any(
            end - self._due > deadline and number % task.ticks == task.phase
            for task, end, deadline in zip(self._program.tasks, self._ends, self._deadlines, strict=True)
        )
        gap = self._woke - self._woken if self._pulsed and k else 0
        self._woken = self._woke
        for word, value in (("k", k), ("late", late), ("gap", gap), ("ended", self._before - self._start)):
            self._word[word][...] = value
        self._follow()
        self._due = self._start + int(self._word["due"])
        return ENDINGS[int(self._word["verdict"])]
