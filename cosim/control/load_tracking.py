"""How well a load motor exerts what it is commanded: error, delay, and what the error adds to the emulated load.

Least squares over all ticks so far, of signals through a filter of the first order. An effort that is exerted Δ later
than its command c has the error e = −Δ dc/dt. An error e = −(ΔJ a + Δb v) is felt as a further inertia ΔJ and a further
damping Δb. Pure, (m,) each, SI.
"""

from __future__ import annotations

from cosim.core import ops
from cosim.core.types import Numeric, Signal, Signals

BANDWIDTH = 10.0  # Hz; within the delays of load motors nothing of what is left changes much
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
SMALLEST = 1e-12  # relative determinant from which on inertia and damping can be told apart


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
    known = determinant > SMALLEST * aa * vv
    divisor = ops.where(known, determinant, 1.0)
    inertia, damping = (vv * ea - av * ev) / divisor, (aa * ev - av * ea) / divisor
    return ops.where(known, -inertia, 0.0), ops.where(known, -damping, 0.0)
