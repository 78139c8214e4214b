"""Bumpless start: references begin at the measured state and blend into their trajectory without a jump."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.control.controlled_stop import ControlledStop
from cosim.core import ops
from cosim.core.ops import is_symbolic
from cosim.core.types import Numeric, Trajectory


class BumplessStart(NamedTuple):
    """What references add to their trajectory at the start, until it has faded out; each joint has its own times.

    A velocity offset fades out along a smoothstep, and nothing of it is returned: the reference runs behind or ahead
    by its integral. This and the offset of the position at the start fade out along a quintic, each within its time.
    Position, velocity and acceleration are continuous. See `start_blend.fading` for the times.

    t: time of arming [s], at which the trajectory begins; duration: until all of it has faded out [s]. Arrays (n,):
    turns: whole turns of a continuous joint, which stay [rad]; offset: of the position, with the integral of the
    velocity offset [rad or m]; drift: the velocity offset times the time in which it fades out [rad or m];
    offset_rate, drift_rate: 1 / the time in which they fade out [1/s]. offset and drift are 0 in a rig that starts in
    its initial state. stop: the controlled stop of these references, if the rig has one.
    """

    t: Numeric
    duration: Numeric
    turns: Numeric
    offset: Numeric
    offset_rate: Numeric
    drift: Numeric
    drift_rate: Numeric
    stop: ControlledStop | None = None

    @classmethod
    def of(cls, flat: Numeric, n: int) -> BumplessStart:
        """From one array (`size(n)`,), optionally followed by the array of a controlled stop of n joints."""
        vectors = [flat[begin : begin + n] for begin in range(2, cls.size(n), n)]
        stop = flat[cls.size(n) :]
        return cls._make([flat[0], flat[1], *vectors, ControlledStop.of(stop) if len(stop) else None])

    @classmethod
    def none(cls, n: int) -> BumplessStart:
        """Of n references that begin on their trajectories at t = 0."""
        return cls(0.0, 1.0, np.zeros(n), np.zeros(n), np.ones(n), np.zeros(n), np.ones(n))

    @classmethod
    def size(cls, n: int) -> int:
        """Of the flat array of n joints, without a controlled stop."""
        return 2 + n * len(VECTORS)

    @property
    def flat(self) -> Numeric:
        """As one array, without the controlled stop."""
        return ops.concatenate([ops.array([self.t, self.duration]), *(getattr(self, name) for name in VECTORS)])

    def at(self, index: np.ndarray) -> BumplessStart:
        """The start of the joints at these indices."""
        stop = None if self.stop is None else self.stop.at(index)
        return self._replace(**{name: getattr(self, name)[index] for name in VECTORS}, stop=stop)

    def reference(self, trajectory: Trajectory, t: Numeric) -> dict[str, Numeric]:
        """The reference at t [s]: position, velocity, acceleration and effort, (n,) each."""
        sample = dict(trajectory.sample(t - self.t))
        if is_symbolic(self.offset) or self.offset.any() or self.drift.any() or self.turns.any():
            sample |= {name: sample[name] + added for name, added in self.added(t).items()}
        return sample if self.stop is None else self.stop.reference(sample, t)

    def added(self, t: Numeric) -> dict[str, Numeric]:
        """Position, velocity and acceleration (n,) that the reference adds to its trajectory at t [s]; (k, n) at times
        (k, 1)."""
        elapsed = t - self.t
        r = ops.maximum(1.0 - elapsed * self.offset_rate, 0.0)
        square, speed = r * r, self.offset * self.offset_rate
        w = r - square
        # 10r³ − 15r⁴ + 6r⁵ and its derivatives, from 1 at r = 1 to 0 at r = 0
        position = self.offset * (square * r * (10.0 + r * (6.0 * r - 15.0)))
        velocity, acceleration = 30.0 * speed * (w * w), 60.0 * (speed * self.offset_rate) * (w - 2.0 * r * w)
        r = ops.maximum(1.0 - elapsed * self.drift_rate, 0.0)
        square, speed = r * r, self.drift * self.drift_rate
        # r³ − r⁴/2 and its derivatives: the first one is the smoothstep, from 1 at r = 1 to 0 at r = 0
        return {
            "position": position - self.drift * (square * (r - 0.5 * square)) + self.turns,
            "velocity": speed * (square * (3.0 - 2.0 * r)) - velocity,
            "acceleration": acceleration - 6.0 * (speed * self.drift_rate) * (r - square),
        }


VECTORS = BumplessStart._fields[2:-1]  # (n,)
