"""Simulated motors behind the driver contract."""

from cosim.core.types import Array, Limits
from cosim.plugins.drivers.sim.driver import PlantPort, SimDriver

__all__ = ["SimDriver", "load"]


def load(joints: tuple[str, ...], index: Array, limits: Limits, plant: PlantPort) -> SimDriver:
    """The driver of the given joints; index: (n,) their indices among all joints of the plant."""
    return SimDriver(joints, index, limits, plant)
