"""Model-predictive control: the regulator of `lqr` over a horizon, with bounds on effort, velocity and position.

At each call it minimises

    Σ (eₖᵀ Q eₖ + δτₖᵀ R δτₖ) + e_Nᵀ S e_N,    eₖ₊₁ = A eₖ + B δτₖ,    k = 0 … N − 1,

over the corrections δτₖ of the effort, within the limits of the joints, and commands the first (Maciejowski, Predictive
Control with Constraints). S is the cost of `lqr` from there on, so that without an active bound the command is that of
`lqr`. Over the horizon the reference goes on with its acceleration, and the feedforward of the effort is the present
one. Effort bounds are hard, those of the state soft: they may be impossible to keep.

With an observer an unknown effort is estimated from what the prediction of the period before has missed, and
subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.linalg import block_diag, solve_discrete_are

from cosim import ops
from cosim.controllers._checks import check_below_half_the_rate, check_effort_mode
from cosim.controllers._linear_regulator import LinearRegulator, Weights
from cosim.controllers._quadratic_program import QuadraticProgram
from cosim.errors import InputError
from cosim.types import (
    COMMAND,
    REFERENCE,
    Array,
    ControllerContext,
    Numeric,
    PerJoint,
    Signal,
    Signals,
    State,
    joint_signals,
    param,
    params,
)

SOFTNESS = 1e-3  # of bounds of the state, see `QuadraticProgram`


@params
class Params(Weights):
    horizon: int = param(min=1, max=50, default=10, doc="N, in periods")
    iterations: int = param(min=1, max=1000, default=50, doc="of the solver, per call")
    margin: float = param(min=0, max=0.5, constant=True, default=0.02, doc="of the limits of position and velocity")
    observer: PerJoint | None = param(unit="Hz", above=0, default=None, doc="bandwidth of the estimated load")
    friction: bool = param(default=True, doc="compensate the joints' friction at the reference velocity")


class Mpc:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        """Raises InputError for drives with loops of their own, an observer that is too fast, and as
        `LinearRegulator`."""
        check_effort_mode(context, "feedforward_pd")
        check_below_half_the_rate("observer", params.observer, context)
        n = self._n = len(context.joints)
        self.params = params
        self.regulator = LinearRegulator(params, context)
        self.inputs = {**joint_signals(REFERENCE, n), **self.regulator.required_effort.inputs}
        self.outputs = joint_signals(COMMAND, n)
        self.signals: Signals = {"predicted_cost": Signal((), "1")}
        if params.observer is not None:
            self.signals |= {"disturbance": Signal((n,), "joint effort")}
        self._period, self._effort_limit, self._no_gain = context.period, context.limits.effort, np.zeros(n)
        self._inverse = np.linalg.pinv(self.regulator.model.b)
        self._lowest, self._highest = self._state_bounds(params, context)
        self._condense(params.horizon, params.iterations)

    def _state_bounds(self, p: Params, context: ControllerContext) -> tuple[Array, Array]:
        """Bounds (2 m N,) of position and velocity over the horizon, infinite where there are none."""
        limits, passive = context.limits, np.full(len(self.regulator.model.dofs) - self._n, np.inf)
        room = p.margin * np.where(np.isfinite(limits.upper - limits.lower), limits.upper - limits.lower, 0.0)
        fastest = (1.0 - p.margin) * limits.velocity
        lowest = np.concatenate([limits.lower + room, -passive, -fastest, -passive])
        highest = np.concatenate([limits.upper - room, passive, fastest, passive])
        return np.tile(lowest, p.horizon), np.tile(highest, p.horizon)

    def _condense(self, steps: int, iterations: int) -> None:
        """The program in the corrections of the horizon, each as a multiple of what its weight accepts.

        Raises InputError where no joint has a limit."""
        model, n = self.regulator.model, self._n
        a, b, size = model.a, model.b, len(model.a)
        q, r = map(np.diag, self.regulator.weights)
        powers = [np.linalg.matrix_power(a, k) for k in range(steps + 1)]
        free = np.vstack(powers[1:])  # errors 1 … N by the error now
        forced = np.zeros((steps * size, steps * n))  # … by the corrections
        for k, j in zip(*np.tril_indices(steps), strict=True):
            forced[k * size : (k + 1) * size, j * n : (j + 1) * n] = powers[k - j] @ b
        cost = np.asarray(block_diag(*[q] * (steps - 1), solve_discrete_are(a, b, q, r)))
        self._unit = np.tile(1.0 / np.sqrt(np.diag(r)), steps)
        forced = forced * self._unit
        self._gradient = forced.T @ cost @ free
        self._efforts = np.flatnonzero(np.tile(np.isfinite(self._effort_limit), steps))
        self._states = np.flatnonzero(np.isfinite(self._lowest) | np.isfinite(self._highest))
        if not len(self._efforts) + len(self._states):
            raise InputError("no joint has a limit of position, velocity or effort; use type: lqr")
        self._free = free[self._states]
        rows = np.vstack([np.diag(self._unit)[self._efforts], forced[self._states]])
        softness = np.repeat([0.0, SOFTNESS], [len(self._efforts), len(self._states)])
        self._hessian = forced.T @ cost @ forced + np.eye(steps * n)
        self._error_cost = q + free.T @ cost @ free
        self.program = QuadraticProgram(self._hessian, rows, softness, iterations)

    def initial(self) -> State:
        state: State = {"program": self.program.initial()}
        if self.params.observer is not None:
            state |= {"predicted": np.zeros(len(self.regulator.model.a)), "started": np.zeros(1)}
            state |= {"load": np.zeros(self._n)}
        return state

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        regulator, model, after, signals = self.regulator, self.regulator.model, {}, {}
        error, feedforward = regulator.error(u), regulator.feedforward(t, u, p.friction)
        if p.observer is not None:
            gain = 1.0 - ops.exp(-2.0 * math.pi * self._period * ops.array(p.observer))
            missed = self._inverse @ (error - x["predicted"])
            load = after["load"] = x["load"] + ops.where(x["started"] > 0.5, gain * missed, 0.0)
            feedforward, signals["disturbance"] = feedforward - load, load
        correction, signals["predicted_cost"], after["program"] = self._correction(error, feedforward, x["program"], u)
        effort = feedforward + correction
        if p.observer is not None:
            given = ops.clip(effort, -self._effort_limit, self._effort_limit) - feedforward
            after |= {"predicted": model.a @ error + model.b @ given, "started": np.ones(1)}
        reference = {"position": u["reference_position"], "velocity": u["reference_velocity"]}
        return after, {**reference, "effort": effort, "kp": self._no_gain, "kd": self._no_gain, **signals}

    def _correction(
        self, error: Numeric, feedforward: Numeric, state: Numeric, u: Mapping[str, Numeric]
    ) -> tuple[Numeric, Numeric, Numeric]:
        """(δτ₀ (n,), the cost that the program predicts, the state of the solver)."""
        steps, n = self.params.horizon, self._n
        limit, ahead = np.tile(self._effort_limit, steps), self._reference_ahead(u)
        known = ops.concatenate([feedforward] * steps)
        effort_bounds = [(side * limit - known)[self._efforts] for side in (-1.0, 1.0)]
        free = ahead[self._states] + self._free @ error
        state_bounds = [bound[self._states] - free for bound in (self._lowest, self._highest)]
        lower, upper = (ops.concatenate(pair) for pair in zip(effort_bounds, state_bounds, strict=True))
        slope = self._gradient @ error
        scaled, state = self.program.solve(slope, lower, upper, state)
        cost = error @ (self._error_cost @ error) + scaled @ (self._hessian @ scaled + 2.0 * slope)
        return self._unit[:n] * scaled[:n], cost, state

    def _reference_ahead(self, u: Mapping[str, Numeric]) -> Numeric:
        """Position and velocity (2 m N,) of the reference over the horizon, with its present acceleration."""
        position, velocity, acceleration = self.regulator.reference(u)
        parts = []
        for k in range(1, self.params.horizon + 1):
            time = k * self._period
            parts += [position + time * velocity + 0.5 * time**2 * acceleration, velocity + time * acceleration]
        return ops.concatenate(parts)


def load(params: Params, context: ControllerContext) -> Mpc:
    return Mpc(params, context)
