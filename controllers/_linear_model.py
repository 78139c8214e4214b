"""The exact linear model of the joints of a controller about a state at rest, sampled at its period.

    M δq̈ + D δq̇ + K δq = δτ,   K = ∂(inverse dynamics)/∂q + springs,   D = damping of the joints,

discretised with a held effort (zero-order hold): x⁺ = A x + B u with x = (δq, δq̇). All other joints are at rest. The
dry friction of joints is no part of it: D is the slope of their friction at a speed of 1 rad/s or m/s.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import expm

from cosim.errors import InputError, SectionError, did_you_mean
from cosim.types import Array, ControllerContext
from cosim.units import parse_any

FRICTION_SPEED = 1.0  # rad/s or m/s, at which dry friction has its full value


class LinearModel(NamedTuple):
    """Of m joints at the indices `dofs` of the mechanism about the positions `at` (m,); the controller commands the
    first n of them. a: (2 m, 2 m); b: (2 m, n); disturbed: (2 m, m), of an effort on each of the joints."""

    dofs: Array
    at: Array
    a: Array
    b: Array
    disturbed: Array


def linear_model(
    context: ControllerContext, at: tuple[float, ...] | None, passive: dict[str, Any] | None
) -> LinearModel:
    """at: positions (n,) of the joints of the controller, by default those at the start; passive: name -> position of
    joints without a drive that belong to the model.

    Raises InputError for closed loops, and SectionError for passive joints that do not exist or are commanded."""
    if context.model.constraint_rows:
        raise InputError(
            "the mechanism has closed loops, which a linear model of free joints lacks; use feedforward_pd"
        )
    balanced = _passive(context, passive or {})
    index = np.concatenate([context.index, np.array(list(balanced), dtype=int)])
    chart = context.start.copy() if context.start.size else np.zeros(context.model.nv)
    chart[context.index] = chart[context.index] if at is None else at
    chart[list(balanced)] = list(balanced.values())
    mass, damping, stiffness = _second_order(context, chart, index)
    return _sampled(index, chart[index], mass, damping, stiffness, len(context.index), context.period)


def _second_order(context: ControllerContext, chart: Array, index: Array) -> tuple[Array, Array, Array]:
    """(M, D, K) of the joints at `index`, with the mechanism at rest in `chart` (nv,)."""
    model = context.numeric_model
    equations, nv = model.equations, model.nv
    time = (0.0,) if equations.timed else ()
    q, rest = np.asarray(model.coordinates(chart), dtype=float), np.zeros(nv)
    by_position, _, mass = model.inverse_dynamics_derivatives(q, rest, rest, *time)
    slope = equations.friction_effort(np.full(nv, FRICTION_SPEED + 0.5)) - equations.friction_effort(
        np.full(nv, FRICTION_SPEED - 0.5)
    )
    springs = np.zeros(nv)
    for k in index:  # they are linear
        moved = np.asarray(equations.coordinates(chart + np.eye(nv)[k]))
        springs[k] = (equations.spring_effort(moved) - equations.spring_effort(q))[k]
    own = np.ix_(index, index)
    return np.asarray(mass)[own], np.diag(slope[index]), np.asarray(by_position)[own] + np.diag(springs[index])


def _sampled(
    index: Array, at: Array, mass: Array, damping: Array, stiffness: Array, n: int, period: float
) -> LinearModel:
    m = len(index)
    inverse = np.linalg.inv(mass)
    flow = np.zeros((3 * m, 3 * m))  # of (δq, δq̇, effort), the effort held
    flow[:m, m : 2 * m] = np.eye(m)
    flow[m : 2 * m] = inverse @ np.hstack([-stiffness, -damping, np.eye(m)])
    step = expm(flow * period)[: 2 * m]
    disturbed = step[:, 2 * m :]
    return LinearModel(index, at, step[:, : 2 * m], disturbed[:, :n], disturbed)


def _passive(context: ControllerContext, passive: dict[str, Any]) -> dict[int, float]:
    """Index -> position of the passive joints. Raises SectionError."""
    names = context.model.dof_names
    found = {}
    for name, position in passive.items():
        if name not in names:
            raise SectionError(f"there is no joint '{name}'{did_you_mean(name, names)}", ("passive", name))
        if name in context.joints:
            raise SectionError(f"the controller commands joint '{name}'; take it out", ("passive", name))
        if context.prescribed[names.index(name)]:
            raise SectionError(f"joint '{name}' is prescribed; take it out", ("passive", name))
        try:
            found[names.index(name)] = float(parse_any(position) if isinstance(position, str) else position)
        except (ValueError, TypeError):
            raise SectionError(f"expected a position such as 0 deg, got '{position}'", ("passive", name)) from None
    return found
