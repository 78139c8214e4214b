"""The linear-quadratic regulator of the joints of a controller, about its reference.

The error e = (q − r, v − v_r) of the joints, passive ones included, follows e⁺ = A e + B δτ of the `LinearModel`. The
gains K minimise Σ eᵀ Q e + δτᵀ R δτ. Bryson's rule gives the weights: 1 / (the largest value that is acceptable)².
With an integral, ∫ (q − r) of the joints of the controller is a part of the error.

    effort = τ(r, v_r, a_r) + friction(v_r) + reference effort − K e

τ is the inverse dynamics at the reference, see `_required_effort`, with the passive joints at rest where they balance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.linalg import LinAlgError, solve_discrete_are

from cosim import ops
from cosim.controllers._linear_model import LinearModel, linear_model
from cosim.controllers._required_effort import RequiredEffort
from cosim.errors import InputError
from cosim.types import REFERENCE, Array, ControllerContext, Numeric, PerJoint, param, params


@params
class Weights:
    """The keys of a controller with this regulator."""

    largest_position_error: PerJoint = param(
        unit="joint position", above=0, constant=True, doc="weight of the position"
    )
    largest_velocity_error: PerJoint | None = param(
        unit="joint velocity", above=0, constant=True, default=None, doc="weight of the velocity; none: not weighted"
    )
    largest_effort: PerJoint | None = param(
        unit="joint effort", above=0, constant=True, default=None, doc="weight of the effort; none: the effort limit"
    )
    at: PerJoint | None = param(
        unit="joint position", constant=True, default=None, doc="where the model is linearised; none: at the start"
    )
    passive: dict | None = param(default=None, doc="joints without a drive, and where they balance")
    largest_passive_error: float = param(above=0, constant=True, default=0.1, doc="weight of their position, rad or m")


def riccati_gains(a: Array, b: Array, q: Array, r: Array) -> Array:
    """K (n, m) of δτ = −K e, that minimises Σ eᵀ q e + δτᵀ r δτ over e⁺ = a e + b δτ.

    Raises InputError where no gain is stabilising."""
    try:
        p = solve_discrete_are(a, b, q, r)
    except (LinAlgError, ValueError):
        p = None
    gains = None if p is None else np.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
    if gains is None or np.abs(np.linalg.eigvals(a - b @ gains)).max() >= 1.0:
        raise InputError("no gains make the linear model stable; check 'at', the passive joints and the weights")
    return gains


class LinearRegulator:
    """weights: diagonals (2 m,) of Q and (n,) of R; gains (n, 2 m): on the errors of position and velocity of the m
    joints; integral_gains (n, n)."""

    def __init__(self, params: Weights, context: ControllerContext, largest_integral: Sequence[float] | None = None):
        """largest_integral: weights (n,) of the integral of the error [rad s or m s], None: without it. Raises
        InputError for weights that are missing, and as `linear_model`."""
        self.model: LinearModel = linear_model(context, params.at, params.passive)
        self._n, self._m = len(context.joints), len(self.model.dofs)
        self.required_effort = RequiredEffort(context, self.model.dofs)
        q, r = self.weights = self._weights(params, context)
        a, b = self.model.a, self.model.b
        if largest_integral is not None:
            n, m = self._n, self._m
            # the sum of the errors of all periods before, times the period
            sums = np.hstack([context.period * np.eye(n, m), np.zeros((n, m)), np.eye(n)])
            a, b = np.block([[a, np.zeros((2 * m, n))], [sums]]), np.vstack([b, np.zeros((n, n))])
            q = np.concatenate([q, _weights_of(largest_integral)])
        gains = riccati_gains(a, b, np.diag(q), np.diag(r))
        self.gains, self.integral_gains = gains[:, : 2 * self._m], gains[:, 2 * self._m :]

    def _weights(self, params: Weights, context: ControllerContext) -> tuple[Array, Array]:
        """Diagonals (2 m,) of Q and (n,) of R."""
        largest = params.largest_effort or tuple(context.limits.effort.tolist())
        for name, effort in zip(context.joints, largest, strict=True):
            if not np.isfinite(effort):
                raise InputError(f"joint '{name}' has no limit of its effort; give largest_effort")
        passive = np.full(self._m - self._n, params.largest_passive_error)
        velocity = (
            np.zeros(self._n) if params.largest_velocity_error is None else _weights_of(params.largest_velocity_error)
        )
        position = _weights_of(params.largest_position_error)
        return np.concatenate([position, _weights_of(passive), velocity, np.zeros(len(passive))]), _weights_of(largest)

    def reference(self, u: Mapping[str, Numeric]) -> tuple[Numeric, Numeric, Numeric]:
        """(position, velocity, acceleration) (m,) of the reference."""
        position, velocity, acceleration, _ = (u[name] for name in REFERENCE)
        rest = np.zeros(self._m - self._n)
        return (
            ops.concatenate([position, self.model.at[self._n :]]),
            ops.concatenate([velocity, rest]),
            ops.concatenate([acceleration, rest]),
        )

    def error(self, u: Mapping[str, Numeric]) -> Numeric:
        """(q − r, v − v_r) (2 m,) as measured."""
        position, velocity, _ = self.reference(u)
        index = self.model.dofs
        return ops.concatenate([u["all_position"][index] - position, u["all_velocity"][index] - velocity])

    def feedforward(self, t: Numeric, u: Mapping[str, Numeric], friction: bool) -> Numeric:
        """Effort (n,) that the reference requires."""
        position, velocity, acceleration = self.reference(u)
        friction_velocity = velocity if friction else None
        required = self.required_effort(t, u, acceleration, friction_velocity, position, velocity)
        return required[: self._n] + u["reference_effort"]


def _weights_of(largest: Sequence[float] | Array) -> Array:
    return 1.0 / np.square(np.asarray(largest, dtype=float))
