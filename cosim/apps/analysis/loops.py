"""Figures of the loops of a rig: margins, sensitivity, bandwidth and the step of each dof, and of all together.

All are found over all frequencies up to half of the rate, from the state space of the sampled loop, see `circle`. With
the sensitivity S = 1 / (1 + L) of a loop L, the closed loop has a pole on the unit circle with the gain g = −1 / L
where L, and so S, is real; and |L| = 1 where Re S = 1/2. Disk margins with the skew 0 (Seiler, Packard and Gahinet, An
introduction to disk margins, IEEE Control Systems Magazine 40(5), 2020): α = 2 / max |S − T|, S − T = 2 S − 1; of all
loops together with the structured singular value, bounded from above by diagonal scaling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.apps.analysis.circle import ANGLE_ACCURACY, CircleForm, Peak, SampledSystem, crossings, peak, system_of
from cosim.apps.analysis.frequency import has_growth
from cosim.apps.analysis.linearisation import LinearRig
from cosim.apps.analysis.steps import READ_POINTS, StepFigures, step_figures, step_response, tracking_of
from cosim.core.types import Array

CLOSED = 1e-9  # |S − 1| from which on a dof has a loop
LEAST_GAIN = 1e-5  # −100 dB: a smaller factor at which a loop becomes unstable is none, where rounding decides
BALANCE_SWEEPS = 30  # sweeps of the scaling
HALF_POWER = 0.5  # |T|² of the bandwidth, of low frequencies
REAL = CircleForm(0.0, 1.0, -1.0, 0.0)  # imaginary part: 0 where a response is real
GAIN_OF_ONE = CircleForm(0.0, 1.0, 1.0, 1.0)  # of S − 1: 2 Re S − 1, above 0 where |L| < 1


@dataclass(frozen=True)
class DiskMargin:
    """The margin against changes of gain and phase together, with the skew 0. alpha: 0 to 2; frequency [rad/s]: where
    the loops are nearest to their limit. Gains between the two `gains` in all loops together leave the rig stable, and
    so do phases up to `phase` [rad] alone."""

    alpha: float
    frequency: float = math.nan

    @property
    def gains(self) -> tuple[float, float]:
        low = (2.0 - self.alpha) / (2.0 + self.alpha)
        return low, (1.0 / low if low > 0.0 else math.inf)

    @property
    def phase(self) -> float:
        return 2.0 * math.atan(self.alpha / 2.0)


@dataclass(frozen=True)
class Margins:
    """Of a stable loop. gain, gain_reduction: the factors nearest to 1, above and below it, at which it becomes
    unstable, inf and 0 where there is none; phase [rad]: that it may lose or gain, delay [s]: inf where none
    destabilises it; disk: of gain and phase together."""

    gain: float
    gain_reduction: float
    phase: float
    delay: float
    disk: DiskMargin


@dataclass(frozen=True)
class LoopFigures:
    """Of the loop of one dof, broken at its drive, the others closed. crossover, bandwidth [rad/s]: |L| = 1, and |T|
    3 dB below its low frequencies, NaN where there is none; peak_sensitivity: of |S|, at peak_frequency [rad/s];
    margins and step: None for an unstable rig."""

    dof: str
    crossover: float
    bandwidth: float
    peak_sensitivity: float
    peak_frequency: float
    margins: Margins | None
    step: StepFigures | None

    @property
    def frequencies(self) -> list[float]:
        """[rad/s] at which the response of the loop is to be shown."""
        disk = [] if self.margins is None else [self.margins.disk.frequency]
        return [omega for omega in (self.crossover, self.bandwidth, self.peak_frequency, *disk) if omega > 0.0]


def is_stable(rig: LinearRig) -> bool:
    """Whether no mode grows; what is held or integrated does not."""
    return not has_growth(rig.A)


def closed_dofs(rig: LinearRig) -> list[int]:
    """The dofs whose effort is fed back."""
    return [dof for dof in range(len(rig.dofs)) if is_closed(feedback_of(rig, [dof]))]


def is_closed(feedback: SampledSystem) -> bool:
    """Whether there is a loop with this S − I."""
    return len(feedback.A) > 0 and float(np.abs(feedback.at(feedback.resonances)).max()) > CLOSED


def feedback_of(rig: LinearRig, dofs: Sequence[int]) -> SampledSystem:
    """S − I of the loops of these dofs: the efforts that are fed back per disturbance of the requested ones."""
    rows = list(dofs)
    return system_of(rig.A, rig.B[:, rows], rig.C[rows], rig.D[np.ix_(rows, rows)] - np.eye(len(rows)))


def loop_figures(rig: LinearRig, dof: int) -> LoopFigures:
    feedback, stable = feedback_of(rig, [dof]), is_stable(rig)
    top = sensitivity_peak(feedback)
    return LoopFigures(
        rig.dofs[dof],
        crossover_of(feedback) / rig.step,
        _bandwidth(tracking_of(rig, dof)) / rig.step,
        top.value,
        top.angle / rig.step,
        margins_of(feedback, rig.step) if stable else None,
        step_figures(*step_response(rig, dof, READ_POINTS)) if stable else None,
    )


def margins_of(feedback: SampledSystem, step: float) -> Margins:
    """Of a stable loop with S − 1 of one dof; step: from one of its samples to the next [s]."""
    below, above = gain_margins(feedback)
    phase, delay = phase_margins(feedback, step)
    return Margins(above, below, phase, delay, disk_margin(feedback, step))


def gain_margins(feedback: SampledSystem) -> tuple[float, float]:
    """(below 1, above 1) the nearest factors of the gain at which a closed loop that is stable has a pole on the unit
    circle; 0 and inf where there is none."""
    at_real = [_nearest(feedback, REAL, angle)[0] for angle in crossings(feedback, REAL)[0]]
    ends = [feedback.per_sample(angle) for angle in feedback.real_ends]
    # of the samples of a period those are real that the loop has at 0 and at half of its own rate
    at_real += [value for values, angles in ends for value in values[_is_end(feedback, angles)]]
    reals = np.real(np.array(at_real))
    gains = 1.0 + 1.0 / reals[np.abs(reals) > CLOSED]  # −1 / L
    return (
        float(max(gains[(gains > LEAST_GAIN) & (gains < 1.0)], default=0.0)),
        float(min(gains[gains > 1.0], default=math.inf)),
    )


def _is_end(feedback: SampledSystem, angles: Array) -> Array:
    """Whether angles per sample are 0 or π, or what stands for them."""
    aside = feedback.lowest / len(feedback.D) * (1.0 + ANGLE_ACCURACY) + ANGLE_ACCURACY
    return (angles <= aside) | (angles >= math.pi - aside)


def _nearest(feedback: SampledSystem, form: CircleForm, angle: float) -> tuple[complex, float]:
    """(the value of the loop that is nearest to a zero of F at an angle, its angle per sample)."""
    values, angles = feedback.per_sample(angle)
    of_form = form.square * np.abs(values) ** 2 + form.plain * values + form.adjoint * np.conj(values) + form.constant
    k = int(np.argmin(np.abs(of_form)))
    return complex(values[k]), float(angles[k])


def phase_margins(feedback: SampledSystem, step: float) -> tuple[float, float]:
    """(phase [rad], in either direction; delay [s]) at which a stable closed loop has a pole on the unit circle first,
    inf where it never has one. A delay of a part of a step is one that delays all frequencies alike."""
    found = [_nearest(feedback, GAIN_OF_ONE, angle) for angle in crossings(feedback, GAIN_OF_ONE)[0]]
    if not found:
        return math.inf, math.inf
    at_one, angles = (np.array(column) for column in zip(*found, strict=True))
    lag = np.angle(at_one / (1.0 + at_one)) % (2.0 * math.pi)  # of −L from 1: what it may lose
    return float(np.minimum(lag, 2.0 * math.pi - lag).min()), float((lag / angles).min()) * step


def disk_margin(feedback: SampledSystem, step: float) -> DiskMargin:
    """Of a stable loop, or of perturbations in all of several loops at the same time; never too large. A loop that
    varies within a period has the one of perturbations that vary too."""
    several = len(feedback.D) > 1 and not feedback.lifted
    top = peak(feedback.scaled(2.0, 1.0), _balance if several else None)
    return DiskMargin(min(2.0, 2.0 / (top.bound if several else top.value)), top.angle / step)


def sensitivity_peak(feedback: SampledSystem) -> Peak:
    """The largest |S|."""
    return peak(feedback.scaled(1.0, 1.0))


def crossover_of(feedback: SampledSystem) -> float:
    """The last angle at which |L| falls below 1, NaN if it does not."""
    angles, below = crossings(feedback, GAIN_OF_ONE)
    if feedback.lifted:  # in the other direction at negative angles
        found = [_nearest(feedback, GAIN_OF_ONE, angle)[1] for angle in angles]
        return max(found, default=math.nan)
    return float(angles[below][-1]) if np.any(below) else math.nan


def _bandwidth(tracking: SampledSystem) -> float:
    """The first angle at which |T| is 3 dB below its value at the lowest ones, NaN if it never is."""
    low = float(np.abs(tracking.at(np.array([tracking.lowest]))[0, 0, 0]))
    if low <= CLOSED:
        return math.nan
    angles, _ = crossings(tracking.scaled(1.0 / low), CircleForm(1.0, 0.0, 0.0, -HALF_POWER))
    return float(angles[0]) if len(angles) else math.nan


def _balance(matrix: Array) -> Array:
    """The diagonal (p,) with which D M D⁻¹ has rows and columns of a size: σ_max is then an upper bound of μ for
    independent perturbations of each channel."""
    scale = np.ones(len(matrix))
    size = np.abs(matrix)
    np.fill_diagonal(size, 0.0)
    for _ in range(BALANCE_SWEEPS):
        for k in range(len(matrix)):
            row, column = np.linalg.norm(size[k] / scale), np.linalg.norm(size[:, k] * scale)
            if row > 0.0 and column > 0.0:
                scale[k] = math.sqrt(column / row)
    return scale
