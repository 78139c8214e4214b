"""What the loops and their readers share: the program of a tick, the ring of finished ticks, the memory of pacing.

Each word that both sides share is written by one side only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from cosim.core.compile.routine import Routine
from cosim.simulation.loop.clocks import Clock
from cosim.simulation.loop.pacing import PACE


class SharedWord(IntEnum):
    """The shared words. Python writes those up to READ, the loop the others."""

    COUNT = 0  # ticks to run
    START = 1  # ns, when the first tick is due
    TRIGGERED = 2  # not 0: a tick is due when its wait ends
    PLACES = 3  # ticks that the ring holds
    STOP = 4  # a StopRequest
    READ = 5  # ticks read from the ring
    CHANGES = 6  # changes of the memory that were given
    CHANGE_TABLE = 7  # address of the last one: rows (place, value)
    CHANGE_ROWS = 8
    NUMBER = 9  # of the next tick; the loop increments it
    TAKEN = 10  # ticks put into the ring
    LOST = 11  # ticks that found the ring full
    STATUS = 12  # a LoopStatus
    CHANGES_MADE = 13
    CHANGED_AT = 14  # tick before which the last one was made


class StopRequest(IntEnum):
    """What ends the loop before its next tick: a pause, or a stop, after which the motors are off."""

    NONE, PAUSE, STOP = range(3)


class LoopStatus(IntEnum):
    """Whether the loop runs, and if not, why it has ended."""

    RUNNING, FINISHED, FAULT, STOPPED, LATE, WENT_BACK, JUMPED, NO_TRIGGER = range(8)


# result of `pacing.schedule_next` and `pacing.check_clock` -> status of the loop
STATUS_OF_RESULT = (LoopStatus.RUNNING, LoopStatus.LATE, LoopStatus.WENT_BACK, LoopStatus.JUMPED)


@dataclass(frozen=True)
class RoutineCall:
    """A routine and the regions of its arguments in the memory: inputs, then outputs."""

    routine: Routine
    inputs: tuple[slice, ...]
    outputs: tuple[slice, ...]


@dataclass(frozen=True)
class PythonCall:
    """A call of Python from the loop, by its number; the loop ends with a fault if it fails."""

    number: int


@dataclass(frozen=True)
class NativeCall:
    """A call of a function that the loop is given when it runs, by its number in a table with rows of words (address of
    the function, its context): int64(context, address of the memory, due, deadline of the task), times in ns. A result
    other than 0 ends the loop with a fault."""

    number: int


LoopCall = RoutineCall | PythonCall | NativeCall


@dataclass(frozen=True)
class LoopTask:
    """Calls that are made every `ticks` ticks, from tick `phase` on."""

    calls: tuple[LoopCall, ...]
    ticks: int = 1
    phase: int = 0


@dataclass(frozen=True)
class TickProgram:
    """The ticks of a rig: its tasks in running order, and where the memory holds what the loop itself needs.

    A row is the beginning of the memory: its `early` part as at the beginning of the tick, the rest as at the end. The
    tick ends after task number `judge` if that left a value other than 0 at `fault`.
    """

    tasks: tuple[LoopTask, ...]
    step: float  # s
    time: int  # index of t = number · step
    fault: int
    judge: int
    early: int
    row: int
    at_end: tuple[NativeCall, ...] = ()  # made when the loop ends, however it ends; their results do not matter

    @property
    def routines(self) -> list[Routine]:
        """That the tasks call."""
        return [call.routine for task in self.tasks for call in task.calls if isinstance(call, RoutineCall)]


@dataclass
class TickRing:
    """Finished ticks: rows (k, nr), stamps (k, 3 + tasks) where there is a clock, and the shared words.

    Stamps of a tick [ns]: when it was due, when it began, the end of each task (of one that does not run, of the one
    before), CPU time of the thread.
    """

    program: TickProgram
    places: int
    stamped: bool = False
    words: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.changes = np.zeros((0, 2), dtype=np.int64)  # the table of the last change, values as their bits
        # one place more than counts, for ticks that find the ring full
        self.rows = np.zeros((self.places + 1, self.program.row))
        self.stamps = np.zeros((self.places + 1, 3 + len(self.program.tasks) if self.stamped else 0), dtype=np.int64)
        self.words = np.zeros(len(SharedWord), dtype=np.int64)
        self.words[SharedWord.PLACES] = self.places

    def read(self, limit: int) -> tuple[np.ndarray, np.ndarray]:
        """(rows, stamps) of up to `limit` ticks that were not read yet."""
        first, taken = int(self.words[SharedWord.READ]), int(self.words[SharedWord.TAKEN])
        at = np.arange(first, min(taken, first + limit)) % self.places
        block = self.rows[at], self.stamps[at]
        self.words[SharedWord.READ] = first + len(at)
        return block

    def take(self) -> tuple[np.ndarray, np.ndarray]:
        """(rows, stamps) of all ticks that were not read yet, in their places: the loop writes there again after
        `places` more ticks. They must not go beyond the end of the ring, see `room`."""
        first, taken = int(self.words[SharedWord.READ]), int(self.words[SharedWord.TAKEN])
        at = first % max(self.places, 1)
        self.words[SharedWord.READ] = taken
        return self.rows[at : at + taken - first], self.stamps[at : at + taken - first]

    def change(self, places: np.ndarray, values: np.ndarray) -> None:
        """Have the loop store values (k,) at places (k,) of its memory, all before one tick; see `changed_at`. The
        change before must have been made."""
        self.changes = np.column_stack([places, np.asarray(values, float).view(np.int64)]).astype(np.int64, order="C")
        self.words[SharedWord.CHANGE_TABLE] = self.changes.ctypes.data
        self.words[SharedWord.CHANGE_ROWS] = len(self.changes)
        self.words[SharedWord.CHANGES] += 1

    @property
    def changed_at(self) -> int | None:
        """The tick before which the last change was made; None until then."""
        made = self.words[SharedWord.CHANGES_MADE] == self.words[SharedWord.CHANGES]
        return int(self.words[SharedWord.CHANGED_AT]) if made else None

    @property
    def room(self) -> int:
        """Ticks to the end of the ring, where its places begin anew."""
        return self.places - int(self.words[SharedWord.TAKEN]) % self.places

    @property
    def status(self) -> LoopStatus:
        return LoopStatus(int(self.words[SharedWord.STATUS]))

    @property
    def waiting(self) -> int:
        """Ticks in the ring that were not read yet."""
        return int(self.words[SharedWord.TAKEN] - self.words[SharedWord.READ])


@dataclass
class PacingMemory:
    """The pacing of a loop: its clock, `pacing.settings`, deadlines (tasks,) [ns after due], the policy's memory."""

    clock: Clock
    settings: np.ndarray
    deadlines: np.ndarray

    def __post_init__(self) -> None:
        self.memory = np.zeros(PACE.size)
        self.memory[PACE.place("settings").where] = self.settings

    @property
    def slip_ns(self) -> int:
        """Clock slip before the last tick was due."""
        return int(self.memory[PACE.place("slip").where][0])
