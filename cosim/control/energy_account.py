"""The energy account of a coupling through hardware: the work of a drive, from samples of its effort and velocity.

Both are known at samples only; the work between two samples is computed by the trapezoidal rule. Pure, SI.
"""

from __future__ import annotations

from cosim.control.guard import is_finite
from cosim.core import ops
from cosim.core.types import Numeric


def effort_of_drive(reported: Numeric, commanded: Numeric) -> Numeric:
    """The effort that a drive reports, or the commanded one where it reports none (NaN)."""
    return ops.where(is_finite(reported), reported, commanded)


def accounted(
    power: Numeric, work: Numeric, sampled: Numeric, interval: Numeric, followed: Numeric, is_first: Numeric
) -> tuple[Numeric, Numeric]:
    """(power [W], work [J]) by the last sample.

    power, work: before; sampled: power of a new sample, `interval` [s] after the one before, which is 0 where there is
    none; followed: the same, but 0 after a gap too, over which no work is known; is_first: whether the account begins
    with this sample.
    """
    is_new = ops.logical_and(followed > 0.0, ops.logical_not(is_first))
    done = 0.5 * (power + sampled) * followed
    latest = ops.where(ops.logical_or(interval > 0.0, is_first), sampled, power)
    return latest, work + ops.where(is_new, done, 0.0)


def without_gap(
    taken: Numeric, done: Numeric, residual: Numeric, interval: Numeric, followed: Numeric, is_first: Numeric
) -> tuple[Numeric, Numeric]:
    """(work, residual energy) [J] of a drive, of which what passed in a gap of its feedback is no part: neither the
    model nor the samples know the motion in it.

    taken: by the model so far; done: work by the last sample; residual: before; interval, followed: between samples
    [s], the second 0 where the later one came after a gap."""
    new = ops.logical_or(interval > 0.0, is_first)
    gap = ops.logical_and(interval > followed, ops.logical_not(is_first))
    work = ops.where(gap, taken - residual, done)
    return work, ops.where(new, taken - work, residual)
