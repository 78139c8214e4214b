"""Feedforward against the cogging of real motors: an effort that repeats with the position of the joint.

    u(q) = Σ cₙ cos(n φ) + sₙ sin(n φ),  φ = 2π q / period,  n = 1, 2, …

It is added to the commands of real joints before the guard, at the measured position.
"""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core import ops
from cosim.core.types import Numeric, param, params
from cosim.core.units import TURN


@params
class Cogging:
    """The effort that a joint needs against its cogging."""

    period: float = param(unit="joint position", above=0.0, doc="motion of the joint after which it repeats")
    cosine: tuple[float, ...] = param(unit="joint effort", default=(), doc="cₙ, from n = 1 on")
    sine: tuple[float, ...] = param(unit="joint effort", default=(), doc="sₙ, from n = 1 on")

    def __post_init__(self) -> None:
        if not self.cosine and not self.sine:
            raise ValueError("give at least one of 'cosine' and 'sine'")

    def effort(self, position: Numeric) -> Numeric:
        """u(q), for the position of one joint or an array of them."""
        phase, total = TURN / self.period * position, 0.0
        for factors, wave in ((self.cosine, ops.cos), (self.sine, ops.sin)):
            for n, factor in enumerate(factors, 1):
                if factor:
                    total = total + factor * wave(n * phase)
        return total


def cogging_effort(coggings: Sequence[Cogging | None], position: Numeric) -> Numeric:
    """(n,) efforts at these positions, 0 for joints without."""
    return ops.array([0.0 if one is None else one.effort(position[k]) for k, one in enumerate(coggings)])
