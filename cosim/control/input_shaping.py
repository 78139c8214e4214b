"""Input shaping: a reference that leaves a flexible axis without vibration.

The reference is convolved with a few impulses whose answers in the flexible mode cancel each other (Singer and Seering,
Preshaping command inputs to reduce system vibration, 1990). ZV leaves none at the exact frequency; ZVD also has no
slope there; EI leaves a tolerated vibration at the frequency and none at one below and one above it (Singhose, Seering
and Singer 1994). Errors of the frequency matter least to EI, then to ZVD; both take a period longer, ZV half of one.

The frequency is given, or several come from elastic links, see `vibrations`, and their impulses are convolved. What
vibration that leaves, because the equations are not linear, `retiming` removes by a change of the speed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from cosim.control.repetition import RepeatedTrajectory
from cosim.control.retiming import retimed
from cosim.control.vibrations import KEYS, vibrations
from cosim.core import ops
from cosim.core.errors import SectionError
from cosim.core.types import Array, Numeric, Trajectory, TrajectoryContext, breaks_of, param, params

RATES = ("velocity", "acceleration", "effort")
MOST_DAMPING = 0.9
MOST_EI_DAMPING = 0.3  # more damping needs no such shaper
STEPS = 20  # in which the impulses of EI are followed from no damping to the given one


@params
class Shaping:
    type: Literal["zv", "zvd", "ei"] = param(doc="zv: shortest; zvd, ei: for a frequency that is known less exactly")
    frequency: float | None = param(unit="Hz", above=0, default=None, doc="natural frequency of the vibration")
    damping: float = param(min=0, max=MOST_DAMPING, default=0.0, doc="damping ratio of the vibration")
    vibration: float = param(above=0, max=0.3, default=0.05, doc="of ei: vibration that is tolerated at the frequency")
    modes: tuple[str, ...] | None = param(default=None, doc="of elastic links that are shaped for, or auto")

    def __post_init__(self) -> None:
        if self.frequency is None and self.modes is None:
            raise ValueError("'frequency' is missing; give it, or 'modes' of elastic links")
        if self.frequency is not None and self.modes is not None:
            raise ValueError("'frequency' and 'modes' are given; keep one of both")
        if self.modes is not None and not self.modes:
            raise ValueError("'modes' is empty; name modes of elastic links, or take [auto]")
        if self.modes is not None and (twice := [mode for mode in self.modes if self.modes.count(mode) > 1]):
            raise ValueError(f"mode '{twice[0]}' is given twice; take one out")
        if self.modes is not None and self.damping:
            raise ValueError("the damping of 'modes' is known; take 'damping' out")
        if self.type == "ei" and self.damping > MOST_EI_DAMPING:
            raise ValueError(f"ei takes a damping of at most {MOST_EI_DAMPING:g}, is {self.damping:g}; use zv or zvd")

    def impulses(self) -> tuple[Array, Array]:
        """(times [s], amplitudes) for the frequency, whose sum is 1."""
        assert self.frequency is not None
        return self._impulses(self.frequency, self.damping)

    def _impulses(self, frequency: float, damping: float) -> tuple[Array, Array]:
        root = math.sqrt(1.0 - damping**2)
        half, ratio = math.pi / root, math.exp(-math.pi * damping / root)
        if self.type == "ei":
            times, amplitudes = _extra_insensitive(damping, self.vibration)
        else:
            amplitudes = np.array([1.0, ratio])
            if self.type == "zvd":
                amplitudes = np.convolve(amplitudes, amplitudes)
            times = half * np.arange(len(amplitudes))
        return times / (2.0 * math.pi * frequency), amplitudes / amplitudes.sum()

    def around(
        self, trajectory: Trajectory, joints: tuple[str, ...], folder: Path, context: TrajectoryContext | None = None
    ) -> Trajectory:
        """The trajectory, shaped. Raises SectionError for modes that cannot be computed or do not exist."""
        if self.modes is None:
            assert self.frequency is not None
            return ShapedTrajectory(trajectory, *self.impulses(), (self.frequency,))
        if context is None:
            what = "the modes are computed with the model of the mechanism"
            raise SectionError(f"{what}; use them for a controller or a prescribed joint, or give 'frequency'", KEYS)
        if isinstance(trajectory, RepeatedTrajectory):
            what = "modes are those at the end of one motion, which is repeated"
            raise SectionError(f"{what}; give 'frequency', or take 'repeat' out", KEYS)
        times, amplitudes = np.zeros(1), np.ones(1)
        found = vibrations(self.modes, trajectory, context)
        if not found.modes:
            return trajectory  # it deflects none
        for mode in found.modes:
            if mode.damping > (most := MOST_EI_DAMPING if self.type == "ei" else MOST_DAMPING):
                what = f"the mode of {mode.frequency:.3g} Hz has a damping of {mode.damping:.2g}, more than {most:g}"
                raise SectionError(f"{what}; it needs no shaping, so name others", KEYS)
            later, parts = self._impulses(*mode)
            times, amplitudes = np.add.outer(times, later).ravel(), np.outer(amplitudes, parts).ravel()
        order = np.argsort(times, kind="stable")
        frequencies = tuple(mode.frequency for mode in found.modes)
        return retimed(ShapedTrajectory(trajectory, times[order], amplitudes[order], frequencies), found, context)


@dataclass(frozen=True, eq=False)
class ShapedTrajectory:
    """Σ amplitude · trajectory(t − time): all joints alike, so that a straight path of the joints stays straight."""

    trajectory: Trajectory
    times: Array
    amplitudes: Array
    frequencies: tuple[float, ...] = ()  # Hz, that are shaped for

    @property
    def end(self) -> float:
        return self.trajectory.end + float(self.times[-1])

    @property
    def breaks(self) -> Array:
        """Those of the trajectory, and its start, after each impulse."""
        return np.add.outer(self.times, [0.0, *breaks_of(self.trajectory)]).ravel()

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        total = {name: self.amplitudes[0] * value for name, value in self.trajectory.sample(t).items()}
        for time, amplitude in zip(self.times[1:], self.amplitudes[1:], strict=True):
            sample = self.trajectory.sample(ops.maximum(t - time, 0.0))
            begun = ops.where(t < time, 0.0, amplitude)
            total["position"] = total["position"] + amplitude * sample["position"]
            for name in RATES:
                total[name] = total[name] + begun * sample[name]
        return total


def residual_vibration(times: Array, amplitudes: Array, omega: float, damping: float) -> float:
    """The vibration of a mode [rad/s] after the last impulse, relative to that after a single one."""
    return float(abs(_residual(times, amplitudes, omega, damping)[0]))


def _residual(times: Array, amplitudes: Array, omega: float, damping: float) -> tuple[complex, complex]:
    """The sum of the answers of a mode at the last impulse as a phasor, and its derivative by omega."""
    pole = damping + 1j * math.sqrt(1.0 - damping**2)
    answers = amplitudes * np.exp(pole * omega * times - damping * omega * times[-1])
    return complex(answers.sum()), complex((answers * (pole * times - damping * times[-1])).sum())


def _extra_insensitive(damping: float, vibration: float) -> tuple[Array, Array]:
    """(times, amplitudes) for the natural frequency of 1 rad/s.

    Without damping they have a closed form; with it they solve, by continuation, that the vibration is the tolerated
    one at the frequency, at a maximum there, and none at two others.
    """
    from scipy.optimize import root

    def shaper(x: Array) -> tuple[Array, Array]:
        return np.array([0.0, x[0], x[1]]), np.array([1.0 - x[2] - x[3], x[2], x[3]])

    def missing(x: Array, ratio: float) -> list[float]:
        times, amplitudes = shaper(x)
        at, slope = _residual(times, amplitudes, 1.0, ratio)
        below, above = (_residual(times, amplitudes, omega, ratio)[0] for omega in x[4:])
        peak = abs(at) - vibration, (at.conjugate() * slope).real
        return [*peak, below.real, below.imag, above.real, above.imag]

    zero = math.acos((vibration - 1.0) / (vibration + 1.0)) / math.pi
    x = np.array([math.pi, 2.0 * math.pi, 0.5 * (1.0 - vibration), 0.25 * (1.0 + vibration), zero, 2.0 - zero])
    for ratio in np.linspace(0.0, damping, STEPS)[1:]:
        x = root(missing, x, args=(ratio,), tol=1e-14).x
    return shaper(x)
