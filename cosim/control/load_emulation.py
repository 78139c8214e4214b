"""A load motor in place of a mechanism: it applies to the shaft of a motor under test what the simulated joint would.

The joint moves as the shaft is measured to; the hybrid dynamics gives the required effort (theory §2).
On the bench (J_m + J_b) a = τ_m + τ_l − b v, in the mechanism τ_m = τ + J_m a, so τ_l = J_b a + b v − τ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cosim import ops
from cosim.control.guard import is_finite


class LoadMotor(NamedTuple):
    """Of a joint by its place: rotor, the inertia J_m of its own drive that the model has; inertia J_b of the bench and
    its friction b, at the joint; the most that the load motor may give."""

    joint: int
    rotor: float
    inertia: float
    viscous: float
    effort: float


def applied(loads: Sequence[LoadMotor], effort: Any, v: Any, a: Any) -> Any:
    """(m,) efforts of the load motors where the model's joints take `effort` (nv,), their rotors included, to move at v
    and a (nv,). What is not finite becomes 0."""
    asked = []
    for load in loads:
        k = load.joint
        wanted = (load.rotor + load.inertia) * a[k] + load.viscous * v[k] - effort[k]
        asked.append(ops.where(is_finite(wanted), ops.clip(wanted, -load.effort, load.effort), 0.0))
    return ops.array(asked)
