"""The exact linear model of the joints of a controller about a state and its accelerations, sampled at its period.

    M δq̈ + D δq̇ + K δq = δτ,   K = ∂(inverse dynamics)/∂q,   D = ∂(inverse dynamics)/∂q̇ + damping,

discretised with a held effort (zero-order hold): x⁺ = A x + B u with x = (δq, δq̇). All other joints are at rest. The
dry friction of joints is no part of it: their damping is the slope of their friction at a speed of 1 rad/s or m/s.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import expm

from cosim.core.errors import InputError, SectionError, did_you_mean
from cosim.core.types import Array, ControllerContext
from cosim.core.units import parse_quantity

FRICTION_SPEED = 1.0  # rad/s or m/s, at which dry friction has its full value


class LinearModel(NamedTuple):
    """Of m joints at the indices `dofs` of the mechanism about the positions `at` (m,); the controller commands the
    first n of them. a: (2 m, 2 m); b: (2 m, n); disturbed: (2 m, m), of an effort on each of the joints."""

    dofs: Array
    at: Array
    a: Array
    b: Array
    disturbed: Array


class MotionLinearisation:
    """Of the joints of a controller, and of passive ones.

    index (m,): of the joints of the model; at (n,): positions of the joints of the controller at the start."""

    def __init__(self, context: ControllerContext, passive: dict[str, Any] | None) -> None:
        """passive: name -> position of joints without a drive that belong to the model.

        Raises InputError for closed loops, and SectionError for passive joints that do not exist or are commanded."""
        if context.model.constraint_rows:
            raise InputError(
                "the mechanism has closed loops, which a linear model of free joints lacks; use feedforward_pd"
            )
        balanced = _passive(context, passive or {})
        self.index = np.concatenate([context.index, np.array(list(balanced), dtype=int)])
        self._context, self._model = context, context.numeric_model
        self._chart = context.start.copy() if context.start.size else np.zeros(context.model.nv)
        self.at = self._chart[context.index]
        self._chart[list(balanced)] = list(balanced.values())

    def about(
        self, position: Array, velocity: Array | None = None, acceleration: Array | None = None, t: float = 0.0
    ) -> LinearModel:
        """The model about a state (n,) of the joints of the controller, by default at rest, and its accelerations
        (n,), at time t [s]."""
        equations, n = self._model.equations, len(self._context.index)
        chart, rest = self._of_all(self._chart, position), np.zeros(len(self._chart))
        v, a = (self._of_all(rest, given) for given in (velocity, acceleration))
        q = np.asarray(self._model.coordinates(chart), dtype=float)
        derivatives = self._model.inverse_dynamics_derivatives(q, v, a, *((t,) if equations.timed else ()))
        own = np.ix_(self.index, self.index)
        by_position, by_velocity, mass = (np.asarray(values)[own] for values in derivatives)
        stiffness, damping = by_position, by_velocity + np.diag(self._damping)
        return _sampled(self.index, chart[self.index], mass, damping, stiffness, n, self._context.period)

    def _of_all(self, others: Array, own: Array | None) -> Array:
        """(nv,) with values (n,) of the joints of the controller."""
        values = others.copy()
        if own is not None:
            values[self._context.index] = own
        return values

    @cached_property
    def _damping(self) -> Array:
        """(m,) slope of the friction of the joints."""
        friction, nv = self._model.equations.friction_effort, len(self._chart)
        slope = friction(np.full(nv, FRICTION_SPEED + 0.5)) - friction(np.full(nv, FRICTION_SPEED - 0.5))
        return np.asarray(slope)[self.index]


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
            found[names.index(name)] = _position(position, context.model.dof_units[names.index(name)], name)
        except ValueError as error:
            raise SectionError(str(error), ("passive", name)) from None
    return found


def _position(given: Any, unit: str, joint: str) -> float:
    """The position [rad or m] of a passive joint. Raises ValueError for anything else, or another unit."""
    if isinstance(given, str):
        return parse_quantity(given, unit, f"joint '{joint}'")
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not math.isfinite(given):
        raise ValueError(f"expected a position in {unit}, got {given}")
    return float(given)
