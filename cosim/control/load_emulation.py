"""Load emulation: a load motor applies to the shaft of a motor under test the effort of the simulated joint.

The joint follows the measured motion of the shaft; the hybrid dynamics gives its required effort τ.
On the bench (J_m + J_b) a = τ_m + τ_l − b v, in the mechanism τ_m = τ + J_m a, so τ_l = J_b a + b v − τ.

How well a load motor exerts what it is commanded is found by least squares over all ticks so far, of signals through a
filter of the first order: an effort that is exerted Δ later than its command c has the error e = −Δ dc/dt; an error
e = −(ΔJ a + Δb v) is felt as a further inertia ΔJ and a further damping Δb.

For which inertias it is stable, with the observer, the step and the delay that it has: a shaft of inertia
J = J_m + J_b moves under the effort −κ J â that the load motor exerts. â is the acceleration that the observer
estimates, and κ J the emulated inertia beyond the shaft's, κ = (J_load − J_b) / J. The loop of observer, delay and
shaft is linear; it is stable while the largest modulus of its eigenvalues is below 1. Where the step is short, that is
the criterion of Nyquist for κ e^(−sT)/(1 + s/ω)³: κ < (1 + (w/ω)²)^(3/2) at the frequency w with
w T + 3 atan(w/ω) = π, and κ > −1.

Pure, (m,) each, SI.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cosim.control.guard import is_finite
from cosim.control.observer import gains
from cosim.core import ops
from cosim.core.types import Numeric, Signal, Signals

TRACKING_BANDWIDTH = 10.0  # Hz; within the delays of load motors nothing of what is left changes much
SUMS = 7  # of products: e ċ, ċ², a², a v, v², e a, e v
METRICS: Signals = {
    "error": Signal(
        (),
        "joint effort",
        "reported − commanded effort of the load motor, once the estimated motion has settled",
        role="error",
    ),
    "delay": Signal((), "s", "delay of the load motor behind its commands, by all ticks so far", role="estimate"),
    "inertia_error": Signal(
        (),
        "joint inertia",
        "inertia that the errors of the load motor add to the simulated load, by all ticks so far",
        role="estimate",
    ),
    "damping_error": Signal(
        (),
        "joint damping",
        "damping that the errors of the load motor add to the simulated load, by all ticks so far",
        role="estimate",
    ),
}
SMALLEST_DETERMINANT = 1e-12  # relative determinant from which on inertia and damping can be distinguished

LARGEST_RATIO, RATIO_PRECISION = 1e3, 1e-6  # of κ
EDGE = 1e-9  # the shaft itself is a double integrator, whose eigenvalues are 1


class LoadMotor(NamedTuple):
    """The motor on the bench that applies the load of one joint, in the units of the joint.

    joint: its index; rotor: reflected inertia J_m of its drive in the model; inertia J_b and viscous friction b of the
    bench at the joint; effort: limit of the load motor.
    """

    joint: int
    rotor: float
    inertia: float
    viscous: float
    effort: float


def load_efforts(loads: Sequence[LoadMotor], effort: Numeric, v: Numeric, a: Numeric) -> Numeric:
    """(m,) efforts of the load motors, within their limits; 0 where not finite.

    effort: (nv,) required efforts of the joints, rotors included, for the velocities v and accelerations a (nv,)."""
    efforts = []
    for load in loads:
        k = load.joint
        required = (load.rotor + load.inertia) * a[k] + load.viscous * v[k] - effort[k]
        efforts.append(ops.where(is_finite(required), ops.clip(required, -load.effort, load.effort), 0.0))
    return ops.array(efforts)


def summed(sums: Numeric, slow: Numeric) -> Numeric:
    """(SUMS, m) with this tick. slow (4, m): through the same filter, the error, the rate of the command, acceleration
    and velocity of the joint."""
    error, rate, a, v = slow
    products = (error * rate, rate * rate, a * a, a * v, v * v, error * a, error * v)
    return ops.array([total + product for total, product in zip(sums, products, strict=True)])


def delay(sums: Numeric) -> Numeric:
    """s; 0 without a change of the command."""
    return -sums[0] / ops.where(sums[1] > 0.0, sums[1], 1.0)


def added_load(sums: Numeric) -> tuple[Numeric, Numeric]:
    """(inertia, damping) that the errors add to the load; 0 without motion."""
    aa, av, vv, ea, ev = (sums[k] for k in range(2, SUMS))
    determinant = aa * vv - av * av
    known = determinant > SMALLEST_DETERMINANT * aa * vv
    divisor = ops.where(known, determinant, 1.0)
    inertia, damping = (vv * ea - av * ev) / divisor, (aa * ev - av * ea) / divisor
    return ops.where(known, -inertia, 0.0), ops.where(known, -damping, 0.0)


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
    """The κ below which the emulation is stable, at most LARGEST_RATIO."""
    low, high = 0.0, LARGEST_RATIO
    while high - low > RATIO_PRECISION * (1.0 + low):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_stable(middle, bandwidth, step, steps) else (low, middle)
    return low
