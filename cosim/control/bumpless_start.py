"""Where references begin, and where they come to rest: what a run adds to the trajectories of its rig."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cosim import ops
from cosim.control.controlled_stop import ControlledStop
from cosim.ops import is_symbolic


class BumplessStart(NamedTuple):
    """The state from which references begin: they lead from there to the trajectory within `length` s.

    t: when the rig was armed [s], the trajectory's own t = 0; position, velocity (n,): measured then minus those of the
    trajectory. Both are 0 in a rig that starts as its file says. halting: how the references come to rest, in a rig
    that stops so.
    """

    t: Any
    length: Any
    position: Any
    velocity: Any
    halting: ControlledStop | None = None

    @classmethod
    def of(cls, flat: Any, n: int) -> BumplessStart:
        """From one array (2 + 2 n,), that of the halting of n joints after it or not."""
        own, rest = flat[: 2 + 2 * n], flat[2 + 2 * n :]
        return cls(own[0], own[1], own[2 : 2 + n], own[2 + n :], ControlledStop.of(rest) if len(rest) else None)

    def at(self, index: np.ndarray) -> BumplessStart:
        halting = None if self.halting is None else self.halting.at(index)
        return BumplessStart(self.t, self.length, self.position[index], self.velocity[index], halting)

    def reference(self, trajectory: Any, t: Any) -> dict[str, Any]:
        """What is to be followed at t."""
        sample = self._led(trajectory, t)
        return sample if self.halting is None else self.halting.reference(sample, t)

    def _led(self, trajectory: Any, t: Any) -> dict[str, Any]:
        """The trajectory's sample at t, with the difference at the start faded out by a quintic in time, so that
        position, velocity and acceleration go over without a jump (quintic Hermite polynomials)."""
        sample = dict(trajectory.sample(t - self.t))
        if not (is_symbolic(self.position) or self.position.any() or self.velocity.any()):
            return sample  # numbers that change nothing
        u, T = ops.clip((t - self.t) / self.length, 0.0, 1.0), self.length
        left = 1.0 - u
        value, slope = left * left * left * (1.0 + u * (3.0 + 6.0 * u)), u * left * left * left * (1.0 + 3.0 * u)
        value_1, slope_1 = -30.0 * u * u * left * left, left * left * (1.0 + u * (2.0 - 15.0 * u))
        value_2, slope_2 = -60.0 * u * left * (1.0 - 2.0 * u), -12.0 * u * left * (3.0 - 5.0 * u)
        e, de = self.position, self.velocity
        sample["position"] = sample["position"] + (e * value + de * (T * slope))
        sample["velocity"] = sample["velocity"] + (e * (value_1 / T) + de * slope_1)
        sample["acceleration"] = sample["acceleration"] + (e * (value_2 / (T * T)) + de * (slope_2 / T))
        return sample
