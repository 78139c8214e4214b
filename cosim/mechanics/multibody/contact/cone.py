"""The cone of Coulomb's friction, and how far an impulse and a velocity are from the law of contact.

Rows of a contact: t1, t2, n. Its law, with impulse Λ [N s] and velocity u [m/s]: 0 ≤ Λ_n ⊥ u_n ≥ 0, |Λ_T| ≤ μ Λ_n, and
where it slides Λ_T = −μ Λ_n u_T / |u_T|. With De Saxcé's velocity ũ = u + μ |u_T| n it is K ∋ Λ ⊥ ũ ∈ K*, with the cone
K: |Λ_T| ≤ μ Λ_n (De Saxcé and Feng 1998; Acary and Brogliato 2008, chapter 3).
"""

from __future__ import annotations

from cosim.core import ops
from cosim.core.types import Numeric

TINY = 1e-300  # keeps the length of a vector of zeros from being a divisor of 0
DEAD = 1e-13  # of the trace of a contact's block of W: a direction with less mobility does not move by impulses
LIGHTEST = 1e-12  # [1/kg] least W of a contact that counts as one that can move


def length(x: Numeric, y: Numeric) -> Numeric:
    """|(x, y)|, not 0."""
    return ops.sqrt(x * x + y * y + TINY)


def projected(x: Numeric, friction: Numeric) -> Numeric:
    """(3,): the point of the cone K that is nearest to x (3,)."""
    across = length(x[0], x[1])
    along = (friction * across + x[2]) / (1.0 + friction * friction)  # of the foot on the edge of the cone
    inside, polar = across <= friction * x[2], friction * across <= -x[2]
    on_edge = friction * along / across
    return ops.array(
        [
            ops.where(inside, x[k], ops.where(polar, 0.0, foot))
            for k, foot in enumerate((on_edge * x[0], on_edge * x[1], along))
        ]
    )


def with_slip(velocity: Numeric, friction: Numeric) -> Numeric:
    """(3,): De Saxcé's velocity ũ."""
    slip = friction * length(velocity[0], velocity[1])
    return ops.array([velocity[0], velocity[1], velocity[2] + slip])


def mean_mobility(diagonal: Numeric) -> Numeric:
    """The mean of a contact's diagonal (3,) of W [1/kg], by which impulses and velocities are compared."""
    return ops.maximum((diagonal[0] + diagonal[1] + diagonal[2]) * (1.0 / 3.0), LIGHTEST)


def can_move(diagonal: Numeric) -> Numeric:
    """Whether the normal velocity of a contact depends on its impulse."""
    return diagonal[2] > DEAD * (diagonal[0] + diagonal[1] + diagonal[2]) + TINY


def natural_map(impulse: Numeric, velocity: Numeric, friction: Numeric, diagonal: Numeric) -> Numeric:
    """(3,) [m/s]: w (Λ − P(Λ − ũ/w)) with the projection P onto K and the mean mobility w; 0 where the law holds."""
    w = mean_mobility(diagonal)
    slipping = with_slip(velocity, friction)
    return (impulse - projected(impulse - slipping * (1.0 / w), friction)) * w


def miss(impulse: Numeric, velocity: Numeric, friction: Numeric, diagonal: Numeric) -> Numeric:
    """The largest component of the natural map [m/s]; infinite where a number is missing."""
    x, y, z = (ops.abs(component) for component in natural_map(impulse, velocity, friction, diagonal))
    return ops.where(x + y + z < float("inf"), ops.maximum(ops.maximum(x, y), z), float("inf"))
