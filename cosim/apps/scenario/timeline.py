"""When the faults of a scenario begin and end, in ticks: at a time, after a condition, after one another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cosim.execution.hardware.emulation.fault_injection import FaultInjection

ROUNDING = 1e-9  # of a tick


@dataclass(frozen=True)
class TimedFault:
    """A fault with its condition (signal, factor, bound in SI), None without one; follows: after the one before it."""

    spec: FaultInjection
    when: tuple[str, float, float] | None
    follows: bool


class Timeline:
    """The faults of a scenario in their order. A fault with a condition, and one that follows, waits until the one
    before it has begun; a condition is checked on the signals of the tick before."""

    def __init__(self, faults: Sequence[TimedFault], step: float) -> None:
        """step [s]"""
        self.faults, self._step = tuple(faults), step
        # tick from which `at` counts
        self._zero: list[int | None] = [None if fault.when or fault.follows else 0 for fault in self.faults]

    def begin_of(self, k: int) -> int | None:
        """The tick before which fault k begins; None while that is not known."""
        zero = self._zero[k]
        return None if zero is None else zero + _ticks(self.faults[k].spec.at, self._step)

    def begun(self, k: int, tick: int) -> bool:
        """Whether it has begun before this tick."""
        begin = self.begin_of(k)
        return begin is not None and begin <= tick

    def update(self, tick: int, value: Callable[[str], float]) -> None:
        """Before this tick; value: of a signal in the tick before. Begun faults let others begin in the same tick."""
        for k, fault in enumerate(self.faults):
            if self._zero[k] is not None or (k and not self.begun(k - 1, tick)):
                continue
            if fault.follows:
                self._zero[k] = self.begin_of(k - 1)
            elif fault.when is not None and tick:
                signal, factor, bound = fault.when
                if factor * (value(signal) - bound) > 0.0:
                    self._zero[k] = tick

    def active(self, tick: int) -> list[FaultInjection]:
        """The faults that act in this tick."""
        return [
            fault.spec
            for k, fault in enumerate(self.faults)
            if (begin := self.begin_of(k)) is not None and begin <= tick < begin + self._length(fault.spec)
        ]

    def waits(self, tick: int) -> bool:
        """Whether a condition is to be looked at before the tick after this one."""
        return any(
            zero is None and fault.when is not None and (k == 0 or self.begun(k - 1, tick + 1))
            for k, (zero, fault) in enumerate(zip(self._zero, self.faults, strict=True))
        )

    def next_change(self, tick: int) -> float:
        """The next tick after this one before which a fault is known to begin or to end; infinite without one."""
        known = [(begin, fault.spec) for k, fault in enumerate(self.faults) if (begin := self.begin_of(k)) is not None]
        times = [time for begin, spec in known for time in (begin, begin + self._length(spec))]
        return min((time for time in times if time > tick), default=math.inf)

    @property
    def untriggered(self) -> list[int]:
        """Faults whose condition never held, or that follow one of these."""
        return [k for k, zero in enumerate(self._zero) if zero is None]

    def _length(self, spec: FaultInjection) -> float:
        """Its ticks."""
        return math.inf if spec.duration == math.inf else _ticks(spec.duration, self._step)


def _ticks(seconds: float, step: float) -> int:
    return math.ceil(seconds / step - ROUNDING)
