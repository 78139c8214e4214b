"""The exact solution of one contact: it opens, sticks or slides.

With u = A Λ + c: where it slides, u_n = 0 gives Λ_n, and u_T = −α Λ_T turns the tangential rows into
(S + α E) Λ_T = −s with S = A_TT − A_Tn A_nT / A_nn, which is diagonal in its principal axes. |Λ_T| = μ Λ_n then is one
equation in α > 0 (Bonnefon and Daviet 2011 write it as a quartic). As μ Λ_n / |Λ_T| is nearly linear in α, Newton's
method takes a few steps; a bracket keeps it from leaving the root.
"""

from __future__ import annotations

from functools import cache

from cosim.core import ops
from cosim.core.compile.routine import Routine, call_when
from cosim.core.compile.while_loop import WhileLoop
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.cone import DEAD, TINY, can_move, length

STILL = 1e-12  # of |c|: a velocity below it counts as none where nothing can be moved
ENOUGH = 1e-15  # relative error of |Λ_T| = μ Λ_n
MOST_STEPS = 60
UNBOUNDED = 1e300
GROWTH = 10.0  # of α in a step, at most: far out the root is not seen


def step_to_slide(x: Numeric, of: Numeric) -> tuple[Numeric, Numeric]:
    """A step for α, and whether it was not enough. x: α and the bracket of the root; of: s, a = A_Tn / A_nn and the
    principal values of S, all in their axes, then −c_n / A_nn and μ."""
    alpha, low, high = x
    s1, s2, a1, a2, l1, l2, base, friction = of
    i1, i2 = 1.0 / (l1 + alpha), 1.0 / (l2 + alpha)
    x1, x2 = -s1 * i1, -s2 * i2
    size, normal = length(x1, x2), base - a1 * x1 - a2 * x2
    slope1, slope2 = -x1 * i1, -x2 * i2
    size_slope, normal_slope = (x1 * slope1 + x2 * slope2) / size, -a1 * slope1 - a2 * slope2
    excess = friction * normal / size - 1.0
    slope = friction * (normal_slope * size - normal * size_slope) / (size * size)
    low, high = ops.where(excess < 0.0, alpha, low), ops.where(excess < 0.0, high, alpha)
    farthest = GROWTH * alpha + l1
    newton = ops.minimum(alpha - excess / ops.where(slope > 0.0, slope, TINY), farthest)
    halved = ops.where(high < UNBOUNDED, 0.5 * (low + high), farthest)
    following = ops.where(ops.logical_and(newton > low, newton < high), newton, halved)
    more = ops.logical_and(ops.abs(excess) > ENOUGH, high - low > ENOUGH * alpha)
    more = ops.logical_and(more, friction > 0.0)  # without friction nothing depends on α
    return ops.array([ops.where(more, following, alpha), low, high]), ops.where(more, 1.0, 0.0)


@cache
def _slide() -> WhileLoop:
    return WhileLoop(Routine(step_to_slide, [(3,), (8,)], "slide"), MOST_STEPS)


def slid(of: Numeric, guess: Numeric) -> Numeric:
    """(3,): Λ_T in the principal axes, and Λ_n, of a contact that slides; of: see `step_to_slide`. It is on the cone to
    rounding, whatever is missing of α."""
    (alpha, _, _), _, _ = _slide()(ops.array([guess, 0.0, UNBOUNDED]), of)
    s1, s2, a1, a2, l1, l2, base, friction = of
    x1, x2 = -s1 / (l1 + alpha), -s2 / (l2 + alpha)
    size = length(x1, x2)
    d1, d2 = x1 / size, x2 / size
    lever = 1.0 + friction * (a1 * d1 + a2 * d2)
    normal = ops.where(lever > 1e-9, base / ops.where(lever > 1e-9, lever, 1.0), base - a1 * x1 - a2 * x2)
    normal = ops.maximum(normal, 0.0)
    return ops.array([friction * normal * d1, friction * normal * d2, normal])


@cache
def _slid() -> Routine:
    return Routine(slid, [(8,), ()], "slid")


