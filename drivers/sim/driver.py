"""A driver whose motors are simulated."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from cosim.errors import RunError
from cosim.types import Array, JointCommand, JointState, Limits, requested_effort


class PlantPort(Protocol):
    """What simulated motors live in: the simulated part of a rig."""

    t_ns: int
    sample: tuple[Array, ...]  # what was measured last

    def measure(self) -> tuple[Array, ...]: ...

    def request(self, index: Array, effort: Array) -> None: ...


class SimDriver:
    """The simulated motors of some joints of a world.

    As on hardware, motors turn only after `enable`, and a stopped driver asks its motors for nothing.
    """

    modes = frozenset({"position", "velocity", "effort"})

    def __init__(self, joints: tuple[str, ...], index: Array, limits: Limits, world: PlantPort) -> None:
        """index: (n,) the joints' places in the world's order."""
        self.joints, self.limits = joints, limits
        self._index, self._world = index, world
        self._enabled = False

    def open(self) -> None:
        self._enabled = False

    def enable(self, mode: str) -> None:
        """Raises RunError for a mode that is not in `modes`."""
        if mode not in self.modes:
            raise RunError(f"simulated motors have no mode '{mode}'; use one of {', '.join(sorted(self.modes))}")
        self._enabled = True

    def read(self, out: JointState, deadline_ns: int) -> None:
        """The sample of the world's time; a simulated bus is never late."""
        position, velocity, effort = (values[self._index] for values in self._world.measure())
        out.position[:], out.velocity[:], out.effort[:] = position, velocity, effort
        out.t_ns = self._world.t_ns

    def write(self, cmd: JointCommand, deadline_ns: int) -> None:
        """By what was measured last, as the drive itself does. Raises RunError before `enable`."""
        if not self._enabled:
            raise RunError(f"simulated motors of {', '.join(self.joints)} are off; enable the driver first")
        position, velocity, _ = (values[self._index] for values in self._world.sample)
        self._world.request(self._index, requested_effort(vars(cmd), {"position": position, "velocity": velocity}))

    def stop(self) -> None:
        self._enabled = False
        self._world.request(self._index, np.zeros(len(self._index)))

    def close(self) -> None:
        self.stop()
