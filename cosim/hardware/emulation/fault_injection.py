"""Things that go wrong at emulated drives: on their line, with their power, at a motor; at a time or on a condition."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FaultInjection:
    """What goes wrong, on the line of `driver` or at the motor of `joint`, `at` s after the start or after `signal`
    first went beyond `bound` (factor · (signal − bound) > 0), for `lasts` s."""

    kind: str
    driver: str
    joint: str
    at: float
    signal: str
    factor: float
    bound: float
    lasts: float
    share: float
    delay: float
    size: float
    trouble: str


@dataclass
class InjectedFault:
    """One of them: whether it is there now."""

    spec: FaultInjection
    begun: float | None = None  # s, when its time began to count
    told: bool = False

    def active(self, t: float, value: Callable[[str], float]) -> bool:
        """At t [s]; value: of a signal."""
        spec = self.spec
        if self.begun is None and (not spec.signal or spec.factor * (value(spec.signal) - spec.bound) > 0.0):
            self.begun = t if spec.signal else 0.0
        return self.begun is not None and spec.at <= t - self.begun < spec.at + spec.lasts


class FaultyConnection:
    """The line of a driver with what is wrong with it: items (frames or bytes) go through in both directions."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.active: dict[str, FaultInjection] = {}  # by kind
        self._late: list[tuple[int, int, Any]] = []  # (when due [ns], direction, item)

    def begin(self, specs: list[FaultInjection]) -> None:
        """These are wrong from now on."""
        self.active = {spec.kind: spec for spec in specs}

    @property
    def cut(self) -> bool:
        """Nothing gets through."""
        return "bus_off" in self.active or "power_loss" in self.active

    def through(self, items: list[Any], t_ns: int, inward: bool) -> list[Any]:
        """What arrives of these items now; those that are late arrive in `due`."""
        if not self.active:
            return items
        return [] if self.cut else [item for each in items for item in self._one(each, t_ns, inward)]

    def due(self, t_ns: int, inward: bool) -> list[Any]:
        """Items that were late and arrive by now."""
        if not self._late:
            return []
        here = [item for when, way, item in self._late if way == inward and when <= t_ns]
        self._late = [entry for entry in self._late if entry[1] != inward or entry[0] > t_ns]
        return [] if self.cut else here

    def _one(self, item: Any, t_ns: int, inward: bool) -> list[Any]:
        hit = {kind for kind, spec in self.active.items() if self.dice.random() < spec.share}
        if "drop" in hit:
            return []
        if "corrupt" in hit:
            item = _corrupted(item, self.dice)
        copies = [item, item] if "duplicate" in hit else [item]
        if "delay" in hit:
            when = t_ns + round(self.active["delay"].delay * 1e9)
            self._late += [(when, inward, copy) for copy in copies]
            return []
        return copies


def _corrupted(item: Any, dice: random.Random) -> Any:
    """The same with one bit of its data turned over."""
    data = bytearray(item if isinstance(item, bytes) else item.data)
    if not data:
        return item
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(data) if isinstance(item, bytes) else item._replace(data=bytes(data))
