"""Figures of the loops of a rig: margins, sensitivity, bandwidth and the step of each dof, and of all together.

Gain and phase margins at the crossings of a cubic spline through the response. Disk margins with the skew 0 (Seiler,
Packard and Gahinet, An introduction to disk margins, IEEE Control Systems Magazine 40(5), 2020): α = 2 / max |S − T|;
of all loops together with the structured singular value, bounded from above by diagonal scaling.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.apps.analysis.frequency import FrequencyResponse, modes_of, poles
from cosim.apps.analysis.linearisation import LinearRig
from cosim.core.errors import InputError
from cosim.core.types import Array

CLOSED = 1e-9  # |S − 1| from which on a dof has a loop
SETTLED_FRACTION = 0.02  # of the final value
LONGEST_RESPONSE = 20_000  # ticks of a step response without a pole that decays
DENSE_POINTS = 2_000  # points of a step response between two doublings of their distance
DECAY_TIMES = 14.0  # time constants after which a part of a step response is over, to 1e-6
BALANCE_SWEEPS = 30  # sweeps of the scaling
HALVINGS = 50  # of the interval of a crossing
SLOWEST_DECAY = 1e-6  # 1/s; a slower decay is an integral


@dataclass(frozen=True)
class DiskMargin:
    """The margin against changes of gain and phase together, with the skew 0. alpha: 0 to 2. Gains between the two
    `gains` in all loops together leave the rig stable, and so do phases up to `phase` [rad] alone."""

    alpha: float

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
    unstable, inf and 0 where there is none; phase [rad], delay [s]: inf where none destabilises it; disk: of both at
    once."""

    gain: float
    gain_reduction: float
    phase: float
    delay: float
    disk: DiskMargin


@dataclass(frozen=True)
class StepFigures:
    """Of a step of 1 of the reference that feedback alone follows: rise_time (10 to 90 %), settling_time (2 %) [s],
    overshoot as a fraction of the final value, steady_state_error."""

    rise_time: float
    settling_time: float
    overshoot: float
    steady_state_error: float


@dataclass(frozen=True)
class LoopFigures:
    """Of the loop of one dof, broken at its drive, the others closed. crossover, bandwidth [rad/s]: |L| = 1, and |T|
    3 dB below its low frequencies, NaN where there is none; peak_sensitivity: of |S|; margins and step: None for an
    unstable rig."""

    dof: str
    crossover: float
    bandwidth: float
    peak_sensitivity: float
    margins: Margins | None
    step: StepFigures | None


def is_stable(rig: LinearRig) -> bool:
    """Whether no mode grows; what is held or integrated does not."""
    return not any(mode.grows for mode in modes_of(rig))


def closed_dofs(response: FrequencyResponse) -> list[int]:
    """The dofs whose effort is fed back."""
    diagonal = np.diagonal(response.sensitivity, axis1=1, axis2=2)
    return np.flatnonzero(np.abs(diagonal - 1.0).max(axis=0) > CLOSED).tolist()


def loop_figures(rig: LinearRig, response: FrequencyResponse, dof: int) -> LoopFigures:
    """Raises InputError where python-control is not installed."""
    stable, loop, sensitivity = is_stable(rig), response.loop(dof), response.sensitivity[:, dof, dof]
    return LoopFigures(
        rig.dofs[dof],
        crossover_of(np.abs(loop), response.omega),
        _bandwidth(np.abs(response.tracking[:, dof, dof]), response.omega),
        float(np.abs(sensitivity).max()),
        margins_of(loop, response.omega) if stable else None,
        step_figures(*step_response(rig, dof)) if stable else None,
    )


def margins_of(loop: Array, omega: Array, whole: bool = True) -> Margins:
    """Of a stable loop L (m,) at these frequencies; whole: the last one is half of the rate, where L is real."""
    inside = slice(-1 if whole else None)
    at_real = _crossings(loop[inside], omega[inside], np.imag)[1]
    gains = [-1.0 / value for value in np.real(at_real) if value < 0.0]
    if whole and (end := float(np.real(loop[-1]))) < 0.0:
        gains.append(-1.0 / end)
    crossovers, at_one = _crossings(loop[inside], omega[inside], lambda value: np.abs(value) - 1.0)
    angles = math.pi - np.abs(np.angle(at_one))
    return Margins(
        float(min((gain for gain in gains if gain > 1.0), default=math.inf)),
        float(max((gain for gain in gains if gain < 1.0), default=0.0)),
        float(min(angles, default=math.inf)),
        float(min(angles / crossovers, default=math.inf)),
        disk_margin(1.0 / (1.0 + loop)),
    )


