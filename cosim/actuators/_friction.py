"""Friction of a gear: viscous, Coulomb, and a part that grows with the load (theory §8, §9).

M_T = b ω + (M_0 + μ |M|) s(ω) with s(ω) = ω / √(ω² + ω_s²), smooth around standstill. A mesh of efficiency
η loses the share 1 − η of what the motor puts in when it drives, and 1/η − 1 of what reaches the motor when
the load drives it back.
"""

from __future__ import annotations

from typing import Any

from cosim import ops

CREEP_SPEED = 0.01  # ω_s: below about this speed [rad/s or m/s, joint side] friction fades


def gear_friction(load: Any, speed: Any, viscous: float, coulomb: float, efficiency: float) -> Any:
    """The effort that friction takes along +speed, for a gear through which `load` passes; joint side."""
    friction = viscous * speed if viscous else 0.0
    if coulomb or efficiency < 1.0:
        share = ops.where(load * speed > 0.0, 1.0 - efficiency, 1.0 / efficiency - 1.0) if efficiency < 1.0 else 0.0
        friction = friction + (coulomb + share * ops.absolute(load)) * ops.smooth_sign(speed, CREEP_SPEED)
    return friction
