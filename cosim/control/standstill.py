"""Joints that should move and do not: how long one is pushed, and how far it should have come meanwhile.

Pure, (n,) each, SI; updated with each measurement, before the guard.
"""

from __future__ import annotations

from cosim.core import ops
from cosim.core.types import Numeric

# fraction of the effort limit from which on a joint is pushed with full effort
FULL_EFFORT = 0.95
# fraction of the velocity limit below which a joint stands still
SLOW = 0.01


def stalled_time(
    before: Numeric, effort: Numeric, velocity: Numeric, limits: tuple[Numeric, Numeric], passed: Numeric
) -> Numeric:
    """Time [s] for which a joint has been pushed with full effort and stood still.

    before: in the previous tick; effort: the larger of the requested and the measured one; limits: of effort and
    velocity; passed [s]: since the measurement before.
    """
    max_effort, max_velocity = limits
    pushed = ops.abs(effort) >= FULL_EFFORT * max_effort
    still = ops.abs(velocity) <= SLOW * max_velocity
    return ops.where(ops.logical_and(pushed, still), before + passed, 0.0)


def unseen_motion(
    before: Numeric,
    position: tuple[Numeric, Numeric],
    reference: tuple[Numeric, Numeric],
    velocity: Numeric,
    max_velocity: Numeric,
    passed: Numeric,
) -> Numeric:
    """How far [rad or m] a joint should have moved since its measured position changed last: the path of its reference
    or the integral of its measured velocity, whichever grows faster, at most at its velocity limit.

    before: by the previous measurement; position, reference: (then, now); passed [s]: since then, 0 where nothing is
    known of the time between.
    """
    path = ops.maximum(ops.abs(reference[1] - reference[0]), ops.abs(velocity) * passed)
    return ops.where(position[0] == position[1], before + ops.minimum(path, max_velocity * passed), 0.0)
