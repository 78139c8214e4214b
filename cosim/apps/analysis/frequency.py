"""A linear rig over frequency: its poles, the modes of its closed loop, and responses up to half of its rate, to be
drawn. Figures of loops are not read from them, see `loops`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.apps.analysis.linearisation import LinearRig
from cosim.core.types import Array

POINTS = 800  # of a response, without those about its resonances
DECADES = 5  # below half of the rate, at least
WIDTHS = np.tan(np.linspace(-1.5, 1.5, 16))  # from a resonance, times its decay: equal turns of the phase
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


def respond(rig: LinearRig, frequencies: Sequence[float] = ()) -> FrequencyResponse:
    """The responses at frequencies from below the slowest pole to half of the rate, which is the last one: denser about
    the poles of the rig with all loops closed, and with each open. frequencies: [rad/s] of these, too."""
    omega = _frequencies(rig, frequencies)
    nv, identity = len(rig.dofs), np.eye(len(rig.A))
    z = np.exp(1j * omega * rig.step)[:, None, None]
    full = rig.C @ np.linalg.solve(z * identity - rig.A, rig.B[None].astype(complex)) + rig.D
    return FrequencyResponse(omega, full[:, :nv, :nv], -full[:, nv:, nv:])


def poles(rig: LinearRig) -> Array:
    """(n,) complex poles s = log(z) / T [rad/s] of the closed loop; a pole z = 0, a pure delay, has none."""
    return _logarithms(rig.A, rig.step)


def _logarithms(A: Array, step: float) -> Array:
    z = np.linalg.eigvals(A).astype(complex)  # real ones may be negative
    return np.log(z[np.abs(z) > 1e-12]) / step


def _frequencies(rig: LinearRig, frequencies: Sequence[float]) -> Array:
    highest, closed = np.pi / rig.step, poles(rig)
    speeds = np.abs(closed)
    slowest = float(np.min(speeds[speeds > 1e-9 * highest], initial=highest))
    lowest = min(SLOWER * slowest, highest * 10.0**-DECADES)
    grid = np.geomspace(lowest, highest, POINTS)
    resonant = np.concatenate([closed, *(_open_poles(rig, dof) for dof in range(len(rig.dofs)))])
    decay, turn = np.abs(np.real(resonant)), np.abs(np.imag(resonant))
    decay, turn = decay[decay < turn], turn[decay < turn]
    about = turn[:, None] + decay[:, None] * WIDTHS
    added = np.array([*about.ravel(), *turn, *frequencies])
    return np.union1d(grid, added[(added > lowest) & (added < highest)])


def _open_poles(rig: LinearRig, dof: int) -> Array:
    """(n,) complex poles [rad/s] of the rig with the loop of one dof open."""
    return _logarithms(rig.A - np.outer(rig.B[:, dof], rig.C[dof]), rig.step)


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


def has_growth(A: Array) -> bool:
    """Whether a mode of a tick grows; what is held or integrated does not."""
    z = np.linalg.eigvals(A).astype(complex)
    poles = np.log(z[(np.abs(z) > DELAY) & (np.abs(z - 1.0) >= HELD)])
    return bool(np.any(np.real(poles) > UNDAMPED * np.abs(poles)))


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
