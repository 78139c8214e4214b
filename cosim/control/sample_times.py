"""When the next sample of a drive is due, from the times of those before it. Pure, (n,) each, s."""

from __future__ import annotations

from cosim.core import ops
from cosim.core.types import Numeric

# steps by which a sample may be later than the one before it was: one, and what rounding to ticks adds
TOLERATED = 1.5


def next_horizon(interval: Numeric, before: Numeric, step: float) -> Numeric:
    """How long after a sample the next one is not overdue.

    interval: from the sample before to this one; before: the interval before that, 0 where it is not known. The shorter
    one counts: one late sample does not make the next one late too."""
    usual = ops.where(before > 0.0, ops.minimum(interval, before), interval)
    return usual + TOLERATED * step


def is_gap(interval: Numeric, before: Numeric, horizon: Numeric, forgotten: Numeric = 0.0) -> Numeric:
    """Whether a sample, `interval` after the one before, comes so late that nothing is known of the time between: twice
    as late as one that is not overdue.

    before: the interval before, 0 where it is not known: then no sample is late; forgotten: how long after the horizon
    what was known before still counts."""
    late = interval > horizon + ops.maximum(horizon, forgotten)
    return ops.logical_and(late, before > 0.0)
