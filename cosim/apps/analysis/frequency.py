"""A linear rig over frequency: its poles, the modes of its closed loop, and responses up to half of its rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.apps.analysis.linearisation import LinearRig
from cosim.core.types import Array

POINTS = 800  # of a response
DECADES = 5  # below half of the rate, at least
SLOWER = 0.05  # times the slowest pole
DELAY = 1e-4  # |z| of a mode that ends within a tick; several of them at 0 are found up to this size
UNDAMPED = 1e-4  # a smaller growth comes from the steps of an oscillation without damping
HELD = 1e-8  # |z − 1| of what is held or integrated


@dataclass(frozen=True)
class FrequencyResponse:
    """omega (m,) [rad/s]; sensitivity (m, nv, nv): requested efforts per disturbance of them, S = (I + L)⁻¹ with the
    loops L broken at the drives; tracking (m, nv, nv): position per reference as far as feedback alone follows it, the
    complementary sensitivity at the encoders."""

    omega: Array
    sensitivity: Array
    tracking: Array

    def loop(self, dof: int) -> Array:
        """(m,) the loop gain of a dof, broken at its drive, the others closed: L = 1 / S − 1."""
        return 1.0 / self.sensitivity[:, dof, dof] - 1.0


def respond(rig: LinearRig, points: int = POINTS) -> FrequencyResponse:
    """The responses at frequencies from below the slowest pole to half of the rate, which is the last one."""
    omega = _frequencies(rig, points)
    nv, identity = len(rig.dofs), np.eye(len(rig.A))
    z = np.exp(1j * omega * rig.step)[:, None, None]
    full = rig.C @ np.linalg.solve(z * identity - rig.A, rig.B[None].astype(complex)) + rig.D
    return FrequencyResponse(omega, full[:, :nv, :nv], -full[:, nv:, nv:])


def poles(rig: LinearRig) -> Array:
    """(n,) complex poles s = log(z) / T [rad/s] of the closed loop; a pole z = 0, a pure delay, has none."""
    z = np.linalg.eigvals(rig.A).astype(complex)  # real ones may be negative
    return np.log(z[np.abs(z) > 1e-12]) / rig.step


def _frequencies(rig: LinearRig, points: int) -> Array:
    highest = np.pi / rig.step
    speeds = np.abs(poles(rig))
    slowest = float(np.min(speeds[speeds > 1e-9 * highest], initial=highest))
    return np.geomspace(min(SLOWER * slowest, highest * 10.0**-DECADES), highest, points)


@dataclass(frozen=True)
class ClosedLoopMode:
    """A pole s [rad/s], 0 of what is held or integrated; of a conjugate pair the one with the positive imaginary part.
    part: of the state with the largest participation factor (Perez-Arriaga, Verghese and Schweppe 1982)."""

    pole: complex
    part: str

    @property
    def frequency(self) -> float:
        """|s| [rad/s]."""
        return abs(self.pole)

    @property
    def grows(self) -> bool:
        return self.damping < -UNDAMPED

    @property
    def damping(self) -> float:
        """1: no oscillation; below 0: it grows."""
        return -self.pole.real / self.frequency if self.frequency else 1.0


def modes_of(rig: LinearRig) -> list[ClosedLoopMode]:
    """The slowest first."""
    z, right = np.linalg.eig(rig.A)
    left = np.linalg.pinv(right)
    found = []
    for k in np.flatnonzero((np.abs(z) > DELAY) & (np.imag(z) >= 0.0)):
        part = rig.states[int(np.argmax(np.abs(right[:, k] * left[k])))]
        pole = 0.0 if abs(z[k] - 1.0) < HELD else np.log(complex(z[k])) / rig.step
        found.append(ClosedLoopMode(complex(pole), part))
    return sorted(found, key=lambda mode: mode.frequency)
