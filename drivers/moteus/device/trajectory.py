"""The drive's own set-point generator: toward a position and a velocity within a velocity and an acceleration."""

from __future__ import annotations

import math


def follow(
    gap: float | None, velocity: float, goal: float, fastest: float, acceleration: float, dt: float
) -> tuple[float, float, bool]:
    """One step of dt [s]: (new velocity, step of the position, whether the goal is reached).

    gap: from the set-point to the position wanted, None where only the velocity matters; goal: the velocity wanted on
    arrival; fastest, acceleration: limits, not a number for none (not both). Any one unit of length.

    Seen from the goal, the velocity is never larger than that from which braking ends at the goal. After a step from u
    to v the gap is g − (u + v) dt/2, and v² = 2 a times that gives v = −h + √(h² + 2 a g − 2 h u) with h = a dt/2.
    """
    if not math.isnan(fastest):
        goal = min(max(goal, -fastest), fastest)
    change = math.inf if math.isnan(acceleration) else acceleration * dt
    if gap is None:
        wanted, arrived = goal, abs(goal - velocity) <= change
    elif math.isnan(acceleration):
        arrived = abs(gap) <= fastest * dt
        wanted = math.copysign(fastest, gap)
    else:
        arrived = abs(gap) <= change * dt and abs(goal - velocity) <= change
        half, side = 0.5 * change, math.copysign(1.0, gap)
        room = half * half + 2.0 * acceleration * abs(gap) - 2.0 * half * side * (velocity - goal)
        wanted = goal + side * (math.sqrt(max(room, 0.0)) - half)
        if not math.isnan(fastest):
            wanted = min(max(wanted, -fastest), fastest)
    if arrived:
        return goal, goal * dt + (gap or 0.0), True
    new = velocity + min(max(wanted - velocity, -change), change)
    return new, 0.5 * (velocity + new) * dt if math.isfinite(change) else new * dt, False
