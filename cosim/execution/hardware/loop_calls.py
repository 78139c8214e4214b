"""Calls of hardware in a compiled loop: where they are in its tick, and functions of Python that it calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from cosim.simulation.loop.tick_ring import NativeCall, TickProgram

_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)


class HardwareCalls(NamedTuple):
    """How many calls a loop makes of each kind, numbered in this order: those that read groups of drivers, that write
    them, that stop them when the loop ends, and that look at the emergency stop."""

    groups: int
    stops: int
    estops: int

    def added_to(self, program: TickProgram, names: Sequence[str]) -> TickProgram:
        """The program with the emergency stop before the first call of the task `read`, the groups read after it, and
        written at the end of the task `write`; names: of its tasks."""
        reads, writes, stops, estops = self.numbered()
        tasks = []
        for task, name in zip(program.tasks, names, strict=True):
            calls = task.calls
            if name == "read":
                calls = (*estops, *calls[:1], *reads, *calls[1:])
            elif name == "write":
                calls = (*calls, *writes)
            tasks.append(replace(task, calls=calls))
        return replace(program, tasks=tuple(tasks), at_end=stops)

    def numbered(self) -> list[tuple[NativeCall, ...]]:
        """The calls of each kind."""
        kinds, first = [], 0
        for count in (self.groups, self.groups, self.stops, self.estops):
            kinds.append(tuple(NativeCall(first + k) for k in range(count)))
            first += count
        return kinds


class CalledFunction:
    """A function of Python that a compiled loop calls; see `NativeCall`. It must stay referenced while it is called."""

    def __init__(self, function: Callable[[int, int], int]) -> None:
        """function: (when the tick was due, deadline of the task) [ns] -> 0, or 1 to end the loop; never raises."""
        self._callback = _CALL(lambda context, memory, due, until: function(due, until))
        self.row = ctypes.cast(self._callback, ctypes.c_void_p).value or 0, 0
