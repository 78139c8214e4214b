"""Frequency responses of a linear rig, up to half of its rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.apps.analysis.linearisation import LinearRig
from cosim.core.types import Array

POINTS = 800  # of a response
DECADES = 5  # below half of the rate, at least
SLOWER = 0.05  # times the slowest pole


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
