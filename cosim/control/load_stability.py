"""For which inertias the emulation of a load is stable, with the observer, the step and the delay that it has.

A shaft of inertia J = J_m + J_b moves under the effort −κ J â that the load motor exerts: â is the acceleration that
the observer estimates, and κ J the emulated inertia beyond the shaft's, κ = (J_load − J_b) / J. The loop of
observer, delay and shaft is linear; it is stable while the largest modulus of its eigenvalues is below 1. Where the
step is short, that is the criterion of Nyquist for κ e^(−sT)/(1 + s/ω)³: κ < (1 + (w/ω)²)^(3/2) at the frequency w with
w T + 3 atan(w/ω) = π, and κ > −1.
"""

from __future__ import annotations

import numpy as np

from cosim.control.observer import gains

LARGEST, PRECISION = 1e3, 1e-6  # of κ
EDGE = 1e-9  # the shaft itself is a double integrator, whose eigenvalues are 1


def loop_matrix(ratio: float, bandwidth: float, step: float, steps: int) -> np.ndarray:
    """From tick to tick: velocity of the shaft, error and rates of the observer, accelerations on their way.

    ratio: κ; bandwidth [Hz] of the observer; step [s]; steps: ticks from a measurement until its effort acts.
    The state: velocity v, then position − estimate, estimated velocity, estimated acceleration, then `steps` estimated
    accelerations, the oldest last.
    """
    k, h, n = gains(bandwidth, step), step, 4 + steps
    at = np.eye(n)
    v, error, rate, a = at[:4]
    corrected = rate + float(k.velocity) * error, a + float(k.acceleration) * error
    left = error - float(k.position) * error
    exerted = at[n - 1] if steps else corrected[1]
    acts = -ratio * exerted
    rows = [
        v + h * acts,
        left + h * v + 0.5 * h * h * acts - h * corrected[0] - 0.5 * h * h * corrected[1],
        corrected[0] + h * corrected[1],
        corrected[1],
    ]
    rows += [corrected[1], *at[4 : n - 1]] if steps else []
    return np.array(rows)


def is_stable(ratio: float, bandwidth: float, step: float, steps: int) -> bool:
    """Whether the emulation is stable; see `loop_matrix`. One eigenvalue is 1, for a constant velocity."""
    moduli = np.sort(np.abs(np.linalg.eigvals(loop_matrix(ratio, bandwidth, step, steps))))
    return bool(moduli[-1] < 1.0 + EDGE and moduli[-2] < 1.0 - EDGE)


def largest_ratio(bandwidth: float, step: float, steps: int) -> float:
    """The κ below which the emulation is stable, at most LARGEST."""
    low, high = 0.0, LARGEST
    while high - low > PRECISION * (1.0 + low):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_stable(middle, bandwidth, step, steps) else (low, middle)
    return low
