"""Simulated motors behind the driver contract."""

from cosim.drivers.sim.driver import PlantPort, SimDriver
from cosim.types import Array, Limits

__all__ = ["SimDriver", "load"]


def load(joints: tuple[str, ...], index: Array, limits: Limits, plant: PlantPort) -> SimDriver:
    """The driver of the given joints; index: (n,) their indices among all joints of the plant."""
    return SimDriver(joints, index, limits, plant)
