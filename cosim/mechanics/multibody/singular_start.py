"""Velocities in a singular configuration, where several motions of a mechanism cross: a flat parallelogram.

G has less than its rank there, so G v = 0 leaves more velocities than there are motions. Those of motions keep the
loops closed to second order too: f̈ = G v̇ + γ(v) = 0 has a solution v̇ only if γ has no part in the left null space of
G. γ is quadratic in v, so there is one velocity for each motion, up to a factor.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cosim.core.types import Array
from cosim.mechanics.multibody.model import Model

BEND = 1e-3  # rad or m, step of the fastest dof over which the second derivative of a residual is taken
FOLLOWS = 1e-4  # of f̈ at a speed of 1, what may remain
STARTS, STEPS = 12, 30  # of the search


def velocity_of_motion(
    model: Model, q: Array, v: Array, kept: Array, G: Array, t: float, ill_conditioned: float
) -> Array | None:
    """The velocities (nv,) of a motion through q that are nearest to v, which satisfies the rates of the constraints;
    None if none is found or v is at rest.

    kept: (nv,) dofs whose velocity is fixed. G: (m, nv) at q; ill_conditioned: its condition number beyond which rows
    depend on each other."""
    speed = float(np.abs(v).max(initial=0.0))
    if not speed > 0.0:
        return None
    left, sizes, _ = np.linalg.svd(G[model.equations.constraints.holonomic])
    left = left[:, _rank(sizes, ill_conditioned) :].T
    defect = _defect(model, q, left, t)
    free = np.zeros((model.nv, 0))
    if not kept.all():
        _, sizes, directions = np.linalg.svd(G[:, ~kept])
        free = np.eye(model.nv)[:, ~kept] @ directions[_rank(sizes, ill_conditioned) :].T
    rng, found = np.random.default_rng(3), []
    for k in range(STARTS):
        start = v + speed * free @ rng.normal(size=free.shape[1]) * (k > 0)
        velocity = _solved(defect, start, free)
        size = np.abs(velocity).max(initial=0.0)
        if np.abs(defect(velocity)).max(initial=0.0) < FOLLOWS * size**2:
            found.append(velocity)
        if k == 0 and found:  # nothing has to change
            break
    return min(found, key=lambda velocity: float(np.linalg.norm(velocity - v)), default=None)


def _rank(sizes: Array, ill_conditioned: float) -> int:
    return int((sizes * ill_conditioned > sizes.max(initial=0.0)).sum())


def _defect(model: Model, q: Array, left: Array, t: float) -> Callable[[Array], Array]:
    """The part of γ(v) in the left null space of G, as a function of v."""
    equations = model.equations
    closure = equations.closure.whole
    here = closure(q, t)[0]

    def defect(v: Array) -> Array:
        speed = np.abs(v).max(initial=0.0) or 1.0
        moved = (np.asarray(equations.integrate(q, sign * BEND / speed * v)) for sign in (-1.0, 1.0))
        before, after = (closure(np.asarray(equations.normalised(place)), t)[0] for place in moved)
        return left @ (after - 2.0 * here + before) * (speed / BEND) ** 2

    return defect


def _solved(defect: Callable[[Array], Array], v: Array, free: Array) -> Array:
    """v + free y whose defect vanishes, or is as small as Gauss and Newton's method makes it. The defect is a quadratic
    form, so its derivative along u is (defect(v + u) − defect(v − u)) / 2."""
    for _ in range(STEPS if free.shape[1] else 0):
        here = defect(v)
        slope = np.stack([0.5 * (defect(v + u) - defect(v - u)) for u in free.T], axis=1)
        step = free @ np.linalg.lstsq(slope, here, rcond=1e-9)[0]
        v = v - step
        if np.abs(step).max() <= 1e-12 * np.abs(v).max(initial=0.0):
            break
    return v
