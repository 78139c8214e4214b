"""A mass on a spring with a damper that a force moves: the law of an admittance."""

from __future__ import annotations

from cosim.core.types import Numeric


def next_rate(
    offset: Numeric, rate: Numeric, force: Numeric, mass: Numeric, damping: Numeric, stiffness: Numeric, h: float
) -> Numeric:
    """The velocity after a period h of a mass on a spring with a damper under a force, by the implicit Euler method,
    which is stable for all of them."""
    return (rate + h / mass * (force - stiffness * offset)) / (1.0 + h / mass * (damping + h * stiffness))
