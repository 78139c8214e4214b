"""Coming to rest under control: references that slow down from where they are, each joint in the same time."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from cosim import guard, ops

# verdicts that can wait until the joints rest: the drives obey, and are to go on obeying
PATIENT = (guard.EFFORT, guard.RATE, guard.POWER, guard.TEMPERATURE, guard.POSITION)
ASKED = 0.5  # no verdict: somebody asked for a stop
NEVER = 1e300  # s; a time that does not come
SETTLING = 0.1  # s at rest before motors are switched off


def cutting(held: guard.Guard) -> guard.Guard:
    """What is commanded while the joints come to rest: what would have stopped the run, and waits, saturates."""
    patient = {guard.KINDS[code - 1] for code in PATIENT}
    softer = {
        kind: np.where((actions == guard.STOP) & (kind in patient), guard.SATURATE, actions)
        for kind, actions in held.actions.items()
    }
    return dataclasses.replace(held, actions=softer)


class Halting(NamedTuple):
    """References slow down from position and velocity (n,), which they have at t [s], to rest within `length` [s]."""

    t: Any
    length: Any
    position: Any
    velocity: Any

    @classmethod
    def of(cls, flat: Any) -> Halting:
        """From one array (2 + 2 n,)."""
        n = (len(flat) - 2) // 2
        return cls(flat[0], flat[1], flat[2 : 2 + n], flat[2 + n :])

    @classmethod
    def none(cls, n: int) -> np.ndarray:
        """The flat array of n joints that are not to stop."""
        return np.concatenate([[NEVER, 1.0], np.zeros(2 * n)])

    def at(self, index: np.ndarray) -> Halting:
        return Halting(self.t, self.length, self.position[index], self.velocity[index])

    def reference(self, sample: dict[str, Any], t: Any) -> dict[str, Any]:
        """The sample of a trajectory until then; afterwards constant deceleration, and rest."""
        u = ops.clip(t - self.t, 0.0, self.length)
        left = 1.0 - u / self.length
        slowing = {
            "position": self.position + self.velocity * (u * (0.5 + 0.5 * left)),
            "velocity": self.velocity * left,
            "acceleration": ops.where(left > 0.0, -self.velocity / self.length, 0.0),
            "effort": sample["effort"] * left,
        }
        return {what: ops.where(t >= self.t, value, sample[what]) for what, value in slowing.items()}

    def over(self, t: Any) -> Any:
        """Whether everything rests by t."""
        return t >= self.t + self.length + SETTLING