def one_contact(matrix: Numeric, c: Numeric, friction: Numeric, guess: Numeric) -> Numeric:
    """(3,): the impulse Λ [N s] of the rows t1, t2, n of one contact with u = A Λ + c. matrix: its rows of A (3, 3)
    [1/kg], symmetric; c (3,) [m/s]; guess: of α = |u_T| / |Λ_T|, 0 for none.

    Directions in which nothing can move get no impulse; where the normal is one, the contact stays open. Where both
    hold, it sticks rather than opens.
    """
    trace = matrix[0][0] + matrix[1][1] + matrix[2][2]
    moves = can_move([matrix[k][k] for k in range(3)])
    inverse_n = 1.0 / ops.where(moves, matrix[2][2], 1.0)
    a = [matrix[k][2] * inverse_n for k in range(2)]
    s = [c[k] - a[k] * c[2] for k in range(2)]
    base = -c[2] * inverse_n
    cosine, sine, l1, l2 = _principal(
        matrix[0][0] - matrix[0][2] * a[0], matrix[1][1] - matrix[1][2] * a[1], matrix[0][1] - matrix[0][2] * a[1]
    )
    (s1, s2), (a1, a2) = ((cosine * x + sine * y, cosine * y - sine * x) for x, y in (s, a))
    l1, l2 = ops.maximum(l1, 0.0), ops.maximum(l2, 0.0)
    least = DEAD * trace
    still = STILL * (ops.abs(c[0]) + ops.abs(c[1]) + ops.abs(c[2]))

    def stops(value: Numeric, mobility: Numeric) -> tuple[Numeric, Numeric]:
        """(the impulse that stops a principal direction, whether it does)."""
        free = mobility > least
        return ops.where(free, -value / ops.where(free, mobility, 1.0), 0.0), ops.logical_or(
            free, ops.abs(value) <= still
        )

    (x1, stopped1), (x2, stopped2) = stops(s1, l1), stops(s2, l2)
    normal = base - a1 * x1 - a2 * x2
    in_cone = ops.logical_and(normal >= 0.0, x1 * x1 + x2 * x2 <= friction * friction * normal * normal)
    sticks = ops.logical_and(ops.logical_and(stopped1, stopped2), ops.logical_and(moves, in_cone))
    slides = ops.logical_and(ops.logical_and(moves, c[2] < 0.0), ops.logical_not(sticks))
    even = length(s1, s2) / ops.maximum(friction * base, TINY) - 0.5 * (l1 + l2)  # exact where S = l E and a = 0
    start = ops.where(guess > 0.0, guess, ops.minimum(even, 1e6 * (trace + TINY)))
    start = ops.maximum(start, 1e-12 * trace + TINY)
    of = ops.array([s1, s2, a1, a2, l1, l2, base, friction])
    impulse = call_when(slides, _slid(), (of, start), [ops.array([0.0, 0.0, 0.0])])
    x1, x2, normal = (ops.where(sticks, value, other) for value, other in zip((x1, x2, normal), impulse, strict=True))
    return ops.array([cosine * x1 - sine * x2, sine * x1 + cosine * x2, normal])


def _principal(xx: Numeric, yy: Numeric, xy: Numeric) -> tuple[Numeric, Numeric, Numeric, Numeric]:
    """(cosine, sine, larger value, smaller value) of the principal axes of a symmetric 2 × 2 matrix."""
    mean, half = 0.5 * (xx + yy), 0.5 * (xx - yy)
    radius = length(half, xy)
    even = radius <= 1e-14 * ops.abs(mean) + 1e-140
    cos2, sin2 = (ops.where(even, 0.0, value / radius) for value in (half, xy))
    # the larger of the two by a root, the other by the double angle: it would lose half its digits in a root
    larger = ops.where(even, 1.0, ops.sqrt(0.5 * (1.0 + ops.abs(cos2))))
    smaller = 0.5 * sin2 / larger
    along_x = half >= 0.0
    return ops.where(along_x, larger, smaller), ops.where(along_x, smaller, larger), mean + radius, mean - radius


def one_disk(matrix: Numeric, c: Numeric, radius: Numeric, guess: Numeric) -> Numeric:
    """(1,) or (2,): the impulse of a disk of friction whose normal impulse is given, with u = A Λ + c: of the greatest
    dissipation with |Λ| ≤ radius. It is that of a contact whose normal row stands alone, with the disk's mobility."""
    size, zero = len(c), [0.0, 0.0, 0.0]
    trace = ops.sum(matrix[k][k] for k in range(size))
    normal = ops.where(trace > 0.0, trace, 1.0)
    rows = [[*matrix[k], *zero[size:]] for k in range(size)] + [zero] * (2 - size)
    given = [*c, *zero[size:2], -radius * normal]
    return one_contact([*rows, [0.0, 0.0, normal]], given, 1.0, guess)[:size]
