"""The cone of Coulomb's friction, and how far an impulse and a velocity are from the law of contact.

Rows of a contact: t1, t2, n [m/s, N s], and where it resists spinning and rolling: spin about n, and roll1, roll2
across [rad/s, N m s]. Its law, with impulse Λ and velocity u: 0 ≤ Λ_n ⊥ u_n ≥ 0, and for each disk D of friction
(sliding T, spinning, rolling) |Λ_D| ≤ μ_D Λ_n, and where it moves Λ_D = −μ_D Λ_n u_D / |u_D|. With De Saxcé's velocity
ũ = u + Σ μ_D |u_D| n it is K ∋ Λ ⊥ ũ ∈ K*, with the cone K: |Λ_D| ≤ μ_D Λ_n for all D (De Saxcé and Feng 1998; Acary
and Brogliato 2008, chapter 3).
"""

from __future__ import annotations

from cosim.core import ops
from cosim.core.types import Numeric

NORMAL = 2  # row
# rows of the disks of friction, by the number of rows of a contact
DISKS: dict[int, tuple[tuple[int, ...], ...]] = {3: ((0, 1),), 4: ((0, 1), (3,)), 6: ((0, 1), (3,), (4, 5))}

TINY = 1e-300  # keeps the length of a vector of zeros from being a divisor of 0
DEAD = 1e-13  # of the trace of a contact's block of W: a direction with less mobility does not move by impulses
LIGHTEST = 1e-12  # [1/kg] least mobility of a row that counts as one that can move


def length(*components: Numeric) -> Numeric:
    """The length of a vector, not 0."""
    return ops.sqrt(ops.sum(x * x for x in components) + TINY)


def lengths(x: Numeric) -> list[Numeric]:
    """|x_D| of each disk."""
    return [length(*(x[row] for row in disk)) for disk in DISKS[len(x)]]


def projected(x: Numeric, friction: Numeric) -> Numeric:
    """The point of the cone K that is nearest to x (rows,). friction: μ of each disk.

    Its normal component solves n = x_n + Σ μ_D max(|x_D| − μ_D n, 0), which bends at one point for each disk: Newton's
    method from 0, where all disks count, ends after as many steps."""
    sizes = lengths(x)
    inside, along = x[NORMAL] >= 0.0, 0.0
    for mu, size in zip(friction, sizes, strict=True):
        inside = ops.logical_and(inside, size <= mu * x[NORMAL])
    for _ in sizes:
        above, below = x[NORMAL], 1.0
        for mu, size in zip(friction, sizes, strict=True):
            counts = ops.where(size > mu * along, mu, 0.0)
            above, below = above + counts * size, below + counts * counts
        along = above / below
    along = ops.where(inside, x[NORMAL], ops.maximum(along, 0.0))
    found = [along] * len(x)
    for disk, mu, size in zip(DISKS[len(x)], friction, sizes, strict=True):
        shrink = ops.where(inside, 1.0, ops.minimum(mu * along / size, 1.0))
        for row in disk:
            found[row] = shrink * x[row]
    return ops.array(found)


def with_slip(velocity: Numeric, friction: Numeric) -> Numeric:
    """De Saxcé's velocity ũ (rows,)."""
    slip = ops.sum(mu * size for mu, size in zip(friction, lengths(velocity), strict=True))
    return ops.array([velocity[row] + slip if row == NORMAL else velocity[row] for row in range(len(velocity))])


def mobilities(diagonal: Numeric) -> list[Numeric]:
    """Of each row, by which impulses and velocities are compared: the mean of a contact's diagonal (rows,) of W over
    t1, t2 and n, and over each other disk."""
    found = [ops.maximum((diagonal[0] + diagonal[1] + diagonal[2]) * (1.0 / 3.0), LIGHTEST)] * 3
    for disk in DISKS[len(diagonal)][1:]:
        mean = ops.sum(diagonal[row] for row in disk) * (1.0 / len(disk))
        found += [ops.maximum(mean, LIGHTEST)] * len(disk)
    return found


def can_move(diagonal: Numeric) -> Numeric:
    """Whether the normal velocity of a contact depends on its impulse."""
    return diagonal[NORMAL] > DEAD * (diagonal[0] + diagonal[1] + diagonal[2]) + TINY


def natural_map(impulse: Numeric, velocity: Numeric, friction: Numeric, diagonal: Numeric) -> Numeric:
    """(rows,) [m/s, rad/s]: w (Λ − P(Λ − ũ/w)) with the mobilities w and the projection P onto K in the metric of w;
    0 where the law holds."""
    w, slipping = mobilities(diagonal), with_slip(velocity, friction)
    # in units in which the metric is that of lengths: those of t1, t2, n stay
    unit = [1.0 if row <= NORMAL else ops.sqrt(w[row] / w[NORMAL]) for row in range(len(w))]
    scaled = [mu * unit[disk[0]] for mu, disk in zip(friction, DISKS[len(w)], strict=True)]
    near = projected(ops.array([(impulse[k] - slipping[k] / w[k]) * unit[k] for k in range(len(w))]), scaled)
    return ops.array([(impulse[k] - near[k] / unit[k]) * w[k] for k in range(len(w))])


def miss(impulse: Numeric, velocity: Numeric, friction: Numeric, diagonal: Numeric) -> Numeric:
    """The largest component of the natural map [m/s, rad/s]; infinite where a number is missing."""
    parts = natural_map(impulse, velocity, friction, diagonal)
    worst, total = 0.0, 0.0
    for row in range(len(diagonal)):
        size = ops.abs(parts[row])
        worst, total = ops.maximum(worst, size), total + size
    return ops.where(total < float("inf"), worst, float("inf"))
