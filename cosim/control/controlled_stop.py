"""Coming to rest under control: references that slow down from where they are, each joint in the same time."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from cosim import ops
from cosim.control import guard

# verdicts that can wait until the joints rest: the drives obey, and are to go on obeying
PATIENT = (guard.EFFORT, guard.RATE, guard.POWER, guard.TEMPERATURE, guard.POSITION)
ASKED = 0.5  # no verdict: somebody asked for a stop
NEVER = 1e300  # s; a time that does not come
LONGEST = 3.0  # s; a stop that would take longer is one at once
OVERRUN = 0.1  # rad or m; a joint that would come to rest further beyond its limits is stopped at once
SETTLING = 0.1  # s at rest before motors are switched off


def cutting(held: guard.Guard) -> guard.Guard:
    """What is commanded while the joints come to rest: what would have stopped the run, and waits, saturates. Not so
    positions: outside them a joint is led by its reference, and must be free to brake to either side."""
    patient = {guard.KINDS[code - 1] for code in PATIENT} - {"position"}
    softer = {
        kind: np.where((actions == guard.STOP) & (kind in patient), guard.SATURATE, actions)
        for kind, actions in held.actions.items()
    }
    return dataclasses.replace(held, actions=softer)


class ControlledStop(NamedTuple):
    """References slow down from position and velocity (n,), which they have at t [s], to rest within `length` [s]."""

    t: Any
    length: Any
    position: Any
    velocity: Any

    @classmethod
    def of(cls, flat: Any) -> ControlledStop:
        """From one array (2 + 2 n,)."""
        n = (len(flat) - 2) // 2
        return cls(flat[0], flat[1], flat[2 : 2 + n], flat[2 + n :])

    @classmethod
    def none(cls, n: int) -> np.ndarray:
        """The flat array of n joints that are not to stop."""
        return np.concatenate([[NEVER, 1.0], np.zeros(2 * n)])

    def at(self, index: np.ndarray) -> ControlledStop:
        return ControlledStop(self.t, self.length, self.position[index], self.velocity[index])

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

    @property
    def flat(self) -> Any:
        """As one array (2 + 2 n,)."""
        return ops.concatenate([ops.array([self.t, self.length]), self.position, self.velocity])


def halted(
    halting: ControlledStop,
    t: Any,
    position: Any,
    velocity: Any,
    verdict: Any,
    fault: Any,
    asked: Any,
    reason: Any,
    first: Any,
    deceleration: float,
    step: float,
) -> tuple[Any, ...]:
    """(halting (2 + 2 n,), reason (), first (n,), fault ()): what a tick makes of the stops that it found.

    position, velocity (n,): of the references; verdict (n,), fault: of this tick; asked: whether somebody asked for a
    stop; reason, first: what began the halting before, and the verdicts (n,) of that tick; deceleration [rad/s² or
    m/s²] > 0; step [s]. A stop that can wait begins to bring the joints to rest, and is the fault when they do; any
    other is the fault at once, as is one that would take longer than LONGEST, or lead a joint further than OVERRUN.
    """
    patient: Any = np.zeros(len(first))
    for code in PATIENT:
        patient = ops.where(verdict == float(code), verdict, patient)
    way = velocity * velocity / (2.0 * deceleration)  # to rest
    too_far = ops.logical_and(verdict == float(guard.POSITION), way > OVERRUN)
    patient = ops.where(too_far, 0.0, patient)
    wanted, hard = asked * ASKED, ops.where(fault > float(guard.NOT_FINITE), fault, 0.0)
    length: Any = step
    for k in range(len(first)):
        wanted, hard = ops.maximum(wanted, patient[k]), ops.maximum(hard, verdict[k] - patient[k])
        length = ops.maximum(length, ops.absolute(velocity[k]) / deceleration)
    begins = ops.logical_and(wanted > 0.0, t < halting.t)
    hard = ops.maximum(hard, ops.where(ops.logical_and(begins, length > LONGEST), wanted, 0.0))
    flat = ops.where(begins, ControlledStop(t, length, position, velocity).flat, halting.flat)
    reason, first = ops.where(begins, wanted, reason), ops.where(begins, verdict, first)
    rested = ops.where(ControlledStop.of(flat).over(t), reason, 0.0)
    return flat, reason, first, ops.where(hard > 0.0, hard, rested)
