"""Figures of merit of a run, accumulated tick by tick: pure functions on numbers and on symbols.

A metric keeps accumulators for every joint, (width, n). Integrals over time are sums over all ticks times the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Array, Numeric

# fraction of the travel within which a joint has settled
SETTLED_FRACTION = 0.02
# rad or m: a shorter travel has neither overshoot nor settling time
SHORTEST_TRAVEL = 1e-9
# fraction of the effort limit from which on a joint is saturated
SATURATED_FRACTION = 0.999


class JointSample(NamedTuple):
    """All joints in one tick, (n,) each in SI: error: of the position; request: the commanded effort; limit: of the
    effort; target: the reference position at the end of the run. 0 where a joint has none. t () [s]."""

    t: Numeric
    position: Numeric
    velocity: Numeric
    effort: Numeric
    error: Numeric
    request: Numeric
    limit: Numeric
    target: Numeric


class Ending(NamedTuple):
    """Of k finished runs: the number of ticks (k, 1), the time of the last one (k, 1) [s]; step [s]; target (n,)."""

    ticks: Array
    t: Array
    step: float
    target: Array


@dataclass(frozen=True)
class Metric:
    """A figure of merit of a joint, and how it is accumulated tick by tick.

    needs: the field of a sample without which a joint has no such metric; initial: of its accumulators.

    update: (accumulators (width, n), sample) -> accumulators; result: (accumulators (k, width, n), ending) -> (k, n).
    """

    doc: str
    unit: str  # of a revolute joint
    needs: str
    initial: tuple[float, ...]
    update: Callable[[Numeric, JointSample], list[Numeric]]
    result: Callable[[Array, Ending], Array]
    counts_ticks: bool = False  # it has no derivative


def _total(value: Callable[[JointSample], Numeric]) -> Callable[[Numeric, JointSample], list[Numeric]]:
    return lambda a, s: [a[0] + value(s)]


def _largest(value: Callable[[JointSample], Numeric]) -> Callable[[Numeric, JointSample], list[Numeric]]:
    return lambda a, s: [ops.maximum(a[0], value(s))]


def _mean_root(a: Array, end: Ending) -> Array:
    """Where everything was 0 the derivative is 0."""
    mean = a[:, 0] / end.ticks
    return ops.where(mean > 0.0, ops.sqrt(ops.where(mean > 0.0, mean, 1.0)), mean)


def _integral(a: Array, end: Ending) -> Array:
    return a[:, 0] * end.step


def _value(a: Array, end: Ending) -> Array:
    return a[:, 0]


def _beyond_target(a: Numeric, s: JointSample) -> list[Numeric]:
    """(start, farthest beyond the target in the direction of travel)."""
    start = ops.where(s.t <= 0.0, s.position, a[0])
    beyond = ops.sign(s.target - start) * (s.position - s.target)
    return [start, ops.maximum(a[1], beyond)]


def _overshoot(a: Array, end: Ending) -> Array:
    return a[:, 1] / _travel(a, end)


def _outside_band(a: Numeric, s: JointSample) -> list[Numeric]:
    """(start, time at which the joint was last outside of the band around its target)."""
    start = ops.where(s.t <= 0.0, s.position, a[0])
    outside = ops.abs(s.position - s.target) > SETTLED_FRACTION * ops.abs(s.target - start)
    return [start, ops.where(outside, s.t, a[1])]


def _settling_time(a: Array, end: Ending) -> Array:
    last = a[:, 1]
    return np.where(np.isnan(_travel(a, end)), np.nan, np.where(last >= end.t, np.inf, last + end.step))


def _travel(a: Array, end: Ending) -> Array:
    """|target − start|, NaN where a joint does not travel."""
    travel = ops.abs(end.target - a[:, 0])
    return ops.where(travel > SHORTEST_TRAVEL, travel, np.nan)


def _saturated(s: JointSample) -> Numeric:
    return ops.where(ops.abs(s.request) >= SATURATED_FRACTION * s.limit, 1.0, 0.0)


# one row per metric
METRICS: dict[str, Metric] = {
    "error_rms": Metric(
        "root of the mean square of the error: reference − position", "rad", "error", (0.0,),
        _total(lambda s: s.error * s.error), _mean_root,
    ),
    "error_max": Metric(
        "largest absolute error", "rad", "error", (0.0,), _largest(lambda s: ops.abs(s.error)), _value
    ),
    "iae": Metric(
        "integral of the absolute error", "rad*s", "error", (0.0,),
        _total(lambda s: ops.abs(s.error)), _integral,
    ),
    "overshoot": Metric(
        "farthest position beyond the last reference at a tick, as a fraction of the travel from the start to there;"
        " NaN without travel", "1", "error", (0.0, 0.0), _beyond_target, _overshoot,
    ),
    "settling_time": Metric(
        f"time of the tick from which on the position stays within {SETTLED_FRACTION:.0%} of the travel around the last"
        " reference; infinite where it is outside at the end, NaN without travel", "s", "error", (0.0, 0.0),
        _outside_band, _settling_time, counts_ticks=True,
    ),
    "effort_rms": Metric(
        "root of the mean square of the effort", "N*m", "effort", (0.0,),
        _total(lambda s: s.effort * s.effort), _mean_root,
    ),
    "effort_max": Metric(
        "largest absolute effort", "N*m", "effort", (0.0,), _largest(lambda s: ops.abs(s.effort)), _value
    ),
    "saturation_time": Metric(
        f"time with a commanded effort of at least {SATURATED_FRACTION:.1%} of the joint's limit", "s", "request",
        (0.0,), _total(_saturated), _integral, counts_ticks=True,
    ),
    "energy": Metric(
        "integral of the absolute power at the joint", "J", "effort", (0.0,),
        _total(lambda s: ops.abs(s.effort * s.velocity)), _integral,
    ),
}  # fmt: skip