def _crossings(loop: Array, omega: Array, figure: Callable[[Array], Array]) -> tuple[Array, Array]:
    """(frequencies (k,), L there (k,)) at which a figure of L changes its sign, by bisection in the pieces of the cubic
    spline through L."""
    from scipy.interpolate import CubicSpline

    negative = figure(loop) < 0.0
    k = np.flatnonzero(negative[:-1] != negative[1:])
    pieces = CubicSpline(omega, loop).c[:, k]
    low, high = np.zeros(len(k)), omega[k + 1] - omega[k]
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        before = (figure(np.polyval(pieces, middle)) < 0.0) == negative[k]
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    return omega[k] + high, np.polyval(pieces, high)


def disk_margin(sensitivity: Array) -> DiskMargin:
    """Of a stable loop from its sensitivity (m,)."""
    return DiskMargin(min(2.0, 2.0 / float(np.abs(2.0 * sensitivity - 1.0).max())))


def all_loops_margin(response: FrequencyResponse, dofs: list[int]) -> DiskMargin:
    """Of perturbations in all these loops at the same time; a bound that is never too large."""
    matrices = 2.0 * response.sensitivity[:, dofs][:, :, dofs] - np.eye(len(dofs))
    return DiskMargin(min(2.0, 2.0 / max(_structured_bound(matrix) for matrix in matrices)))


def step_response(rig: LinearRig, dof: int) -> tuple[Array, Array]:
    """(times (k,) [s], position (k,) of a dof) after a step of 1 of its reference that feedback alone follows, until
    the slowest mode has decayed: at every tick first, then at every second, fourth …"""
    nv, end = len(rig.dofs), _ticks_to_settle(rig)
    A, b = rig.A, -rig.B[:, nv + dof]
    c, d = rig.C[nv + dof], -rig.D[nv + dof, nv + dof]
    ticks, found = [], []
    tick, distance, x = 0, 1, np.zeros(len(A))
    while tick < end:
        for _ in range(DENSE_POINTS):
            ticks.append(tick)
            found.append(c @ x + d)
            tick, x = tick + distance, A @ x + b
        A, b, distance = A @ A, A @ b + b, 2 * distance
    return np.array(ticks) * rig.step, np.array(found)


def step_figures(times: Array, response: Array) -> StepFigures:
    """Of a step response (k,) that ends at rest. Raises InputError where python-control is not installed."""
    final = float(response[-1])
    if abs(final) < CLOSED:
        return StepFigures(math.nan, math.nan, math.nan, 1.0 - final)
    info = _control().step_info(response, T=times, yfinal=final, SettlingTimeThreshold=SETTLED_FRACTION)
    return StepFigures(
        float(info["RiseTime"]), float(info["SettlingTime"]), float(info["Overshoot"]) / 100.0, 1.0 - final
    )


def _ticks_to_settle(rig: LinearRig) -> int:
    """Of the slowest pole that is no integral."""
    decays = -np.real(poles(rig))
    slowest = float(np.min(decays[decays > SLOWEST_DECAY], initial=math.inf))
    return math.ceil(DECAY_TIMES / slowest / rig.step) if math.isfinite(slowest) else LONGEST_RESPONSE


def crossover_of(gain: Array, omega: Array) -> float:
    """The last frequency [rad/s] at which the gain falls below 1, NaN if it does not."""
    falls = np.flatnonzero((gain[:-1] >= 1.0) & (gain[1:] < 1.0))
    if not len(falls):
        return math.nan
    k = slice(falls[-1], falls[-1] + 2)
    return float(np.exp(np.interp(0.0, -np.log(gain[k]), np.log(omega[k]))))


def _bandwidth(tracking: Array, omega: Array) -> float:
    """The first frequency [rad/s] at which |T| is 3 dB below its value at low frequencies."""
    below = np.flatnonzero(tracking < tracking[0] / math.sqrt(2.0))
    return float(omega[below[0]]) if len(below) and tracking[0] > CLOSED else math.nan


def _structured_bound(matrix: Array) -> float:
    """An upper bound of μ for independent perturbations of each channel: σ_max(D M D⁻¹), D balanced row by row."""
    scale = np.ones(len(matrix))
    size = np.abs(matrix)
    np.fill_diagonal(size, 0.0)
    for _ in range(BALANCE_SWEEPS):
        for k in range(len(matrix)):
            row, column = np.linalg.norm(size[k] / scale), np.linalg.norm(size[:, k] * scale)
            if row > 0.0 and column > 0.0:
                scale[k] = math.sqrt(column / row)
    return float(np.linalg.norm(matrix * scale[:, None] / scale[None], 2))


def _control() -> Any:
    try:
        import control
    except ImportError:
        raise InputError("needs python-control; install it with pip install 'cosim[tune]'", "analyze") from None
    return control
