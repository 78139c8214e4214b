"""Load emulation: a load motor applies to the shaft of a motor under test the effort of the simulated joint.

The joint follows the measured motion of the shaft; the hybrid dynamics gives its required effort τ.
On the bench (J_m + J_b) a = τ_m + τ_l − b v, in the mechanism τ_m = τ + J_m a, so τ_l = J_b a + b v − τ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cosim.control.guard import is_finite
from cosim.core import ops
from cosim.core.types import Numeric


class LoadMotor(NamedTuple):
    """joint: its index; rotor: reflected inertia J_m of its drive in the model; inertia J_b and viscous friction b of
    the bench at the joint; effort: limit of the load motor."""

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
