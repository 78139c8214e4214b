"""The linear-quadratic regulator of the joints of a controller, about its reference.

The error e = (q − r, v − v_r) of the joints, passive ones included, follows e⁺ = A e + B δτ of the `LinearModel`, about
one state or along the reference, see `_along_reference`. The gains K minimise Σ eᵀ Q e + δτᵀ R δτ. Bryson's rule gives
the weights: 1 / (the largest value that is acceptable)². With an integral, ∫ (q − r) of the joints of the controller is
a part of the error.

    effort = τ(r, v_r, a_r) + friction(v_r) + reference effort − K e

τ is the inverse dynamics at the reference, see `_required_effort`, with the passive joints at rest where they balance.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Literal

import numpy as np

from cosim.core import ops
from cosim.core.compile.row_lookup import TableOverTime
from cosim.core.errors import InputError
from cosim.core.types import REFERENCE, Array, ControllerContext, Numeric, PerJoint, State, param, params
from cosim.plugins.controllers._along_reference import (
    Stages,
    System,
    along_reference,
    at_one_state,
    costs_to_go,
    gains_of,
    stationary_cost,
)
from cosim.plugins.controllers._linear_model import LinearModel, MotionLinearisation
from cosim.plugins.controllers._required_effort import RequiredEffort


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


@params
class AlongWeights(Weights):
    """The keys of a controller with this regulator whose gains may follow the reference."""

    along: Literal["state", "reference"] = param(
        default="state", doc="what the model is linearised about: one state at rest, or the reference as it moves"
    )


class LinearRegulator:
    """The weights and gains of a linear-quadratic regulator, with the linear models that they are for.

    weights: diagonals (2 m,) of Q and (n,) of R; stages: the linear models, one where it is linearised at one state;
    model: the first of them; last_cost: P of the last of them.
    """

    def __init__(self, params: Weights, context: ControllerContext, largest_integral: Sequence[float] | None = None):
        """largest_integral: weights (n,) of the integral of the error [rad s or m s], None: without it. Raises
        InputError for weights that are missing and gains that do not exist, and as `MotionLinearisation` and
        `along_reference`."""
        linearisation = MotionLinearisation(context, params.passive)
        moves = isinstance(params, AlongWeights) and params.along == "reference"
        self.stages: Stages = (
            along_reference(linearisation, params.at, context) if moves else at_one_state(linearisation, params.at)
        )
        self.model: LinearModel = self.stages.models[0]
        self._n, self._m, self._period = len(context.joints), len(self.model.dofs), context.period
        self.required_effort = RequiredEffort(context, self.model.dofs)
        q, r = self.weights = self._weights(params, context)
        if largest_integral is not None:
            q = np.concatenate([q, _weights_of(largest_integral)])
        self.systems = [self._system(model, largest_integral is not None) for model in self.stages.models]
        self._q, self._r = np.diag(q), np.diag(r)
        self.last_cost = stationary_cost(*self.systems[-1], self._q, self._r)

    def _system(self, model: LinearModel, with_integral: bool) -> System:
        """(A, B) of the error, and of the sum of the errors of all periods before, times the period."""
        if not with_integral:
            return model.a, model.b
        n, m = self._n, self._m
        sums = np.hstack([self._period * np.eye(n, m), np.zeros((n, m)), np.eye(n)])
        return np.block([[model.a, np.zeros((2 * m, n))], [sums]]), np.vstack([model.b, np.zeros((n, n))])

    def costs_to_go(self, wanted: Collection[int]) -> dict[int, Array]:
        """Period -> the cost P of an error at its begin."""
        return costs_to_go(self.stages.begins, self.systems, self._q, self._r, self.last_cost, wanted)

    def over_time(self, begins: Array, items: Sequence[State], name: str) -> TableOverTime:
        """The items, each from half a period before the period at which it begins."""
        return TableOverTime((begins - 0.5) * self._period, items, name)

    @cached_property
    def table(self) -> TableOverTime:
        """Time -> gains (n, 2 m): on the errors of position and velocity of the m joints; integral_gains (n, n); a, b:
        of the linear model."""
        begins = self.stages.begins
        costs, items = self.costs_to_go({int(k) + 1 for k in begins}), list[State]()
        for k, model, system in zip(begins, self.stages.models, self.systems, strict=True):
            gains = gains_of(system, costs[int(k) + 1], self._r)
            of_errors, of_integrals = gains[:, : 2 * self._m], gains[:, 2 * self._m :]
            items.append({"gains": of_errors, "integral_gains": of_integrals, "a": model.a, "b": model.b})
        return self.over_time(begins, items, "gains")

    @property
    def gains(self) -> Array:
        """The gains of the first model; see `table`."""
        return self.table.items[0]["gains"]

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
