"""The linear models along the reference of a controller, and the cost to go of a regulator over them.

A model holds from the period at which it begins to the next one, about the reference in the middle of that time. The
cost to go comes from the Riccati equation of a finite horizon (Anderson and Moore, Optimal Control, §2.4), backwards
from the stationary cost at the end of the motion,

    Pₖ = Q + Aₖᵀ Pₖ₊₁ (Aₖ − Bₖ Kₖ),    Kₖ = (R + Bₖᵀ Pₖ₊₁ Bₖ)⁻¹ Bₖᵀ Pₖ₊₁ Aₖ.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, solve_discrete_are

from cosim.core.errors import InputError, SectionError
from cosim.core.types import Array, ControllerContext
from cosim.plugins.controllers._linear_model import LinearModel, MotionLinearisation

MOST_MODELS = 200  # of a motion: an arm hardly turns between two of them
System = tuple[Array, Array]  # (A, B)


class Stages(NamedTuple):
    """The linear models of a mechanism along a reference, in order of time. begins (k,): the first period of each
    model."""

    begins: Array
    models: list[LinearModel]


def at_one_state(linearisation: MotionLinearisation, at: Sequence[float] | None) -> Stages:
    """at: (n,) positions, by default those at the start."""
    return Stages(np.zeros(1, int), [linearisation.about(linearisation.at if at is None else np.array(at))])


def along_reference(
    linearisation: MotionLinearisation, at: Sequence[float] | None, context: ControllerContext
) -> Stages:
    """The last model belongs to the end of the motion. Without a trajectory, the model at the start. Raises InputError
    for a motion without an end, and SectionError where `at` is given."""
    if at is not None:
        raise SectionError("the model is linearised along the reference; take it out, or set along: state", ("at",))
    trajectory, period = context.trajectory, context.period
    if trajectory is None:
        return at_one_state(linearisation, None)
    if not math.isfinite(trajectory.end):
        raise InputError("the trajectory has no end, so the gains along it have no last value; use along: state")
    periods = max(math.ceil(trajectory.end / period - 1e-9), 0)
    begins = np.append(np.arange(0, periods, max(math.ceil(periods / MOST_MODELS), 1)), periods)
    models = []
    for first, after in zip(begins, [*begins[1:], periods], strict=True):
        t = 0.5 * float(first + after) * period
        sample = trajectory.sample(t)
        state = (np.asarray(sample[name], dtype=float) for name in ("position", "velocity", "acceleration"))
        models.append(linearisation.about(*state, t=t))
    return Stages(begins, models)


def stationary_cost(a: Array, b: Array, q: Array, r: Array) -> Array:
    """P of the regulator that minimises Σ eᵀ q e + δτᵀ r δτ over e⁺ = a e + b δτ without an end.

    Raises InputError where no gain is stabilising."""
    try:
        p = solve_discrete_are(a, b, q, r)
    except (LinAlgError, ValueError):
        p = None
    if p is None or np.abs(np.linalg.eigvals(a - b @ gains_of((a, b), p, r))).max() >= 1.0:
        raise InputError("no gains make the linear model stable; check 'at', the passive joints and the weights")
    return p


def gains_of(system: System, p: Array, r: Array) -> Array:
    """K (n, m) of δτ = −K e, for the cost p of the error that follows."""
    a, b = system
    return np.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)


def costs_to_go(
    begins: Array, systems: Sequence[System], q: Array, r: Array, last: Array, wanted: Collection[int]
) -> dict[int, Array]:
    """Period -> P at these periods. systems: from the periods `begins` on; last: P from the last of them on."""
    p, end = last, int(begins[-1])
    found = {k: last for k in wanted if k >= end}
    for k in range(end - 1, min(wanted, default=end) - 1, -1):
        a, b = system = system_at(begins, systems, k)
        p = q + a.T @ p @ (a - b @ gains_of(system, p, r))
        p = 0.5 * (p + p.T)
        if k in wanted:
            found[k] = p
    return found


def system_at(begins: Array, systems: Sequence[System], period: int) -> System:
    return systems[int(np.searchsorted(begins, period, side="right")) - 1]
