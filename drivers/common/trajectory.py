"""The setpoint generator of emulated drives: to a position and a velocity, with limits of velocity and acceleration."""

from __future__ import annotations

import math


def advance(
    distance: float | None, velocity: float, goal: float, max_velocity: float, acceleration: float, dt: float
) -> tuple[float, float, bool]:
    """One step of dt [s]: (new velocity, step of the position, whether the goal is reached).

    distance: from the setpoint to the commanded position, None if only the velocity is commanded; goal: the velocity at
    the commanded position; max_velocity, acceleration: limits, NaN for none (not both). Any one unit of length.

    Relative to the goal, the velocity never exceeds that from which braking ends at the goal. After a step from u to v
    the distance is g − (u + v) dt/2, and v² = 2 a times that gives v = −h + √(h² + 2 a g − 2 h u) with h = a dt/2.
    """
    if not math.isnan(max_velocity):
        goal = min(max(goal, -max_velocity), max_velocity)
    change = math.inf if math.isnan(acceleration) else acceleration * dt
    if distance is None:
        commanded, arrived = goal, abs(goal - velocity) <= change
    elif math.isnan(acceleration):
        arrived = abs(distance) <= max_velocity * dt
        commanded = math.copysign(max_velocity, distance)
    else:
        arrived = abs(distance) <= change * dt and abs(goal - velocity) <= change
        half, side = 0.5 * change, math.copysign(1.0, distance)
        radicand = half * half + 2.0 * acceleration * abs(distance) - 2.0 * half * side * (velocity - goal)
        commanded = goal + side * (math.sqrt(max(radicand, 0.0)) - half)
        if not math.isnan(max_velocity):
            commanded = min(max(commanded, -max_velocity), max_velocity)
    if arrived:
        return goal, goal * dt + (distance or 0.0), True
    new = velocity + min(max(commanded - velocity, -change), change)
    return new, 0.5 * (velocity + new) * dt if math.isfinite(change) else new * dt, False
