"""Linear filters of sampled signals, for controllers: low-pass filters and notches as sections of second order.

A filter is a tuple of `Section`s, from the bilinear transform with the frequency of the filter kept exact (Franklin,
Powell and Workman, Digital Control of Dynamic Systems, §6.1). Frequencies may be numbers, arrays (n,) or symbols, so
that they can be parameters of a controller:

    sections = filters.low_pass(p.cutoff, order=2, period=self.period)
    velocity, state = filters.filtered(sections, x["filter"], u["velocity"])

The state begins with `filters.initial(sections, n)`. The first sample finds the filter at rest at its value, so that a
filter does not begin with a transient. The state are past samples of the signals before and after each section (direct
form I), which other frequencies do not change: a filter that is changed while it runs does not jump.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric


class Section(NamedTuple):
    """y = (b0 + b1 z⁻¹ + b2 z⁻²) / (1 + a1 z⁻¹ + a2 z⁻²) u; numbers or arrays (n,)."""

    b0: Numeric
    b1: Numeric
    b2: Numeric
    a1: Numeric
    a2: Numeric


def low_pass(frequency: Numeric, order: int, period: float) -> tuple[Section, ...]:
    """A Butterworth low-pass filter: −3 dB at the frequency [Hz], the gain 1 at rest. Frequencies are below half the
    rate, 1 / (2 period)."""
    k = _warped(frequency, period)
    sections = []
    for pair in range(order // 2):
        damping = 2.0 * math.sin(math.pi * (2 * pair + 1) / (2 * order))
        scale = 1.0 / (1.0 + damping * k + k * k)
        b = k * k * scale
        sections.append(Section(b, 2.0 * b, b, 2.0 * (k * k - 1.0) * scale, (1.0 - damping * k + k * k) * scale))
    if order % 2:
        b = k / (1.0 + k)
        sections.append(Section(b, b, 0.0 * b, (k - 1.0) / (1.0 + k), 0.0 * b))
    return tuple(sections)


def notch(frequency: Numeric, width: Numeric, depth: Numeric, period: float) -> tuple[Section, ...]:
    """A notch: the gain `depth` at the frequency [Hz], 1 at rest and far from it. width: of the band [Hz] that a notch
    of depth 0 attenuates by 3 dB or more. Frequency and width are below half the rate, 1 / (2 period)."""
    k, band = _warped(frequency, period), _warped(width, period)
    # in the bilinear transform β = damping · k / (1 + k²) sets the width
    damping = band * (1.0 + k * k)
    scale = 1.0 / (1.0 + damping + k * k)
    middle = 2.0 * (k * k - 1.0) * scale
    outer = (1.0 + depth * damping + k * k) * scale
    return (Section(outer, middle, (1.0 - depth * damping + k * k) * scale, middle, (1.0 - damping + k * k) * scale),)


def initial(sections: Sequence[Section], n: int) -> np.ndarray:
    """The state (3 + 2 · sections, n) of a filter of n signals before its first sample."""
    return np.zeros((3 + 2 * len(sections), n))


def filtered(sections: Sequence[Section], state: Numeric, u: Numeric) -> tuple[Numeric, Numeric]:
    """(the filtered signals (n,), the next state), of the signals u (n,)."""
    started, at_rest = state[0] > 0.5, u
    before = [ops.where(started, state[k], at_rest) for k in (1, 2)]  # the last samples, the latest first
    rows = [np.ones(np.shape(u)), u, before[0]]
    for number, (b0, b1, b2, a1, a2) in enumerate(sections):
        at_rest = (b0 + b1 + b2) / (1.0 + a1 + a2) * at_rest
        after = [ops.where(started, state[3 + 2 * number + k], at_rest) for k in (0, 1)]
        u = b0 * u + b1 * before[0] + b2 * before[1] - a1 * after[0] - a2 * after[1]
        rows += [u, after[0]]
        before = after
    return u, ops.array(rows)


def _warped(frequency: Numeric, period: float) -> Numeric:
    """tan(π f T), the frequency of the continuous filter whose bilinear transform has its frequency at f."""
    return ops.tan(math.pi * period * frequency)
