"""The traffic of real drivers on its way to the recording of their run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from cosim.execution.hardware.traffic.traffic_log import TrafficLog
from cosim.output.traffic_messages import BusChannel
from cosim.rig.wiring.drivers import BusParams, bus_params

if TYPE_CHECKING:
    from cosim.rig.wiring.wired_rig import WiredRig
    from cosim.simulation.tick.tick_block import TickBlock

SLICE = 64  # entries that are handed over together: the interpreter is the loop's again after some 20 µs
BACKLOG_BYTES = 1 << 26  # that wait for a recorder that is too slow; what comes then is lost


class TrafficSink(Protocol):
    """The recorder, as far as traffic is concerned."""

    def traffic(self, zero_ns: int, entries: Any, /) -> None: ...


def channels_of_buses(rig: WiredRig) -> tuple[BusChannel, ...]:
    """The connections of the real drivers, in the order of the rig."""
    return tuple(
        BusChannel(
            spec.name,
            spec.plugin.name,
            spec.family.connection_name(spec.plugin.params),
            spec.joints,
            isinstance(bus_params(spec), BusParams),
        )
        for spec in rig.spec.drivers
    )


@dataclass
class TrafficRecording:
    """Takes what is in the log after each block of ticks, in the thread of the recording. note: receives a warning for
    entries that were lost."""

    log: TrafficLog
    sink: TrafficSink
    step_ns: float  # on the clock
    note: Callable[[str], object]
    zero_ns: int | None = None  # when tick 0 was due; what came before is handed over when it is known

    def follow(self, block: TickBlock) -> None:
        self.zero_ns = int(block.stamps[0, 0]) - round(int(block.numbers[0]) * self.step_ns)
        self._hand_over()

    def finish(self) -> None:
        """The drivers are closed: hand over the rest. Of a run without a tick this is the time 0."""
        now = time.monotonic_ns()
        self.log.end(now)
        self.zero_ns = now if self.zero_ns is None else self.zero_ns
        self._hand_over()
        for driver, lost in zip(self.log.drivers, self.log.lost, strict=True):
            if lost:
                what = f"{lost:,} of the entries of the bus traffic of '{driver}' could not be recorded"
                self.note(f"{what}: the machine is too busy, or the disk too slow")

    def _hand_over(self) -> None:
        assert self.zero_ns is not None
        while entries := self.log.take(SLICE):
            if getattr(self.sink, "backlog_bytes", 0) > BACKLOG_BYTES:
                self.log.lose(entries)
            else:
                self.sink.traffic(self.zero_ns, entries)
