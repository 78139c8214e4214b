"""The velocity of a joint from its sampled positions, as a lower bound: what a drive reports may be in another unit.

The position has moved by Δ since an earlier sample of age T. Both ends are whole counts of the encoder and have noise,
and neither is stamped when it was measured: a drive samples at times of its own, and a sample that comes late may be as
old as its predecessor. So the joint has moved on average at

    |v| ≥ (|Δ| − 2 resolution − min(4 spread, |Δ| / 2)) / (T + JITTER + pause)

with the smallest step that the position has made, and the smallest change of its step (resolution), the mean change of
its steps (spread, which noise and uneven samples raise) and the largest recent interval beyond a tick (pause). The
largest bound over a few earlier samples counts: a short way shows a sudden motion, a long one is exact. Pure, (n,)
each, SI; updated once per tick, before the guard.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric, State

ANCHORS = 4  # earlier samples that are kept …
SPACING = 0.008  # s, at least between two of them
JITTER = 0.003  # s, by which the time of a sample may differ from its stamp
PAUSE_TIME = 0.2  # s, after which half of a pause is forgotten
ROUNDING = 1e-9  # rad or m; smaller steps are rounding errors of whole counts
UNKNOWN = 1e200  # stands for a smallest step before the first one, and is finite in products with 0
SPREADS, AVERAGED = 4.0, 16.0  # standard: mean changes of steps that are noise; steps of the mean


class SampleTrack(NamedTuple):
    """Earlier samples of n joints. anchor, age [s] (ANCHORS, n): the newest first, an age of 0 where there is
    none; last: position; moved, rate: the last step, and per time; spread, resolution, pause: see above; bound: of the
    velocity, with its sign."""

    anchor: Numeric
    age: Numeric
    last: Numeric
    moved: Numeric
    rate: Numeric
    spread: Numeric
    resolution: Numeric
    pause: Numeric
    bound: Numeric

    @property
    def noise(self) -> Numeric:
        """What a difference of two positions may show without motion, (n,)."""
        return 2.0 * self.resolution + SPREADS * self.spread


def initial(n: int) -> State:
    """The fields of a SampleTrack without samples."""
    track = {name: np.zeros((ANCHORS, n) if name in ("anchor", "age") else n) for name in SampleTrack._fields}
    return track | {"resolution": np.full(n, UNKNOWN)}


def followed(x: SampleTrack, position: Numeric, interval: Numeric, step: float, is_first: Numeric) -> SampleTrack:
    """x one tick later, with a new sample where `interval` [s] since the one before is above 0: elsewhere the position
    is the same. step [s]: of ticks; is_first (): whether the track begins with this position."""
    kept, new = ops.where(is_first, 0.0, 1.0), interval > 0.0
    moved = kept * (position - x.last)
    spread = x.spread + ops.where(new, ops.abs(moved - x.rate * interval) - x.spread, 0.0) / AVERAGED
    rate = ops.where(new, moved / ops.where(new, interval, 1.0), x.rate)
    resolution = x.resolution
    for size in (ops.abs(moved), ops.abs(moved - x.moved)):
        resolution = ops.where(ops.logical_and(new, size > ROUNDING), ops.minimum(resolution, size), resolution)
    pause = ops.maximum(interval - step, x.pause * (PAUSE_TIME / (PAUSE_TIME + interval)))
    ages = [ops.where(age > 0.0, age + interval, 0.0) for age in x.age]
    bound: Numeric = 0.0
    for anchor, age in zip(x.anchor, ages, strict=True):
        one = _lower_bound(position - anchor, age, pause, resolution, spread)
        bound = ops.where(ops.abs(one) > ops.abs(bound), one, bound)
    old = ops.logical_and(new, ops.logical_or(ages[0] <= 0.0, ages[0] >= SPACING + JITTER))
    anchors = [ops.where(old, *pair) for pair in zip((position, *x.anchor[:-1]), x.anchor, strict=True)]
    ages = [ops.where(old, *pair) for pair in zip((JITTER, *ages[:-1]), ages, strict=True)]
    return SampleTrack(
        anchor=ops.array(anchors),
        age=ops.array([kept * age for age in ages]),
        last=position,
        moved=kept * ops.where(new, moved, x.moved),
        rate=kept * rate,
        spread=kept * spread,
        resolution=ops.where(is_first, UNKNOWN, resolution),
        pause=kept * pause,
        bound=kept * bound,
    )


def _lower_bound(moved: Numeric, age: Numeric, pause: Numeric, resolution: Numeric, spread: Numeric) -> Numeric:
    """The velocity, with its sign, that a motion by `moved` since an anchor shows at least; 0 without an anchor."""
    way = ops.abs(moved)
    sure = ops.maximum(way - 2.0 * resolution - ops.minimum(SPREADS * spread, 0.5 * way), 0.0)
    speed = ops.where(age > 0.0, sure / ops.where(age > 0.0, age + pause, 1.0), 0.0)
    return ops.where(moved < 0.0, -speed, speed)


def larger(measured: Numeric, bound: Numeric) -> Numeric:
    """The velocity that is larger in magnitude: the measured one, or the bound by the positions."""
    return ops.where(ops.abs(bound) > ops.abs(measured), bound, measured)
