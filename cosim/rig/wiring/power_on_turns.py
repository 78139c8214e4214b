"""What is known of the turn on which each real drive is, after it was without power."""

from __future__ import annotations

from collections.abc import Collection

from cosim.core.driver_contract import Turns
from cosim.core.units import TURN
from cosim.rig.reading.driver_family import turns_at_power_off
from cosim.rig.sections.drivers import DriverSpec

TOLERANCE = 1e-9  # relative, of a range of exactly one turn


def turns_of(driver: DriverSpec, name: str, span: float, continuous: Collection[str]) -> Turns:
    """Of the drive of a joint. span: of its limits [rad or m]; continuous: joints for which whole turns are the same.

    A load motor has no position of its own; a drive that keeps its turns, or is homed, knows its place.
    """
    wired = driver.wiring[name]
    if driver.loads or wired.turns == "kept" or wired.homed or turns_at_power_off(driver.family) == "kept":
        return "known"
    if name in continuous and float(wired.ratio) == 1.0:
        return "known"
    return "ambiguous" if span * abs(float(wired.ratio)) > TURN * (1.0 + TOLERANCE) else "folded"
