"""Simulated motors behind the driver contract: what a rig runs on until a line of it names real ones."""

from cosim.drivers.sim.driver import PlantPort, SimDriver
from cosim.types import Array, Limits

__all__ = ["SimDriver", "load"]


def load(joints: tuple[str, ...], index: Array, limits: Limits, world: PlantPort) -> SimDriver:
    """The driver of the given joints; `index` (n,) are their places among all joints of the world."""
    return SimDriver(joints, index, limits, world)
