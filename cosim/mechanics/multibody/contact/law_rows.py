"""The law of a contact as numbers of its rows in one step: what its springs add to W, and to the velocity that
complementarity is required of.

A point has springs of stiffness k along t1, t2 and n with dampers beside them, a friction element behind the
tangential ones, and no pull. In a step of length h with the impulse Λ, the gap g in its middle, and f the tangential
force of the springs before,

    0 ≤ Λ_n ⊥ u_n + Λ_n / (h a_n) + k g / a_n ≥ 0,    a_n = ½ k h + d_n,
    w = u_t + Λ_t / (h a_t) − f / a_t,                a_t = k h + d_t,    w the velocity of the friction element,
    f⁺ = f + (Λ_t / h − f) k h / a_t,

implicit in the springs. The force is the state: a contact at rest does not creep. A rigid point has no springs:
Moreau's law of velocities, with a part of a penetration corrected per step, and Newton's law of impact. Among the
impulses that rigid points may have where there are more than needed, those next to known ones are taken: u is required
with ε W (Λ − Λ known) beside it, which vanishes at rest (proximal point method). Λ known is that of the step before,
or where a point touches first, that of soft points, which share a load.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.contact.shapes import ContactLaw

PROXIMAL, SOFT = 1e-6, 1e-2  # ε, of the mean mobility of a rigid point, and of a soft one
# the penetration of a rigid point is corrected by this part per step, no faster than with this time constant: a body
# that is 4 mm deep is pushed out with less than its weight, and does not fly off
CORRECTED, SLOWEST_CORRECTION = 0.2, 0.02  # 1, s
SLOWEST_BOUNCE = 0.05  # m/s, of the approach; below, a rigid point does not rebound
TOUCHES = 1e-3  # m/s, gap over half a step; below, a rigid point with restitution touches
NO_ROW = 1e4  # m/s, beyond any velocity of a contact
LEAST_RESTITUTION = 0.01  # that dampers give; the damping ratio is 4.8 there
NEWTON_STEPS = 8  # of the damping ratio
IMMOBILE = 1e-9  # W of a direction in which nothing moves, relative to the compliance of the springs in a step
LEAST_WAY, LEAST_PART = 1e-12, 1e-6  # m in a step; of a step
STUCK_SPEED = 1e-3  # m/s; a point that touches at a lower tangential speed has static friction


class PointState(NamedTuple):
    """What a point keeps from step to step. force (rows,): along t1, t2, n [N] and further rows; spring (2,): of the
    tangential springs [N]; slides (): 1 where it slides."""

    force: Numeric
    spring: Numeric
    slides: Numeric


class PointTerms(NamedTuple):
    """compliance (rows,): added to the diagonal of W [1/kg]; shift (rows,): to the velocity [m/s]; friction (): μ;
    relaxed (2,): part of the change of a tangential force that its spring takes, see `spring_after`."""

    compliance: Numeric
    shift: Numeric
    friction: Numeric
    relaxed: Numeric


def point_terms(
    law: ContactLaw,
    gap: Numeric,
    before: Numeric,
    free: Numeric,
    mobility: Numeric,
    state: PointState,
    h: Numeric,
    for_slopes: bool = False,
) -> PointTerms:
    """gap [m] in the middle of the step of length h [s]; before, free (rows,): velocity before the step, and after it
    without impulses [m/s]; mobility (rows,): diagonal of W [1/kg]. Rows of moments are as those of a rigid point."""
    touched = state.force[2] > 0.0
    slow = before[0] * before[0] + before[1] * before[1] <= STUCK_SPEED**2
    static = ops.logical_and(state.slides < 0.5, ops.logical_or(touched, slow))
    friction, moments = ops.where(static, law.static, law.sliding), np.zeros(len(mobility) - 3)
    turning = PROXIMAL * mobility[3:]
    if law.stiffness is None:
        kept = PROXIMAL / 3.0 * ops.sum(mobility[:3]) * np.ones(3)
        shift = ops.concatenate([_rigid_shift(law, gap, before, free, h, for_slopes), moments])
        return PointTerms(ops.concatenate([kept, turning]), shift, friction, np.ones(2))
    k = law.stiffness
    damping = [_damping(law, k, mobility[i], h) for i in range(3)]
    across = [k * h + damping[i] for i in range(2)]
    normal, pressing = 0.5 * k * h + ops.where(gap < 0.0, damping[2], 0.0), 1.0
    if for_slopes:
        pressing, inside = begun(gap, before[2], h)
        normal = 0.5 * pressing * k * h + inside * damping[2]
    compliance = [1.0 / (h * a) for a in (*across, normal)]
    shift = [-state.spring[0] / across[0], -state.spring[1] / across[1], k * gap * pressing / normal, *moments]
    relaxed = ops.array([k * h / a for a in across])
    return PointTerms(ops.array([*compliance, *turning]), ops.array(shift), friction, relaxed)


def part_inside(gap: Numeric, speed: Numeric, h: Numeric) -> Numeric:
    """φ, the part of the step in which a point is inside; gap: in the middle [m], speed: of the gap before [m/s]."""
    return ops.clip(0.5 - gap / ops.maximum(h * ops.abs(speed), LEAST_WAY), LEAST_PART, 1.0)


def comes(gap: Numeric, speed: Numeric, h: Numeric) -> Numeric:
    """Whether the point is outside at the start of the step."""
    return gap - 0.5 * h * speed >= 0.0


# A touch begins at an instant, and a step has all of the damper or nothing, and the spring at its end. That is the law
# to the order of the step. But where the instant moves, the impulse stands still, and jumps where the touch comes into
# another step: the derivative of the step is none of the motion. For it the impulse is the one of the law from the
# instant on, and to the instant at which a contact opens.


def begun(gap: Numeric, speed: Numeric, h: Numeric) -> tuple[Numeric, Numeric]:
    """(mean force of the spring as a part of the one at the end of the step, mean of the damper likewise)."""
    part, begins = part_inside(gap, speed, h), comes(gap, speed, h)
    return ops.where(begins, 0.5 * part, 1.0), ops.where(begins, part, ops.where(gap < 0.0, 1.0, 0.0))


def last_impulse(force: Numeric, impulse: Numeric, at_end: Numeric, h: Numeric) -> Numeric:
    """Normal impulse [N s] of a step in which a contact opens and the law has none: `impulse` is 0. Its force falls
    from `force` at the start through 0 to `at_end`, which a contact cannot have."""
    opens = ops.logical_and(force > 0.0, impulse <= 0.0)
    return ops.where(opens, 0.5 * h * force * force / ops.where(opens, force - at_end, 1.0), 0.0)


def spring_after(terms: PointTerms, force: Numeric, state: PointState) -> Numeric:
    """(2,) the force of the tangential springs after a step in which the point exerts `force` (3,)."""
    loaded = state.spring + (force[:2] - state.spring) * terms.relaxed
    return ops.where(force[2] > 0.0, loaded, 0.0)


def _rigid_shift(
    law: ContactLaw, gap: Numeric, before: Numeric, free: Numeric, h: Numeric, for_slopes: bool
) -> Numeric:
    closing = ops.where(gap > 0.0, 2.0 * gap / h, gap * ops.minimum(CORRECTED / h, 1.0 / SLOWEST_CORRECTION))
    if ops.is_zero(law.restitution):
        return ops.array([0.0, 0.0, closing])
    reached = free[2] + closing < 0.0
    hits = ops.logical_and(reached, before[2] < -SLOWEST_BOUNCE)
    # only an impact of others brings a point here that is apart and not reached: it hits in the next step, with the
    # velocity that it has then, and would not rebound in this one
    apart = ops.logical_and(ops.logical_not(reached), closing > TOUCHES)
    later = ops.logical_and(apart, law.restitution > 0.0)
    closing = ops.where(later, closing + NO_ROW, closing)
    rebound = law.restitution * before[2]
    if for_slopes:  # of the velocity at the impact, and what changes it afterwards
        part, change = part_inside(gap, before[2], h), free[2] - before[2]
        rebound = rebound + (law.restitution * (1.0 - part) - part) * change
    return ops.array([0.0, 0.0, ops.where(hits, rebound, closing)])


def _damping(law: ContactLaw, k: Numeric, mobility: Numeric, h: Numeric) -> Numeric:
    """N s/m, of the mass that moves along the direction; none where nothing can."""
    moves = mobility * k * h * h > IMMOBILE
    mass = 1.0 / ops.where(moves, mobility, 1.0)
    return ops.where(moves, 2.0 * damping_ratio(law.restitution) * ops.sqrt(k * mass), 0.0)


def damping_ratio(restitution: Numeric) -> Numeric:
    """ζ of a spring and a damper that do not pull, on which a mass rebounds with this part of its velocity (Schwager
    and Pöschel, Granular Matter 9, 2007):

        e = exp(−2 ζ arccos(ζ) / √(1 − ζ²)),    with arcosh and ζ² − 1 beyond ζ = 1.
    """
    wanted = -ops.log(ops.maximum(restitution, LEAST_RESTITUTION))
    ratio = wanted / ops.sqrt(np.pi**2 + wanted * wanted)  # where the mass may be pulled
    for _ in range(NEWTON_STEPS):
        exponent, slope = _exponent(ratio)
        ratio = ops.maximum(ratio - (exponent - wanted) / slope, 1e-9)
    return ratio


def _exponent(ratio: Numeric) -> tuple[Numeric, Numeric]:
    """(2 ζ arccos(ζ) / √(1 − ζ²), its derivative); by its series at ζ = 1."""
    d = ratio - 1.0
    near = ops.abs(d) < 1e-3
    below, above = ops.where(d < -1e-3, ratio, 0.5), ops.where(d > 1e-3, ratio, 2.0)
    r = ops.sqrt(1.0 - below * below)
    low = ops.atan2(r, below) / r
    s = ops.sqrt(above * above - 1.0)
    high = ops.log(above + s) / s
    series = 1.0 - d / 3.0 + 2.0 / 15.0 * d * d
    f = ops.where(near, series, ops.where(d < 0.0, low, high))
    # of f = arccos(ζ)/√(1 − ζ²): (1 − ζ²) f′ = ζ f − 1
    apart = ops.where(near, 1.0, 1.0 - ratio * ratio)
    change = ops.where(near, -1.0 / 3.0 + 4.0 / 15.0 * d, (ratio * f - 1.0) / apart)
    return 2.0 * ratio * f, 2.0 * (f + ratio * change)
