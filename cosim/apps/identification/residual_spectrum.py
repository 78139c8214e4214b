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
        from scipy.signal import welch

        length = min(len(drive), max(SHORTEST, len(drive) // SEGMENTS))
        frequency, power = welch(np.stack([drive, left]), 1.0 / step, nperseg=length, axis=1)
        return ResidualSpectrum(frequency[1:], *np.sqrt(power[:, 1:]))
