"""Controlled stop (IEC 60204-1 stop category 1): the references of all joints decelerate within the same time, and
motors are switched off at standstill. Other stops are immediate (category 0).
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from cosim.control.guard import Guard
from cosim.control.limits import CODES, LIMIT_OF, LIMITS, NOT_FINITE, SATURATE, STOP
from cosim.core import ops
from cosim.core.types import Array, Numeric

CONTROLLED = tuple(CODES[row.key] for row in LIMITS if row.stop_category == 1)
REQUESTED = 0.5  # the reason of a stop that was requested, below all fault codes
NEVER = 1e300  # s; the start of a stop that is not active
MAX_DURATION = 3.0  # s; a stop that would take longer is immediate
MAX_OVERRUN = 0.1  # rad or m; a joint that would stop further outside its limits is stopped immediately
SETTLING = 0.1  # s at standstill before motors are switched off


def while_stopping(guard: Guard) -> Guard:
    """The guard during a controlled stop: limits that would cause one saturate instead."""

    def saturating(key: str, actions: Array) -> Array:
        row = LIMIT_OF[key]
        saturates = row.stop_category == 1 and row.saturates_while_stopping and SATURATE in row.actions
        return np.where((actions == STOP) & saturates, SATURATE, actions)

    return dataclasses.replace(guard, actions={key: saturating(key, each) for key, each in guard.actions.items()})


class ControlledStop(NamedTuple):
    """References decelerate from position and velocity (n,) at time t [s] to standstill within duration [s]."""

    t: Numeric
    duration: Numeric
    position: Numeric
    velocity: Numeric

    @classmethod
    def of(cls, flat: Numeric) -> ControlledStop:
        """From one array (2 + 2 n,)."""
        n = (len(flat) - 2) // 2
        return cls(flat[0], flat[1], flat[2 : 2 + n], flat[2 + n :])

    @classmethod
    def inactive(cls, n: int) -> np.ndarray:
        """The flat array of n joints without a stop."""
        return np.concatenate([[NEVER, 1.0], np.zeros(2 * n)])

    def at(self, index: np.ndarray) -> ControlledStop:
        """The stop of the joints at these indices."""
        return ControlledStop(self.t, self.duration, self.position[index], self.velocity[index])

    def reference(self, sample: dict[str, Numeric], t: Numeric) -> dict[str, Numeric]:
        """The sample of a trajectory before the stop, then constant deceleration, then standstill."""
        u = ops.clip(t - self.t, 0.0, self.duration)
        remaining = 1.0 - u / self.duration
        decelerating = {
            "position": self.position + self.velocity * (u * (0.5 + 0.5 * remaining)),
            "velocity": self.velocity * remaining,
            "acceleration": ops.where(remaining > 0.0, -self.velocity / self.duration, 0.0),
            "effort": sample["effort"] * remaining,
        }
        return {name: ops.where(t >= self.t, value, sample[name]) for name, value in decelerating.items()}

    def finished(self, t: Numeric) -> Numeric:
        """Whether the stop and its settling time are over at t [s]."""
        return t >= self.t + self.duration + SETTLING

    @property
    def flat(self) -> Numeric:
        """As one array (2 + 2 n,)."""
        return ops.concatenate([ops.array([self.t, self.duration]), self.position, self.velocity])


def update_stop(
    stop: ControlledStop,
    t: Numeric,
    position: Numeric,
    velocity: Numeric,
    fault_codes: Numeric,
    fault: Numeric,
    requested: Numeric,
    reason: Numeric,
    first_codes: Numeric,
    deceleration: float,
    step: float,
) -> tuple[Numeric, ...]:
    """(stop (2 + 2 n,), reason (), first codes (n,), fault ()) after this tick.

    position, velocity (n,): of the references; fault_codes (n,), fault: of this tick; requested: whether a stop was
    requested; reason, first_codes: the cause of the stop, and the fault codes (n,) of the tick in which it began;
    deceleration [rad/s² or m/s²] > 0; step [s]. A fault code of stop category 1 starts a controlled stop and becomes
    the fault when the stop has finished. Any other code is the fault immediately; so is one whose stop would take
    longer than MAX_DURATION or move a joint further than MAX_OVERRUN outside its limits.
    """
    controlled: Numeric = np.zeros(len(first_codes))
    for code in CONTROLLED:
        controlled = ops.where(fault_codes == float(code), fault_codes, controlled)
    distance = velocity * velocity / (2.0 * deceleration)  # to standstill
    too_far = ops.logical_and(fault_codes == float(CODES["position"]), distance > MAX_OVERRUN)
    controlled = ops.where(too_far, 0.0, controlled)
    cause, immediate = requested * REQUESTED, ops.where(fault > float(NOT_FINITE), fault, 0.0)
    duration: Numeric = step
    for k in range(len(first_codes)):
        cause = ops.maximum(cause, controlled[k])
        immediate = ops.maximum(immediate, fault_codes[k] - controlled[k])
        duration = ops.maximum(duration, ops.abs(velocity[k]) / deceleration)
    starts = ops.logical_and(cause > 0.0, t < stop.t)
    immediate = ops.maximum(immediate, ops.where(ops.logical_and(starts, duration > MAX_DURATION), cause, 0.0))
    flat = ops.where(starts, ControlledStop(t, duration, position, velocity).flat, stop.flat)
    reason, first_codes = ops.where(starts, cause, reason), ops.where(starts, fault_codes, first_codes)
    finished = ops.where(ControlledStop.of(flat).finished(t), reason, 0.0)
    return flat, reason, first_codes, ops.where(immediate > 0.0, immediate, finished)
