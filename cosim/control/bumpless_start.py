"""Bumpless start: references begin at the measured state and lead to their trajectory without a jump."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cosim import ops
from cosim.control.controlled_stop import ControlledStop
from cosim.ops import is_symbolic
from cosim.types import Trajectory


class BumplessStart(NamedTuple):
    """The offset between references and trajectory at the start; it fades out within duration [s].

    t: time of arming [s], the trajectory's own t = 0; position, velocity (n,): measured then minus those of the
    trajectory. Both are 0 in a rig that starts in its initial state. stop: the controlled stop of these references, in
    a rig that has one.
    """

    t: Any
    duration: Any
    position: Any
    velocity: Any
    stop: ControlledStop | None = None

    @classmethod
    def of(cls, flat: Any, n: int) -> BumplessStart:
        """From one array (2 + 2 n,), with or without that of the controlled stop of n joints after it."""
        start, stop = flat[: 2 + 2 * n], flat[2 + 2 * n :]
        return cls(start[0], start[1], start[2 : 2 + n], start[2 + n :], ControlledStop.of(stop) if len(stop) else None)

    def at(self, index: np.ndarray) -> BumplessStart:
        """The start of the joints at these indices."""
        stop = None if self.stop is None else self.stop.at(index)
        return BumplessStart(self.t, self.duration, self.position[index], self.velocity[index], stop)

    def reference(self, trajectory: Trajectory, t: Any) -> dict[str, Any]:
        """The reference at t [s]: position, velocity, acceleration and effort, (n,) each."""
        sample = self._blended(trajectory, t)
        return sample if self.stop is None else self.stop.reference(sample, t)

    def _blended(self, trajectory: Trajectory, t: Any) -> dict[str, Any]:
        """The trajectory's sample at t, with the offset faded out by a quintic in time, so that position, velocity and
        acceleration have no jump (quintic Hermite polynomials)."""
        sample = dict(trajectory.sample(t - self.t))
        if not (is_symbolic(self.position) or self.position.any() or self.velocity.any()):
            return sample  # there is no offset
        u, T = ops.clip((t - self.t) / self.duration, 0.0, 1.0), self.duration
        left = 1.0 - u
        value, slope = left * left * left * (1.0 + u * (3.0 + 6.0 * u)), u * left * left * left * (1.0 + 3.0 * u)
        value_1, slope_1 = -30.0 * u * u * left * left, left * left * (1.0 + u * (2.0 - 15.0 * u))
        value_2, slope_2 = -60.0 * u * left * (1.0 - 2.0 * u), -12.0 * u * left * (3.0 - 5.0 * u)
        e, de = self.position, self.velocity
        sample["position"] = sample["position"] + (e * value + de * (T * slope))
        sample["velocity"] = sample["velocity"] + (e * (value_1 / T) + de * slope_1)
        sample["acceleration"] = sample["acceleration"] + (e * (value_2 / (T * T)) + de * (slope_2 / T))
        return sample
