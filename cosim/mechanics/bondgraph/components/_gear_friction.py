"""Friction of a gear: viscous, Coulomb, and load-dependent.

M_T = b ω + (M_0 + μ |M|) s(ω) with s(ω) = ω / √(ω² + ω_s²), smooth around standstill. A gear mesh of efficiency
η loses the fraction 1 − η of the motor's power when the motor drives, and 1/η − 1 of the power that reaches the
motor when the load drives it.
"""

from __future__ import annotations

from cosim.core import ops
from cosim.core.types import Numeric

CREEP_SPEED = 0.01  # ω_s [rad/s or m/s, joint side], below which Coulomb friction decreases to 0


def gear_friction(load: Numeric, speed: Numeric, viscous: Numeric, coulomb: Numeric, efficiency: Numeric) -> Numeric:
    """The friction effort, opposing +speed, of a gear that transmits `load`; joint side."""
    friction = viscous * speed
    lossless = ops.is_zero(1.0 - efficiency)
    if lossless and ops.is_zero(coulomb):
        return friction
    fraction = 0.0 if lossless else ops.where(load * speed > 0.0, 1.0 - efficiency, 1.0 / efficiency - 1.0)
    return friction + (coulomb + fraction * ops.abs(load)) * ops.smooth_sign(speed, CREEP_SPEED)
