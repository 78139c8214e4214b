"""The control of joints that are commissioned: a slow reference, and a loop whose gains follow from the model.

In effort mode a joint is held by kp (r − q) + kd (ṙ − q̇) + ki ∫ (r − q) dt + g(q) with kp = J ω², kd = 2 J ω and
ki = J ω³ / 4, J and g by the model: critically damped at the frequency ω. Drives in velocity or position mode
close their own loops.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from cosim.apps.commissioning.expected import ExpectedJoint
from cosim.apps.commissioning.session import LiveJoints
from cosim.core.types import Array

FREQUENCY = 2.5  # Hz
PER_PERIOD = 0.15  # largest ω · period
INSIDE = 0.1  # s, times the speed: how far before its limit the reference of a joint stops
OUTER = 5.0  # 1/s, of the position error in velocity mode


class HoldingLoop:
    """Commands of all live joints that follow their references (n,)."""

    def __init__(self, live: LiveJoints, mode: str, expect: Mapping[str, ExpectedJoint]) -> None:
        inertia = np.array([expect[name].inertia[1] for name in live.names])
        omega = min(2.0 * math.pi * FREQUENCY, PER_PERIOD / live.period)
        self._live, self._mode = live, mode
        self._kp, self._kd, self._ki = inertia * omega**2, 2.0 * inertia * omega, inertia * omega**3 / 4.0
        self._gravity = np.array([expect[name].gravity for name in live.names])
        self._integral = np.zeros(len(live.names))
        self.reference = live.position.copy()

    def follow(self, velocity: Sequence[float] | Array) -> None:
        """Move the references at this velocity (n,) since the last tick, and send the commands. Raises RunError."""
        live, rate = self._live, np.asarray(velocity, dtype=float)
        limits, inside = live.guard.bounds, INSIDE * np.abs(rate)
        wanted = self.reference + rate * live.dt
        # a reference beyond may come back
        lowest = np.minimum(limits["lower"] + inside, self.reference)
        highest = np.maximum(limits["upper"] - inside, self.reference)
        moved = np.clip(wanted, lowest, highest)
        rate = np.where(moved == self.reference, 0.0, rate)
        self.reference = moved
        error = self.reference - live.position
        if self._mode == "effort":
            bound = limits["effort"]
            self._integral = np.clip(self._integral + self._ki * error * live.dt, -bound, bound)
            effort = self._gravity + self._integral
            live.write(self.reference, position=self.reference, velocity=rate, kp=self._kp, kd=self._kd, effort=effort)
        elif self._mode == "velocity":
            bound = 0.5 * limits["velocity"]
            self._integral = np.clip(self._integral + 0.25 * OUTER**2 * error * live.dt, -bound, bound)
            live.write(self.reference, position=self.reference, velocity=rate + OUTER * error + self._integral)
        else:
            live.write(self.reference, position=self.reference, velocity=rate)
