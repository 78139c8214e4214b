"""Model-predictive control: the regulator of `lqr` over a horizon, with bounds on effort, velocity and position.

At each call it minimises

    Σ (eₖᵀ Q eₖ + δτₖᵀ R δτₖ) + e_Nᵀ S e_N,    eₖ₊₁ = A eₖ + B δτₖ,    k = 0 … N − 1,

over the corrections δτₖ of the effort, within the limits of the joints, and commands the first (Maciejowski, Predictive
Control with Constraints). S is the cost of `lqr` from there on, so that without an active bound the command equals
`lqr`'s. Over the horizon the reference goes on with its acceleration, and the feedforward of the effort is the present
one. Effort bounds are hard, state bounds soft: they may be impossible to keep.

With an observer an unknown effort is estimated from what the prediction of the period before has missed, and
subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag

from cosim.core import ops
from cosim.core.compile.row_lookup import TableOverTime
from cosim.core.errors import InputError
from cosim.core.types import (
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
from cosim.plugins.controllers._along_reference import system_at
from cosim.plugins.controllers._checks import check_below_half_the_rate, check_effort_mode
from cosim.plugins.controllers._linear_regulator import AlongWeights, LinearRegulator

RELAXATION = 1.6
FEW_ACTIVE = 3.0  # a larger step is faster where most rows are inactive, as measured

SOFTNESS = 1e-3  # of bounds of the state, see `QuadraticProgram`
MOST_NUMBERS = 200_000  # of the programs along a reference: what compiles in a few seconds


@params
class Params(AlongWeights):
    horizon: int = param(min=1, max=50, default=10, doc="N, in periods")
    iterations: int = param(min=1, max=1000, default=50, doc="of the solver, per call")
    margin: float = param(min=0, max=0.5, constant=True, default=0.02, doc="of the limits of position and velocity")
    observer: PerJoint | None = param(unit="Hz", above=0, default=None, doc="bandwidth of the estimated load")
    friction: bool = param(default=True, doc="compensate the joints' friction at the reference velocity")


class Mpc:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        """Raises InputError for drives with their own loops, an observer that is too fast, and as
        `LinearRegulator`."""
        check_effort_mode(context, "feedforward_pd")
        check_below_half_the_rate("observer", params.observer, context)
        n = self._n = len(context.joints)
        self.params = params
        self.regulator = LinearRegulator(params, context)
        self.inputs = {**joint_signals(REFERENCE, n), **self.regulator.required_effort.inputs}
        self.outputs = joint_signals(COMMAND, n)
        self.signals: Signals = {
            "predicted_cost": Signal(
                (), "1", "cost of the predicted motion; the largest accepted value adds 1 per period"
            )
        }
        if params.observer is not None:
            self.signals |= {
                "disturbance": Signal((n,), "joint effort", "effort on the joint that the model lacks", "estimate")
            }
        self._period, self._effort_limit, self._no_gain = context.period, context.limits.effort, np.zeros(n)
        self._lowest, self._highest = self._state_bounds(params, context)
        self._efforts, self._states = self._bounded(params.horizon)
        self._unit = np.tile(1.0 / np.sqrt(self.regulator.weights[1]), params.horizon)
        self._at_start, self.program = self._condensed(0, self.regulator.last_cost)

    def _state_bounds(self, p: Params, context: ControllerContext) -> tuple[Array, Array]:
        """Bounds (2 m N,) of position and velocity over the horizon, infinite where there are none."""
        limits, passive = context.limits, np.full(len(self.regulator.model.dofs) - self._n, np.inf)
        room = p.margin * np.where(np.isfinite(limits.upper - limits.lower), limits.upper - limits.lower, 0.0)
        fastest = (1.0 - p.margin) * limits.velocity
        lowest = np.concatenate([limits.lower + room, -passive, -fastest, -passive])
        highest = np.concatenate([limits.upper - room, passive, fastest, passive])
        return np.tile(lowest, p.horizon), np.tile(highest, p.horizon)

    def _bounded(self, steps: int) -> tuple[Array, Array]:
        """Which efforts and states of the horizon have bounds. Raises InputError where no joint has a limit."""
        efforts = np.flatnonzero(np.tile(np.isfinite(self._effort_limit), steps))
        states = np.flatnonzero(np.isfinite(self._lowest) | np.isfinite(self._highest))
        if not len(efforts) + len(states):
            raise InputError("no joint has a limit of position, velocity or effort; use type: lqr")
        return efforts, states

    def _condensed(self, first: int, last: Array) -> tuple[dict[str, Array], QuadraticProgram]:
        """(its arrays, the program) in the corrections of the horizon from the period `first` on, each as a multiple of
        what its weight accepts. last: S."""
        n, steps, begins = self._n, self.params.horizon, self.regulator.stages.begins
        q, size = np.diag(self.regulator.weights[0]), len(self.regulator.model.a)
        # errors 1 … N by the error now and by the corrections
        free, forced, by_error = np.zeros((steps, size, size)), np.zeros((steps, size, steps * n)), np.eye(size)
        by_corrections = np.zeros((size, steps * n))
        for k in range(steps):
            a, b = system_at(begins, self.regulator.systems, first + k)
            by_error, by_corrections = a @ by_error, a @ by_corrections
            by_corrections[:, k * n : (k + 1) * n] = b
            free[k], forced[k] = by_error, by_corrections
        free, forced = free.reshape(-1, size), forced.reshape(-1, steps * n) * self._unit
        cost = np.asarray(block_diag(*[q] * (steps - 1), last))
        rows = np.vstack([np.diag(self._unit)[self._efforts], forced[self._states]])
        softness = np.repeat([0.0, SOFTNESS], [len(self._efforts), len(self._states)])
        hessian = forced.T @ cost @ forced + np.eye(steps * n)
        a, b = system_at(begins, self.regulator.systems, first)
        program = QuadraticProgram(hessian, rows, softness, self.params.iterations)
        arrays = {
            "a": a,
            "b": b,
            "missed": np.linalg.pinv(b),
            "gradient": forced.T @ cost @ free,
            "drift": free[self._states],
            "hessian": hessian,
            "error_cost": q + free.T @ cost @ free,
        }
        return arrays | program.data, program

    @cached_property
    def table(self) -> TableOverTime:
        """Time -> the program, see `_condensed`."""
        steps, begins = self.params.horizon, self.regulator.stages.begins
        width = sum(array.size for array in self._at_start.values())
        kept = max(math.ceil(len(begins) * width / MOST_NUMBERS), 1)
        chosen = np.unique(np.append(begins[::kept], begins[-1]))
        costs = self.regulator.costs_to_go({int(k) + steps for k in chosen})
        items = [self._condensed(int(k), costs[int(k) + steps])[0] for k in chosen]
        return self.regulator.over_time(chosen, items, "programs")

    def initial(self) -> State:
        state: State = {"program": self.program.initial()}
        if self.params.observer is not None:
            state |= {"predicted": np.zeros(len(self.regulator.model.a)), "started": np.zeros(1)}
            state |= {"load": np.zeros(self._n)}
        return state

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        regulator, now, after, signals = self.regulator, self.table(t), {}, {}
        error, feedforward = regulator.error(u), regulator.feedforward(t, u, p.friction)
        if p.observer is not None:
            gain = 1.0 - ops.exp(-2.0 * math.pi * self._period * ops.array(p.observer))
            missed = now["missed"] @ (error - x["predicted"])
            load = after["load"] = x["load"] + ops.where(x["started"] > 0.5, gain * missed, 0.0)
            feedforward, signals["disturbance"] = feedforward - load, load
        correction, signals["predicted_cost"], after["program"] = self._correction(
            now, error, feedforward, x["program"], u
        )
        effort = feedforward + correction
        if p.observer is not None:
            given = ops.clip(effort, -self._effort_limit, self._effort_limit) - feedforward
            after |= {"predicted": now["a"] @ error + now["b"] @ given, "started": np.ones(1)}
        reference = {"position": u["reference_position"], "velocity": u["reference_velocity"]}
        return after, {**reference, "effort": effort, "kp": self._no_gain, "kd": self._no_gain, **signals}

    def _correction(
        self, now: State, error: Numeric, feedforward: Numeric, state: Numeric, u: Mapping[str, Numeric]
    ) -> tuple[Numeric, Numeric, Numeric]:
        """(δτ₀ (n,), the cost that the program predicts, the state of the solver)."""
        steps, n = self.params.horizon, self._n
        limit, ahead = np.tile(self._effort_limit, steps), self._reference_ahead(u)
        known = ops.concatenate([feedforward] * steps)
        effort_bounds = [(side * limit - known)[self._efforts] for side in (-1.0, 1.0)]
        free = ahead[self._states] + now["drift"] @ error
        state_bounds = [bound[self._states] - free for bound in (self._lowest, self._highest)]
        lower, upper = (ops.concatenate(pair) for pair in zip(effort_bounds, state_bounds, strict=True))
        slope = now["gradient"] @ error
        scaled, state = self.program.solve(slope, lower, upper, state, now)
        cost = error @ (now["error_cost"] @ error) + scaled @ (now["hessian"] @ scaled + 2.0 * slope)
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


class QuadraticProgram:
    """A convex quadratic program with bounds on linear functions of its variables, by a fixed number of iterations.

        minimise ½ xᵀ P x + qᵀ x,   lower ≤ G x ≤ upper,   P > 0

    by the alternating direction method of multipliers (Boyd et al., Foundations and Trends in Machine Learning 3(1),
    2011; with the over-relaxation of OSQP, Stellato et al., Math. Prog. Comp. 12, 2020). As its factorisation is known,
    an iteration is a product with a matrix and a choice per row. A soft row may be violated, at a quadratic cost. If
    the unconstrained minimum keeps all bounds, it is the result, exactly.

    P: (n, n), G: (m, n); softness: (m,) 0 for hard rows; others keep about this part of what
    violates them. data: what the solution needs of these matrices, by name."""

    def __init__(self, p: Array, g: Array, softness: Array, iterations: int) -> None:
        self._iterations = iterations
        # rows of equal weight: the diagonal of G P⁻¹ Gᵀ is 1
        scale = 1.0 / np.sqrt(np.einsum("ij,ji->i", g, np.linalg.solve(p, g.T)))
        self.g = g = scale[:, None] * g
        # the step that contracts fastest without over-relaxation and with all rows active lies between the eigenvalues
        # (Ghadimi et al., IEEE Trans. Automatic Control 60(3), 2015)
        values = np.linalg.eigvalsh(g @ np.linalg.solve(p, g.T))
        values = values[values > 1e-9 * values[-1]]
        self.step = FEW_ACTIVE / float(np.sqrt(values[0] * values[-1]))
        self.data: State = {
            "g": g,
            "scale": scale,
            "step": np.array(self.step),
            "taken": 1.0 / (1.0 + self.step * softness),  # part of a violation that is taken back
            "free": -np.linalg.inv(p),
            "inverse": np.linalg.inv(p + self.step * g.T @ g),
        }

    def initial(self) -> Array:
        """The state (2 m,) that passes from one solution to the next: rows and their multipliers, over the step."""
        return np.zeros(2 * len(self.g))

    def solve(
        self, q: Numeric, lower: Numeric, upper: Numeric, state: Numeric, data: State | None = None
    ) -> tuple[Numeric, Numeric]:
        """(x (n,), next state). data: of another program of this size, as `data`, among others."""
        of = self.data if data is None else data
        m, lower, upper = len(self.g), of["scale"] * lower, of["scale"] * upper
        # the loop takes what changes with time as arguments, the rest is constants of its code
        varied = [name for name, value in of.items() if name in self.data and ops.is_symbolic(value)]

        def iterate(state: Numeric, q: Numeric, lower: Numeric, upper: Numeric, *values: Numeric) -> Numeric:
            return _iterate(of | dict(zip(varied, values, strict=True)), state, q, lower, upper)

        state = ops.repeat(iterate, self._iterations, state, q, lower, upper, *(of[name] for name in varied))
        x = _minimum(of, q, state)
        free = of["free"] @ q
        rows = of["g"] @ free
        kept: Numeric = 1.0
        for row, low, high in zip(rows, lower, upper, strict=True):
            kept = ops.where(ops.logical_and(row >= low, row <= high), kept, 0.0)
        at_rest = ops.concatenate([rows, np.zeros(m)])
        return ops.where(kept > 0.5, free, x), ops.where(kept > 0.5, at_rest, state)


def _minimum(of: State, q: Numeric, state: Numeric) -> Numeric:
    """x (n,) for the rows and multipliers of a state."""
    m = len(of["g"])
    return of["inverse"] @ (of["step"] * (of["g"].T @ (state[:m] - state[m:])) - q)


def _iterate(of: State, state: Numeric, q: Numeric, lower: Numeric, upper: Numeric) -> Numeric:
    m = len(of["g"])
    rows, multipliers = state[:m], state[m:]
    relaxed = RELAXATION * (of["g"] @ _minimum(of, q, state)) + (1.0 - RELAXATION) * rows
    wanted = relaxed + multipliers
    taken = wanted + of["taken"] * (ops.clip(wanted, lower, upper) - wanted)
    return ops.concatenate([taken, wanted - taken])
