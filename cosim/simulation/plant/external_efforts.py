"""Efforts on dofs of the plant from outside: a part that is coupled with the mechanism gives them before every step.

Within the step an effort is the polynomial Σ c_k (t − t₀)^k that the part predicts; c and t₀ are part of the state, and
constant in continuous time. The work that each effort does is integrated with the motion, so what the mechanism takes
from a coupling is known as exactly as the motion itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric, State

ORDER = 2  # of the polynomials


@dataclass(frozen=True)
class ExternalEfforts:
    """The efforts that coupled parts exert on dofs of the plant, as polynomials over a step. dofs: indices (in v) of
    the m dofs with an effort from outside."""

    dofs: Sequence[int] = ()

    def __bool__(self) -> bool:
        return bool(self.dofs)

    def initial(self) -> State:
        """No effort: since [s] t₀, coefficients (m, ORDER + 1) in joint effort per s^k."""
        return {"since": np.zeros(()), "coefficients": np.zeros((len(self.dofs), ORDER + 1))}

    def at(self, t: Numeric, given: State, nv: int) -> Numeric:
        """(nv,) efforts at the time t; given: as `initial`."""
        passed, c = t - given["since"], given["coefficients"]
        values: Numeric = c[:, ORDER]
        for k in reversed(range(ORDER)):  # Horner's scheme
            values = c[:, k] + passed * values
        return ops.set_at(np.zeros(nv), list(self.dofs), values)
