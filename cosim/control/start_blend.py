"""How long the offsets of a bumpless start fade out, so that the sum of blend and trajectory stays within the limits.

Each joint has its own times, one for its position and one for its velocity. A joint takes the first of some candidates
for which its reference is within its limits in every tick of the blend; where none is, the start has to be refused.
Pure, on numbers and on symbols: engines start with it, and `NAME_arm` of an exported rig is the same as machine code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cosim.control.bumpless_start import BumplessStart
from cosim.control.limits import POSITION_TOLERANCE
from cosim.core import ops
from cosim.core.compile.while_loop import repeated_while
from cosim.core.types import Array, Numeric, Trajectory

# top speed and top acceleration of a quintic, top slope of a smoothstep, of unit length in unit time
QUINTIC_SPEED, QUINTIC_ACCELERATION, SMOOTHSTEP_SLOPE = 1.875, 10.0 / 3.0**0.5, 1.5
# of the limits of velocity and acceleration, for the blend; the rest is for the trajectory itself and for overshoot
BLEND_FRACTION = 0.5
# (factor of the time of the position, factor of the shortest time of the velocity), the first one that fits counts:
# a longer one is slower, a shorter one of the velocity runs less far from the trajectory
CANDIDATES = tuple((longer, shorter) for longer in (1.0, 2.0, 4.0, 8.0) for shorter in (1.0, 0.25))
LONGEST_BLEND = 120.0  # s; a joint that would need longer stands too far away
VELOCITY_TOLERANCE = 1e-9  # of the limit: rounding


class BlendBounds(NamedTuple):
    """Of n references: positions [rad or m], greatest speed [per s] and acceleration of the blend [per s²]; infinite
    where unbounded."""

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array

    @property
    def checked(self) -> bool:
        """Whether a reference could leave them."""
        return bool(np.isfinite([self.lower, self.upper, self.velocity]).any())


class Blend(NamedTuple):
    """The bumpless start of n references, and how far it takes them out of their bounds.

    start: at t = 0 s. too_fast, outside (n,): by how much the reference leaves its bounds of velocity and position in
    the worst tick, at most 0 within them; infinite where all candidates take longer than LONGEST_BLEND.
    """

    start: BumplessStart
    too_fast: Numeric
    outside: Numeric

    @property
    def leaves(self) -> Numeric:
        """(n,) which references leave their bounds."""
        return ops.logical_or(self.too_fast > 0.0, self.outside > 0.0)


Samples = Callable[[int], tuple[Array, Array]]  # count -> position, velocity (count, n) of the first ticks


def fading(
    position: Numeric,
    velocity: Numeric,
    bounds: BlendBounds,
    blend: float,
    step: float,
    candidate: tuple[float, float] = CANDIDATES[0],
) -> BumplessStart:
    """Offsets (n,) of the measured state from the trajectory that fade out: the velocity within `blend` [s] and as
    slowly as the acceleration needs, the position within `blend` and as slowly as velocity and acceleration need; both
    at least one step [s]."""
    longer, shorter = candidate
    most = BLEND_FRACTION * bounds.acceleration
    drift_time = ops.maximum(max(shorter * blend, step), SMOOTHSTEP_SLOPE * ops.abs(velocity) / most)
    drift = velocity * drift_time
    offset = position + 0.5 * drift  # what the velocity leaves behind is the integral of the smoothstep
    distance = ops.abs(offset)
    needed = ops.maximum(
        QUINTIC_SPEED * distance / (BLEND_FRACTION * bounds.velocity), ops.sqrt(QUINTIC_ACCELERATION * distance / most)
    )
    time = longer * ops.maximum(max(blend, step), needed)
    start = BumplessStart(0.0, 0.0, np.zeros(len(bounds.lower)), offset, 1.0 / time, drift, 1.0 / drift_time)
    return start._replace(duration=_longest(start, step))


def ends(start: BumplessStart) -> Numeric:
    """(n,) when the reference of each joint is on its trajectory [s after the start]; 0 where it begins there."""
    drifts = ops.where(ops.abs(start.drift) > 0.0, 1.0 / start.drift_rate, 0.0)
    return ops.maximum(ops.where(ops.abs(start.offset) > 0.0, 1.0 / start.offset_rate, 0.0), drifts)


def blended(
    trajectory: Trajectory,
    samples: Samples,
    position: Numeric,
    velocity: Numeric,
    bounds: BlendBounds,
    blend: float,
    step: float,
) -> Blend:
    """The blend of offsets (n,), measured minus trajectory, into the trajectory; samples: of it, for numbers."""
    symbolic, n = ops.is_symbolic(position) or ops.is_symbolic(velocity), len(bounds.lower)
    chosen: Blend | None = None
    for candidate in CANDIDATES:
        start = fading(position, velocity, bounds, blend, step, candidate)
        if not bounds.checked:
            return Blend(start, np.zeros(n), np.zeros(n))
        found = Blend(
            start,
            *(_traced_excess(trajectory, start, bounds, step) if symbolic else _excess(samples, start, bounds, step)),
        )
        chosen = found if chosen is None else _better(chosen, found, step)
        if not symbolic and not chosen.leaves.any():
            break
    assert chosen is not None
    return chosen


def _better(first: Blend, other: Blend, step: float) -> Blend:
    """Of each joint the first one, unless only the other stays within the bounds."""
    takes = ops.logical_and(first.leaves, ops.logical_not(other.leaves))

    def chosen(name: str) -> Numeric:
        return ops.where(takes, getattr(other.start, name), getattr(first.start, name))

    start = first.start._replace(**{name: chosen(name) for name in ("offset", "offset_rate", "drift", "drift_rate")})
    excess = (ops.where(takes, getattr(other, name), getattr(first, name)) for name in ("too_fast", "outside"))
    return Blend(start._replace(duration=_longest(start, step)), *excess)


def _longest(start: BumplessStart, step: float) -> Numeric:
    """s, at least one step."""
    duration: Numeric = step
    for end in ends(start):
        duration = ops.maximum(duration, end)
    return duration


def excess(
    position: Numeric, velocity: Numeric, start: BumplessStart, bounds: BlendBounds, step: float, t: Numeric
) -> tuple[Numeric, Numeric]:
    """(too fast, outside) (n,) by how much references leave their bounds of velocity and position at t [s], at most 0
    within them and after their blend; position, velocity (n,): of the trajectory, or (k, n) for times (k, 1)."""
    added = start.added(t)
    position, velocity = position + added["position"], velocity + added["velocity"]
    too_fast = ops.abs(velocity) - bounds.velocity * (1.0 + VELOCITY_TOLERANCE)
    outside = ops.maximum(bounds.lower - position, position - bounds.upper) - POSITION_TOLERANCE
    blends = t < ends(start) + step
    return ops.where(blends, too_fast, -1.0), ops.where(blends, outside, -1.0)


def _excess(samples: Samples, start: BumplessStart, bounds: BlendBounds, step: float) -> tuple[Array, ...]:
    """The greatest `excess` of all ticks."""
    until = ends(start)
    late = np.where(until > LONGEST_BLEND, np.inf, -1.0)
    if not np.isfinite(start.duration):  # of a measurement that is not finite, for which the guard stops the first tick
        return late, late
    count = int(min(start.duration, LONGEST_BLEND) / step) + 2
    position, velocity = samples(count)
    found = excess(position, velocity, start, bounds, step, step * np.arange(count)[:, None])
    return tuple(np.maximum(late, each.max(axis=0)) for each in found)


def _traced_excess(
    trajectory: Trajectory, start: BumplessStart, bounds: BlendBounds, step: float
) -> tuple[Numeric, ...]:
    """The same as a loop in machine code."""
    n = len(bounds.lower)

    def look(x: Numeric, flat: Numeric) -> tuple[Numeric, Numeric]:
        """x: the number of the tick, then the greatest excess of both kinds so far (2 n,)."""
        t, begun = x[0] * step, BumplessStart.of(flat, n)
        sample = trajectory.sample(t)
        found = excess(sample["position"], sample["velocity"], begun, bounds, step, t)
        worst = ops.maximum(x[1:], ops.concatenate(found))
        return ops.concatenate([ops.array([x[0] + 1.0]), worst]), ops.where(t < begun.duration, 1.0, 0.0)

    loop = repeated_while(look, [(1 + 2 * n,), (BumplessStart.size(n),)], "blend", int(LONGEST_BLEND / step) + 2, True)
    worst = loop(np.concatenate([[0.0], np.full(2 * n, -1.0)]), start.flat)[0][1:]
    late = ops.where(ends(start) > LONGEST_BLEND, np.inf, -1.0)
    return ops.maximum(late, worst[:n]), ops.maximum(late, worst[n:])
