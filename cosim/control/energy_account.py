"""The energy account of a coupling through hardware: the work of a drive, from samples of its effort and velocity.

Both are known at samples only. Between two of them the work is that of the trapezoidal rule. Pure, SI.
"""

from __future__ import annotations

from cosim import ops
from cosim.control.guard import is_finite
from cosim.types import Numeric


def effort_of_drive(reported: Numeric, commanded: Numeric) -> Numeric:
    """The effort that a drive reports, or the commanded one where it reports none (NaN)."""
    return ops.where(is_finite(reported), reported, commanded)


def accounted(
    power: Numeric, work: Numeric, sampled: Numeric, interval: Numeric, is_first: Numeric
) -> tuple[Numeric, Numeric]:
    """(power [W], work [J]) by the last sample.

    power, work: before; sampled: power of a new sample, `interval` [s] after the one before, which is 0 where there is
    none; is_first: whether the account begins with this sample.
    """
    is_new = ops.logical_and(interval > 0.0, ops.logical_not(is_first))
    done = 0.5 * (power + sampled) * interval
    latest = ops.where(ops.logical_or(interval > 0.0, is_first), sampled, power)
    return latest, work + ops.where(is_new, done, 0.0)
