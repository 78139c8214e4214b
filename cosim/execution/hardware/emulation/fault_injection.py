"""Fault injection at emulated drives: on their connection, supply or motors, at a time or on a condition.

One table has the kinds of faults with their keys, for emulated drives and for scenarios.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from cosim.core.driver_contract import BusItem

OnBus = Literal[
    "drop",
    "delay",
    "late_answers",
    "duplicate",
    "corrupt",
    "reorder",
    "bus_off",
    "stale_heartbeat",
    "brown_out",
    "power_loss",
]
AtJoint = Literal[
    "encoder_jump",
    "encoder_drift",
    "encoder_noise",
    "encoder_freeze",
    "encoder_nan",
    "coupling_slip",
    "hot_winding",
    "motor_fault",
    "position_unit",
    "velocity_unit",
    "effort_unit",
]
FaultCause = Literal["overtemperature", "overcurrent", "undervoltage", "encoder"]


class FaultKind(NamedTuple):
    """What a kind of fault needs, and where it can be injected. keys: those that it has besides its place and its time;
    simulated: whether a joint without a drive on a bus can have it."""

    keys: tuple[str, ...] = ()
    simulated: bool = False


KINDS: dict[str, FaultKind] = {
    "drop": FaultKind(("fraction",)),
    "delay": FaultKind(("delay",)),
    "late_answers": FaultKind(("delay",)),
    "duplicate": FaultKind(("fraction",)),
    "corrupt": FaultKind(("fraction",)),
    "reorder": FaultKind(("fraction",)),
    "bus_off": FaultKind(),
    "stale_heartbeat": FaultKind(),
    "brown_out": FaultKind(("supply",), simulated=True),
    "power_loss": FaultKind(simulated=True),
    "encoder_jump": FaultKind(("size",), simulated=True),
    "encoder_drift": FaultKind(("rate",), simulated=True),
    "encoder_noise": FaultKind(("size",), simulated=True),
    "encoder_freeze": FaultKind(simulated=True),
    "encoder_nan": FaultKind(simulated=True),
    "coupling_slip": FaultKind(("rate",), simulated=True),
    "hot_winding": FaultKind(("temperature",), simulated=True),
    "motor_fault": FaultKind(("cause",), simulated=True),
    "position_unit": FaultKind(("scale",)),
    "velocity_unit": FaultKind(("scale",)),
    "effort_unit": FaultKind(("scale",)),
}
assert tuple(KINDS) == (*get_args(OnBus), *get_args(AtJoint))

# key -> the kinds that have it
ONLY: dict[str, tuple[str, ...]] = {
    key: tuple(kind for kind, row in KINDS.items() if key in row.keys)
    for key in dict.fromkeys(key for row in KINDS.values() for key in row.keys)
}

# copper: the resistance is 0 at −235 °C (IEC 60034-1)
COPPER, COLD = 235.0, 25.0  # K, °C


def winding_resistance(temperature: float) -> float:
    """Of a copper winding at a temperature [°C], relative to that at 25 °C."""
    return (COPPER + temperature) / (COPPER + COLD)


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
