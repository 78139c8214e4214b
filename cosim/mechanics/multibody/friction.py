"""Friction of a shaft, a slide or a joint, without and with stiction.

    smooth    F = b v + F_c s(v), s(v) = v / √(v² + v_0²)
    stribeck  F = b v + g(v) s(v), g(v) = F_c + (F_s − F_c) exp(−(v / v_s)²)
    lugre     F = b v + σ₀ z + σ₁ ż, ż = v − σ₀ |v| z / g(v)

Under load the first two creep at rest. The bristles of `lugre` deflect by z and hold (Canudas de Wit, Olsson, Åström
and Lischinsky, IEEE Trans. Automatic Control 40(3), 1995).
"""

from __future__ import annotations

from typing import Literal

from cosim.core import ops
from cosim.core.types import Numeric, param, params

# speed [rad/s or m/s] at which Coulomb friction has 1/√2 of its full value; below it joints creep instead of sticking
FRICTION_SPEED = 0.01


@params
class Friction:
    """The parameters and the pure law; `load`: a part of F_c and F_s that grows with the load [N m or N]."""

    coulomb: float = param(unit="joint effort", above=0.0, doc="F_c, while it slides")
    model: Literal["smooth", "stribeck", "lugre"] = param(default="lugre", doc="of the dry friction")
    static: float | None = param(unit="joint effort", above=0.0, default=None, doc="F_s, breakaway; by default F_c")
    stribeck_speed: float = param(unit="joint velocity", above=0.0, default=0.01, doc="v_s")
    viscous: float = param(unit="joint damping", min=0.0, default=0.0, doc="b")
    creep_speed: float = param(unit="joint velocity", above=0.0, default=0.01, doc="v_0, of smooth and stribeck")
    bristle_stiffness: float = param(unit="joint stiffness", above=0.0, default=1e4, doc="σ₀ of lugre")
    bristle_damping: float = param(unit="joint damping", min=0.0, default=0.0, doc="σ₁ of lugre")

    def __post_init__(self) -> None:
        if self.static is not None and self.static < self.coulomb:
            raise ValueError(f"static is {self.static:g}, less than coulomb with {self.coulomb:g}; exchange them")

    @property
    def sticks(self) -> bool:
        """Whether bristles hold a load at rest."""
        return self.model == "lugre"

    def dry_friction(self, v: Numeric, load: Numeric = 0.0) -> Numeric:
        """g(v)"""
        if self.static is None or self.model == "smooth":
            return self.coulomb + load
        ratio = v / self.stribeck_speed
        return self.coulomb + load + (self.static - self.coulomb) * ops.exp(-(ratio * ratio))

    def sliding_effort(self, v: Numeric, load: Numeric = 0.0) -> Numeric:
        """g(v) s(v), without bristles: as `lugre` at a constant speed well above v_0."""
        return self.dry_friction(v, load) * ops.smooth_sign(v, self.creep_speed)

    def slip(self, v: Numeric, force: Numeric, load: Numeric = 0.0) -> Numeric:
        """|v| f / g(v): the speed of the tips of bristles with the elastic force f = σ₀ z; ż = v − slip."""
        return ops.abs(v) / self.dry_friction(v, load) * force

    def bristle_rate(self, v: Numeric, z: Numeric, load: Numeric = 0.0) -> Numeric:
        """ż"""
        return v - self.slip(v, self.bristle_stiffness * z, load)

    def bristle_effort(self, v: Numeric, z: Numeric, load: Numeric = 0.0) -> Numeric:
        """σ₀ z + σ₁ ż"""
        return self.bristle_stiffness * z + self.bristle_damping * self.bristle_rate(v, z, load)


@params
class JointFriction(Friction):
    """Friction of one dof of a mechanism."""

    load_friction: float = param(unit="1", min=0.0, default=0.0, doc="μ: F_c and F_s grow by μ |effort of the drive|")
