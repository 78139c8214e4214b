"""A driver whose motors are simulated."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from cosim.core.errors import RunError
from cosim.core.types import Array, JointCommand, JointState, Limits, requested_effort


class PlantPort(Protocol):
    """The simulated part of a rig, as its simulated motors access it."""

    t_ns: int
    sample: tuple[Array, ...]  # the last measurement: position, velocity, effort

    def measure(self) -> tuple[Array, ...]: ...

    def request(self, index: Array, effort: Array) -> None: ...


class SimDriver:
    """The simulated motors of some joints of the plant.

    As on hardware, motors give effort only after `enable` and until `stop`.
    """

    modes = frozenset({"position", "velocity", "effort"})

    def __init__(self, joints: tuple[str, ...], index: Array, limits: Limits, plant: PlantPort) -> None:
        """index: (n,) the joints' indices in the order of the plant."""
        self.joints, self.limits = joints, limits
        self._index, self._plant = index, plant
        self._enabled = False

    def open(self) -> None:
        self._enabled = False

    def enable(self, mode: str) -> None:
        """Raises RunError for a mode that is not in `modes`."""
        if mode not in self.modes:
            raise RunError(f"simulated motors have no mode '{mode}'; use one of {', '.join(sorted(self.modes))}")
        self._enabled = True

    def read(self, out: JointState, deadline_ns: int) -> None:
        """The sample at the plant's time; a simulated bus is never late."""
        position, velocity, effort = (values[self._index] for values in self._plant.measure())
        out.position[:], out.velocity[:], out.effort[:] = position, velocity, effort
        out.t_ns = self._plant.t_ns

    def write(self, cmd: JointCommand, deadline_ns: int) -> None:
        """Request the effort that follows from the last measurement, as in a drive. Raises RunError before `enable`."""
        if not self._enabled:
            raise RunError(f"simulated motors of {', '.join(self.joints)} are off; enable the driver first")
        position, velocity, _ = (values[self._index] for values in self._plant.sample)
        self._plant.request(self._index, requested_effort(vars(cmd), {"position": position, "velocity": velocity}))

    def stop(self) -> None:
        self._enabled = False
        self._plant.request(self._index, np.zeros(len(self._index)))

    def close(self) -> None:
        self.stop()
