"""Drivers: one folder per family of hardware, and `sim`, the simulated motors.

A rig names a folder; its `load(params, context)` returns a `HardwareDriver`, see
`cosim.core.driver_contract`. Joints without a driver have simulated motors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cosim.core.driver_contract import Driver
    from cosim.core.types import Array, Limits
    from cosim.plugins.drivers.sim.driver import PlantPort


def simulated(joints: tuple[str, ...], index: Array, limits: Limits, plant: PlantPort) -> Driver:
    """The driver of joints without a real drive; `index` (n,) are their places among all joints of the plant."""
    from cosim.plugins.drivers.sim import load

    return load(joints, index, limits, plant)
