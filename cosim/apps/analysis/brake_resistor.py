"""The largest resistance of a brake chopper that holds its link: a capacitor with the power that comes back.

    d/dt (C u² / 2) = p − clip((u − U_on) / b, 0, 1) u² / R

with the power p into the link, of its drives and its source, as a run has it. R is too large where u goes beyond
U_on + b, from which it is always on. At R = (U_on + b)² / max p it does not; as the capacitor takes what is shorter
than its rise by b, R may be larger. Steps are implicit (backward Euler), so they do not overshoot.
"""

from __future__ import annotations

import math

import numpy as np

from cosim.apps.analysis.samples import Array
from cosim.core.types import Array as Values

CANDIDATES = 30  # resistances that are integrated beside each other
LARGEST_FACTOR = 1000.0  # times the resistance that holds any such power
PASSES = 2  # of ever closer candidates
STEPS = 4  # per tick
ITERATIONS = 3  # of Newton's method, within the band


def largest_resistance(t: Array, power: Array, start: float, capacitance: float, on: float, full: float) -> float:
    """[ohm], inf where the capacitor alone holds the link. t (k,) [s] and power (k,) [W] into the link while it brakes;
    start: its voltage at the first one; on, full: the voltages from which the chopper is on, and always on [V]."""
    if not (peak := float(power.max())) > 0.0:
        return math.inf
    end = int(np.flatnonzero(power > 0.0)[-1]) + 2  # behind it the link only sinks
    t, power = t[:end], power[:end]
    low = full * full / peak
    high = LARGEST_FACTOR * low
    for _ in range(PASSES):
        candidates = np.geomspace(low, high, CANDIDATES)
        holds = ~_exceeds(t, power, start, capacitance, on, full, candidates)
        if holds.all():
            return math.inf
        first = int(np.argmin(holds))  # which does not hold
        low, high = candidates[max(first - 1, 0)], candidates[first]
    return float(low)


def _exceeds(
    t: Array, power: Array, start: float, capacitance: float, on: float, full: float, resistances: Values
) -> Values:
    """Of each resistance, whether the link goes beyond `full`."""
    u = np.full(len(resistances), min(start, full))
    found = np.zeros(len(resistances), bool)
    for dt, begin, end in zip(np.diff(t), power[:-1], power[1:], strict=True):
        h = dt / STEPS
        for k in range(1, STEPS + 1):
            p = begin + (end - begin) * k / STEPS
            u = _step(u, h * p, h / resistances, capacitance, on, full)
            found |= u > full
    return found


def _step(u: Values, energy: float, share: Values, capacitance: float, on: float, full: float) -> Values:
    """u of C u² / 2 + share d(u) u² = what was stored + energy."""
    half = 0.5 * capacitance
    rest = np.maximum(half * u * u + energy, 0.0)
    off, whole = np.sqrt(rest / half), np.sqrt(rest / (half + share))
    within = np.clip(off, on, full)
    for _ in range(ITERATIONS):
        d = (within - on) / (full - on)
        excess = (half + share * d) * within * within - rest
        slope = 2.0 * (half + share * d) * within + share * within * within / (full - on)
        within = np.clip(within - excess / slope, on, full)
    return np.where(off <= on, off, np.where(whole >= full, whole, within))
