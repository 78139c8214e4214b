"""Friction of a shaft, a slide or a joint, without and with stiction.

    smooth    F = b v + F_c s(v), s(v) = v / √(v² + v_0²)
    stribeck  F = b v + g(v) s(v), g(v) = F_c + (F_s − F_c) exp(−|v / v_s|^α)
    lugre     F = b v + σ₀ z + σ₁ ż, ż = v − σ₀ |v| z / g(v)

Under load the first two creep at rest. The bristles of `lugre` deflect by z and hold (Canudas de Wit, Olsson, Åström
and Lischinsky, IEEE Trans. Automatic Control 40(3), 1995).

In the gears of a drive F_c and F_s grow with the torques on both sides, by which of them drives: the models M1 … M6 of
Duclusaud, Passault, Padois and Daney, Extended friction models for the physics simulation of servo actuators, IEEE
ICRA 2025 (arXiv 2410.08650).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from cosim.core import ops
from cosim.core.types import Numeric, param, params

# speed [rad/s or m/s] at which Coulomb friction has 1/√2 of its full value; below it joints creep instead of sticking
FRICTION_SPEED = 0.01
SLOW = 1e-30  # speed over v_s that counts as rest: |v / v_s|^α has no derivative at 0


class FrictionLoad(NamedTuple):
    """By what F_c and F_s grow, and by what F_s grows beyond F_c [N m or N], each 0 or more."""

    kinetic: Numeric = 0.0
    static: Numeric = 0.0


UNLOADED = FrictionLoad()


@params
class Friction:
    """The parameters and the pure law; `load`: what it grows by."""

    coulomb: float = param(unit="joint effort", above=0.0, doc="F_c, while it slides")
    model: Literal["smooth", "stribeck", "lugre"] = param(default="lugre", doc="of the dry friction")
    static: float | None = param(unit="joint effort", above=0.0, default=None, doc="F_s, breakaway; by default F_c")
    stribeck_speed: float = param(unit="joint velocity", above=0.0, default=0.01, doc="v_s")
    stribeck_exponent: float = param(unit="1", min=0.5, default=2.0, doc="α")
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

    def dry_friction(self, v: Numeric, load: FrictionLoad = UNLOADED) -> Numeric:
        """g(v)"""
        if self.model == "smooth" or (self.static is None and ops.is_zero(load.static)):
            return self.coulomb + load.kinetic
        breakaway = (0.0 if self.static is None else self.static - self.coulomb) + load.static
        return self.coulomb + load.kinetic + breakaway * self.stribeck(v)

    def stribeck(self, v: Numeric) -> Numeric:
        """How much of the breakaway is left at a speed: 1 at rest, 0 well above v_s."""
        ratio = v / self.stribeck_speed
        if not ops.is_symbolic(self.stribeck_exponent) and self.stribeck_exponent == 2.0:
            return ops.exp(-(ratio * ratio))
        return ops.exp(-ops.power(ops.maximum(ops.abs(ratio), SLOW), self.stribeck_exponent))

    def sliding_effort(self, v: Numeric, load: FrictionLoad = UNLOADED) -> Numeric:
        """g(v) s(v), without bristles: as `lugre` at a constant speed well above v_0."""
        return self.dry_friction(v, load) * ops.smooth_sign(v, self.creep_speed)

    def slip(self, v: Numeric, force: Numeric, load: FrictionLoad = UNLOADED) -> Numeric:
        """|v| f / g(v): the speed of the tips of bristles with the elastic force f = σ₀ z; ż = v − slip."""
        return ops.abs(v) / self.dry_friction(v, load) * force

    def bristle_rate(self, v: Numeric, z: Numeric, load: FrictionLoad = UNLOADED) -> Numeric:
        """ż"""
        return v - self.slip(v, self.bristle_stiffness * z, load)

    def bristle_effort(self, v: Numeric, z: Numeric, load: FrictionLoad = UNLOADED) -> Numeric:
        """σ₀ z + σ₁ ż"""
        return self.bristle_stiffness * z + self.bristle_damping * self.bristle_rate(v, z, load)


_OF_BOTH = ("quadratic_load_friction", "quadratic_external_load_friction")
# what of `JointFriction` needs the effort of the drive, of all else but inertia, and what static friction grows by
OF_DRIVE = ("load_friction", "static_load_friction", *_OF_BOTH)
OF_EXTERNAL = ("external_load_friction", "static_external_load_friction", *_OF_BOTH)
OF_STATIC = ("static_load_friction", "static_external_load_friction", *_OF_BOTH)


@params
class JointFriction(Friction):
    """Friction of one dof of a mechanism, which grows with the effort m of its drive and with the effort e of all else
    but inertia on the dof: gravity, velocities, springs, and what acts from outside.

        F_c grows by L = |μ_e e − μ_m m|
        F_s grows by L + |ν_e e − ν_m m| + Q, and where m and e are against each other,
        Q = κ_e e² if |m| > |e|, where the drive moves the load, else κ_m m², where the load drives back
    """

    load_friction: float = param(unit="1", min=0.0, default=0.0, doc="μ_m: by the effort m of the drive")
    external_load_friction: float = param(unit="1", min=0.0, default=0.0, doc="μ_e: by the load e of the mechanism")
    static_load_friction: float = param(unit="1", min=0.0, default=0.0, doc="ν_m, of F_s alone")
    static_external_load_friction: float = param(unit="1", min=0.0, default=0.0, doc="ν_e, of F_s alone")
    quadratic_load_friction: float = param(unit="inverse joint effort", min=0.0, default=0.0, doc="κ_m, of F_s alone")
    quadratic_external_load_friction: float = param(
        unit="inverse joint effort", min=0.0, default=0.0, doc="κ_e, of F_s alone"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model == "smooth" and (names := self._given(OF_STATIC)):
            raise ValueError(f"the law smooth has no static friction that {names[0]} lets grow; use model: stribeck")

    @property
    def of_drive(self) -> tuple[str, ...]:
        """The parameters, other than 0, with which it depends on the effort of the drive."""
        return self._given(OF_DRIVE)

    @property
    def of_external(self) -> tuple[str, ...]:
        """The parameters, other than 0, with which it depends on the load of the mechanism."""
        return self._given(OF_EXTERNAL)

    def _given(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if not ops.is_zero(getattr(self, name)))

    def load(self, drive: Numeric, external: Numeric) -> FrictionLoad:
        """By what it grows with the efforts m of the drive and e of all else but inertia."""
        static = _difference(self.static_external_load_friction, external, self.static_load_friction, drive)
        if self._given(_OF_BOTH):
            forward = self.quadratic_external_load_friction * external * external
            backward = self.quadratic_load_friction * drive * drive
            square = ops.where(ops.abs(drive) > ops.abs(external), forward, backward)
            static = static + ops.where(external * drive < 0.0, square, 0.0)
        return FrictionLoad(_difference(self.external_load_friction, external, self.load_friction, drive), static)


def _difference(of_external: Numeric, external: Numeric, of_drive: Numeric, drive: Numeric) -> Numeric:
    """|a e − b m|, without code for what is 0."""
    if ops.is_zero(of_external):
        return 0.0 if ops.is_zero(of_drive) else of_drive * ops.abs(drive)
    return ops.abs(of_external * external - (0.0 if ops.is_zero(of_drive) else of_drive * drive))
