"""Ticks of many runs whose rows are reduced where they come about: to metrics, samples, and the last signals."""

from __future__ import annotations

from dataclasses import dataclass

from cosim.core.compile.routine import Routine
from cosim.simulation.loop.loop_text import TickText
from cosim.simulation.loop.tick_ring import TickProgram


@dataclass(frozen=True)
class RolloutProgram:
    """The ticks of a rig, and what the loop computes of the row of each of them.

    metrics: accumulators (nm,), start, row (nr,) -> accumulators (nm,), every tick; samples: start, row -> (ns,), every
    so many ticks; None where there are none. signals: start, row -> all signals, of the last tick. start, numbers: the
    regions of the memory that are their argument and their symbolic parameters.
    """

    ticks: TickProgram
    size: int  # of the memory
    start: slice
    numbers: slice
    metrics: Routine | None
    samples: Routine | None
    signals: Routine

    @property
    def sampled(self) -> int:
        """Signals of a sample."""
        return 0 if self.samples is None else self.samples.output_sizes[0]

    @property
    def accumulated(self) -> int:
        return 0 if self.metrics is None else self.metrics.output_sizes[0]

    @property
    def routines(self) -> list[Routine]:
        """Called by the ticks, and by the rows."""
        return [*self.ticks.routines, *(item for item in (self.metrics, self.samples, self.signals) if item)]


class RolloutText(TickText):
    """Writes what a tick of such a loop consists of, for the arrays %memory and %row."""

    def __init__(self, program: RolloutProgram, lanes: int = 1) -> None:
        super().__init__(program.ticks, lanes)
        self.program = program

    def reduce(self) -> None:
        """Complete the row, update the metrics, and take a sample where one is due."""
        self.complete_row()
        if self.program.metrics is not None:
            self.observe(self.program.metrics, "%accumulators", "%accumulators")
        if self.program.samples is not None:
            due = self.value(f"icmp eq i64 {self.value('srem i64 %number, %every')}, 0")
            self(f"  br i1 {due}, label %sample, label %sampled", "sample:")
            self.sample(self.program.samples, self.value("sdiv i64 %number, %every"))
            self("  br label %sampled", "sampled:")

    def sample(self, routine: Routine, count: str) -> None:
        """Take sample number `count`."""
        raise NotImplementedError

    def observe(self, routine: Routine, result: str, *before: str) -> None:
        """Call a routine of (…, start, row) with the symbolic parameters that it needs."""
        pointers = [*before, self.place("%memory", self.program.start.start), "%row"]
        if routine.symbolic_parameters is not None:
            pointers.append(self.place("%memory", self.program.numbers.start))
        self.invoke(routine, [*pointers, result])
