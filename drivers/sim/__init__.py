"""Simulated motors behind the driver contract: what a rig runs on until a line of it names real ones."""

from drivers.sim.driver import SimDriver

__all__ = ["SimDriver", "load"]


def load(joints, index, limits, world):
    """The driver of the given joints of a simulated world (`cosim.world.World`)."""
    return SimDriver(joints, index, limits, world)
