"""A run with the faults of a scenario, from a rig that has come to the tick in which the first one begins."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import numpy as np

from cosim.apps.scenario.armed_rig import ArmedRig
from cosim.apps.scenario.timeline import Timeline

LONGEST_OFF = 2.0  # s that motors may take to be off after a stop
_TICK = re.compile(r"stopped at tick (\d+)")


@dataclass
class FaultyRun:
    """The course of a run with injected faults, up to its stop or its last tick.

    rows (k, nr): of all ticks; fault: why it was stopped, "" if it was not; off: time from the stop until no motor
    exerts an effort [s], None if it did not come; events: (tick, what) of the faults.
    """

    step: float
    rows: np.ndarray
    fault: str
    timeline: Timeline
    off: float | None = None
    events: list[tuple[int, str]] = field(default_factory=list)

    @property
    def last(self) -> int:
        """The tick in which it was stopped, or its last one."""
        match = _TICK.search(self.fault)
        return int(match[1]) if match else len(self.rows) - 1


def run_with_faults(armed: ArmedRig, timeline: Timeline, before: list[np.ndarray], ticks: int, off: bool) -> FaultyRun:
    """Run to the end of `ticks` or to a stop. before: the rows (k, nr) of the ticks so far; off: whether to wait after
    a stop until the motors are off."""
    engine, rows, fault = armed.engine, list(before), ""
    active: list = []
    events: list[tuple[int, str]] = []

    def value(signal: str) -> float:
        return float(armed.signals(rows[-1][-1:])[0, armed.names[signal]])

    while engine.number < ticks and not fault:
        tick = engine.number
        timeline.update(tick, value)
        if (now := timeline.active(tick)) != active:
            events += [(tick, f"{_named(spec)} begins") for spec in now if spec not in active]
            events += [(tick, f"{_named(spec)} ends") for spec in active if spec not in now]
            active = now
            armed.inject(active)
        until = tick + 1 if timeline.waits(tick) else min(ticks, timeline.next_change(tick))
        new, fault = armed.run(int(until) - tick)
        rows += [new] if len(new) else []
    seconds = armed.time_until_off(LONGEST_OFF) if fault and off else (0.0 if fault else math.inf)
    return FaultyRun(armed.step, np.concatenate(rows), fault, timeline, seconds, events)


def _named(spec: object) -> str:
    kind, where = getattr(spec, "kind", ""), getattr(spec, "joint", "") or getattr(spec, "driver", "")
    return f"{kind.replace('_', ' ')} at {where}"
