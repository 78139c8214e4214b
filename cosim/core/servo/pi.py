"""A sampled PI controller whose integral follows its limit.

    u = limit(K e + I + f),    I' = I + (T / T_i) (K e + u − (K e + I + f)),

with the sampling period T, the integral time T_i and a feedforward f. Beyond the limit the integral is driven back by
back-calculation with the tracking time T_i (Åström and Hägglund, PID Controllers: Theory, Design, and Tuning, 2nd
edition, 1995, §3.5). Within it, I' = I + (T / T_i) K e: the transfer function is K (1 + (T / T_i) / (z − 1)).
"""

from __future__ import annotations

from cosim.core.types import Numeric


def next_integral(
    integral: Numeric, fraction: Numeric, proportional: Numeric, wanted: Numeric, given: Numeric
) -> Numeric:
    """The next integral. fraction: T / T_i, 0 without an integral; proportional: K e; wanted, given: the output before
    and after its limit."""
    return integral + fraction * (proportional + (given - wanted))
