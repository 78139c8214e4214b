"""Bumpless start: references begin at the measured state and blend into their trajectory without a jump."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim import ops
from cosim.control.controlled_stop import ControlledStop
from cosim.ops import is_symbolic
from cosim.types import Numeric, Trajectory


class BumplessStart(NamedTuple):
    """The offset between references and trajectory at the start; it fades out within duration [s].

    t: time of arming [s], at which the trajectory begins; position, velocity (n,): measured at that time minus those of
    the trajectory; 0 in a rig that starts in its initial state. stop: the controlled stop of these references, if the
    rig has one.
    """

    t: Numeric
    duration: Numeric
    position: Numeric
    velocity: Numeric
    stop: ControlledStop | None = None

    @classmethod
    def of(cls, flat: Numeric, n: int) -> BumplessStart:
        """From one array (2 + 2 n,), optionally followed by that of a controlled stop of n joints."""
        start, stop = flat[: 2 + 2 * n], flat[2 + 2 * n :]
        return cls(start[0], start[1], start[2 : 2 + n], start[2 + n :], ControlledStop.of(stop) if len(stop) else None)

    def at(self, index: np.ndarray) -> BumplessStart:
        """The start of the joints at these indices."""
        stop = None if self.stop is None else self.stop.at(index)
        return BumplessStart(self.t, self.duration, self.position[index], self.velocity[index], stop)

    def reference(self, trajectory: Trajectory, t: Numeric) -> dict[str, Numeric]:
        """The reference at t [s]: position, velocity, acceleration and effort, (n,) each."""
        sample = self._blended(trajectory, t)
        return sample if self.stop is None else self.stop.reference(sample, t)

    def _blended(self, trajectory: Trajectory, t: Numeric) -> dict[str, Numeric]:
        """The trajectory's sample at t plus the offset, which quintic Hermite polynomials fade out: position, velocity
        and acceleration are continuous."""
        sample = dict(trajectory.sample(t - self.t))
        if not (is_symbolic(self.position) or self.position.any() or self.velocity.any()):
            return sample
        u, T = ops.clip((t - self.t) / self.duration, 0.0, 1.0), self.duration
        rest = 1.0 - u
        value, slope = rest * rest * rest * (1.0 + u * (3.0 + 6.0 * u)), u * rest * rest * rest * (1.0 + 3.0 * u)
        value_1, slope_1 = -30.0 * u * u * rest * rest, rest * rest * (1.0 + u * (2.0 - 15.0 * u))
        value_2, slope_2 = -60.0 * u * rest * (1.0 - 2.0 * u), -12.0 * u * rest * (3.0 - 5.0 * u)
        e, de = self.position, self.velocity
        sample["position"] = sample["position"] + (e * value + de * (T * slope))
        sample["velocity"] = sample["velocity"] + (e * (value_1 / T) + de * slope_1)
        sample["acceleration"] = sample["acceleration"] + (e * (value_2 / (T * T)) + de * (slope_2 / T))
        return sample
