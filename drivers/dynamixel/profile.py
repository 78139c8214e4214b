"""The profile of an emulated drive: the trajectory from the present setpoint to a goal.

Source: e-Manual, "Profile Acceleration (108)" and "Profile Velocity (112)". Without a profile velocity a goal position
is a step, without a profile acceleration the velocity is (rectangular profile). In the velocity-based profile the
registers are a velocity and an acceleration, in the time-based one the durations of the motion and of its acceleration
[ms].
"""

from __future__ import annotations

import math

from cosim.plugins.drivers.common.trajectory import advance
from cosim.plugins.drivers.dynamixel import tables as t

VELOCITY = t.VELOCITY / t.POSITION  # counts of the position per s, for one count of the velocity
ACCELERATION = 214.577 / 3600.0 * t.CPR  # counts of the position per s², for one count of the profile acceleration

STEP, RECTANGULAR, TRIANGULAR, TRAPEZOIDAL = range(4)  # in bits 4 and 5 of the moving status
ONGOING = 0x02  # in the moving status


class Profile:
    """The setpoint of an emulated drive on its way to a goal. position: counts; velocity: counts/s; kind: of the last
    motion."""

    def __init__(self) -> None:
        self.hold(0.0)

    def hold(self, position: float) -> None:
        """Stand still at a position."""
        self.position = self.goal = float(position)
        self.velocity, self.kind, self.ongoing = 0.0, STEP, False
        self._fastest = self._slope = math.nan

    def move(self, goal: float, velocity: int, acceleration: int, timed: bool) -> None:
        """Start a motion to a goal, with the registers of the profile; it continues a motion that is ongoing."""
        self.goal, distance = float(goal), abs(goal - self.position)
        if not velocity:
            return self.hold(goal)
        if timed:
            ramp = 1e-3 * min(acceleration, velocity / 2)
            self._fastest = distance / (1e-3 * velocity - ramp)
            self._slope = self._fastest / ramp if ramp else math.nan
        else:
            self._fastest = velocity * VELOCITY
            self._slope = acceleration * ACCELERATION if acceleration else math.nan
        short = distance * self._slope < self._fastest**2
        self.kind = RECTANGULAR if math.isnan(self._slope) else TRIANGULAR if short else TRAPEZOIDAL
        self.ongoing = distance > 0.0 or self.velocity != 0.0
        if not self.ongoing:
            self.hold(goal)

    def ramp(self, goal: float, acceleration: int, timed: bool, dt: float) -> None:
        """One step of dt [s] to a goal velocity [counts/s]."""
        if goal != self.goal:
            self.goal, change = goal, abs(goal - self.velocity)
            self._slope = (
                (change / (1e-3 * acceleration) if timed else acceleration * ACCELERATION) if acceleration else 0.0
            )
        change = self._slope * dt if self._slope else math.inf
        self.velocity += min(max(goal - self.velocity, -change), change)

    def advance(self, dt: float) -> None:
        """One step of dt [s] to the goal position."""
        if self.ongoing and dt > 0.0:
            distance = self.goal - self.position
            self.velocity, step, arrived = advance(distance, self.velocity, 0.0, self._fastest, self._slope, dt)
            self.position += step
            if arrived:
                self.position, self.velocity, self.ongoing = self.goal, 0.0, False

    @property
    def status(self) -> int:
        """The bits of the moving status."""
        return self.kind << 4 | (ONGOING if self.ongoing else 0)
