"""The frequencies of what numbers leave unexplained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.core.types import Array

SEGMENTS = 8  # of a recording, whose spectra are averaged
SHORTEST = 64  # rows of a segment


@dataclass(frozen=True)
class ResidualSpectrum:
    """frequency (m,) [Hz], and the amplitude densities (m, n) of the drives of n joints and of what is left of them, in
    their unit over √Hz."""

    frequency: Array
    drive: Array
    left: Array

    @staticmethod
    def of(step: float, drive: Array, left: Array) -> ResidualSpectrum:
        """Of rows (k, n) with a step [s], by Welch's method (IEEE Transactions on Audio and Electroacoustics 15,
        1967)."""
        length = min(len(drive), max(SHORTEST, len(drive) // SEGMENTS))
        frequency = np.fft.rfftfreq(length, step)
        return ResidualSpectrum(frequency[1:], *(density(of, length, step)[1:] for of in (drive, left)))


def density(values: Array, length: int, step: float) -> Array:
    """(length // 2 + 1, n) amplitude densities of values (k, n), as means over segments that overlap by a half, each
    without its mean, in a window of Hann. Written out: scipy.signal takes longer to be imported than a fit."""
    starts = range(0, len(values) - length + 1, length - length // 2)
    window = np.sin(np.pi * np.arange(length) / length)[:, None] ** 2
    segments = np.array([values[first : first + length] for first in starts])
    lines = np.fft.rfft((segments - segments.mean(axis=1, keepdims=True)) * window, axis=1)
    power = 2.0 * step * np.mean(np.abs(lines) ** 2, axis=0) / np.sum(window**2)
    ends = [0, -1] if length % 2 == 0 else [0]  # which have no twin at a negative frequency
    power[ends] *= 0.5
    return np.sqrt(power)
