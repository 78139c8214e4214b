"""Fault injection at emulated drives: on their connection, supply or motors, at a time or on a condition."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from cosim.core.driver_contract import BusItem


@dataclass(frozen=True)
class FaultInjection:
    """A fault on the connection of `driver` or at the motor of `joint`, `at` s after the start or after `signal` first
    went beyond `bound` (factor · (signal − bound) > 0) in a run, for `duration` s."""

    kind: str
    driver: str
    joint: str
    at: float
    signal: str
    factor: float
    bound: float
    duration: float
    fraction: float
    delay: float
    size: float
    cause: str
    rate: float = 0.0
    supply: float = 1.0
    temperature: float = 0.0
    scale: float = 1.0


@dataclass
class InjectedFault:
    """A fault and its state."""

    spec: FaultInjection
    begun: float | None = None  # s, from when `at` counts
    reported: bool = False  # as active

    def active(self, t: float, running: bool, value: Callable[[str], float]) -> bool:
        """Whether it is active at t [s]; running: a run has begun, conditions are evaluated; value: of a signal."""
        spec = self.spec
        if self.begun is None:
            if not spec.signal:
                self.begun = 0.0
            elif running and spec.factor * (value(spec.signal) - spec.bound) > 0.0:
                self.begun = t
        return self.begun is not None and spec.at <= t - self.begun < spec.at + spec.duration


class FaultyConnection:
    """The connection of a driver with injected faults; items (frames or bytes) pass in both directions."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.active: dict[str, FaultInjection] = {}  # by kind
        self._late: list[tuple[int, int, BusItem]] = []  # (due time [ns], inward, item)
        self._behind: dict[bool, list[BusItem]] = {True: [], False: []}  # inward -> what the next item overtakes

    def begin(self, specs: list[FaultInjection]) -> None:
        """Make exactly these faults active."""
        self.active = {spec.kind: spec for spec in specs}

    @property
    def cut(self) -> bool:
        """Whether no item passes."""
        return "bus_off" in self.active or "power_loss" in self.active

    def through(self, items: list[BusItem], t_ns: int, inward: bool) -> list[BusItem]:
        """The items that arrive now; delayed ones arrive in `due`."""
        if not self.active:
            return items
        return [] if self.cut else [item for each in items for item in self._one(each, t_ns, inward)]

    def due(self, t_ns: int, inward: bool) -> list[BusItem]:
        """Delayed items that arrive by now, and what no other item has overtaken meanwhile."""
        self._late += [(t_ns, inward, item) for item in self._overtaken(inward)]
        if not self._late:
            return []
        arrived = [item for when, direction, item in self._late if direction == inward and when <= t_ns]
        self._late = [entry for entry in self._late if entry[1] != inward or entry[0] > t_ns]
        return [] if self.cut else arrived

    def _one(self, item: BusItem, t_ns: int, inward: bool) -> list[BusItem]:
        hit = {kind for kind, spec in self.active.items() if self._random.random() < spec.fraction}
        if "drop" in hit:
            return []
        if "corrupt" in hit:
            item = _corrupted(item, self._random)
        copies = [item, item] if "duplicate" in hit else [item]
        late = [self.active[kind].delay for kind in ("delay", "late_answers")[: 1 if inward else 2] if kind in hit]
        if late:
            when = t_ns + round(sum(late) * 1e9)
            self._late += [(when, inward, copy) for copy in copies]
            return []
        if "reorder" in hit and not self._behind[inward]:
            self._behind[inward] = copies
            return []
        return [*copies, *self._overtaken(inward)]

    def _overtaken(self, inward: bool) -> list[BusItem]:
        items, self._behind[inward] = self._behind[inward], []
        return items


def _corrupted(item: BusItem, generator: random.Random) -> BusItem:
    """The item with one bit of its data inverted."""
    data = bytearray(item if isinstance(item, bytes) else item.data)
    if not data:
        return item
    data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    return bytes(data) if isinstance(item, bytes) else item._replace(data=bytes(data))
