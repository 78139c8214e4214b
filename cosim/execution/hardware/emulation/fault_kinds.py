"""The kinds of faults that can be injected, with their keys: one table for emulated drives and for scenarios."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

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
    """keys: those that it has besides its place and its time; simulated: whether a joint without a drive on a bus can
    have it."""

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
