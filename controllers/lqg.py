"""Linear-quadratic-Gaussian control: the regulator of `lqr` on an estimate of the state, from measured positions alone.

A steady-state Kalman filter of the linear model estimates the error e = (q − r, v − v_r), and with a `load_noise` an
unknown effort d on each joint of the controller, which is subtracted: it removes the steady-state error (Franklin,
Powell and Workman, Digital Control of Dynamic Systems, §9.4 and §8.5.2).

    estimate:   ê = e⁻ + L (q − r − C e⁻),     prediction:   e⁻ = A ê + B (δτ + d)

δτ is the effort that the limit of the joint leaves, less the feedforward.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.linalg import LinAlgError, block_diag, solve_discrete_are

from cosim.core import ops
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
from cosim.plugins.controllers._checks import check_effort_mode
from cosim.plugins.controllers._linear_model import LinearModel
from cosim.plugins.controllers._linear_regulator import LinearRegulator, Weights


@params
class Noise:
    position_noise: PerJoint = param(unit="joint position", above=0, constant=True, doc="standard deviation, measured")
    effort_noise: PerJoint = param(unit="joint effort", above=0, constant=True, doc="standard deviation per period")


@params
class Params(Weights, Noise):
    load_noise: PerJoint | None = param(
        above=0, constant=True, default=None, doc="change of an unknown load in √s, N·m/√s or N/√s; none: no load"
    )
    friction: bool = param(default=True, doc="compensate the joints' friction at the reference velocity")


class Lqg:
    def __init__(self, params: Params, context: ControllerContext) -> None:
        """Raises InputError for drives with their own loops, and as `LinearRegulator`."""
        check_effort_mode(context, "feedforward_pd")
        self._n = len(context.joints)
        self.params = params
        self.regulator = LinearRegulator(params, context)
        self.inputs = {**joint_signals(REFERENCE, self._n), **self.regulator.required_effort.inputs}
        self.outputs = joint_signals(COMMAND, self._n)
        self._effort_limit, self._no_gain = context.limits.effort, np.zeros(self._n)
        self._loads = self._n if params.load_noise else 0
        self.signals: Signals = {
            "estimated_velocity": Signal(
                (self._n,), "joint velocity", "velocity by the Kalman filter", "estimate", "velocity"
            )
        }
        if self._loads:
            self.signals |= {
                "disturbance": Signal(
                    (self._n,), "joint effort", "effort on the joint that the model lacks", "estimate"
                )
            }
        self.transition = _transition(self.regulator.model, self._loads)
        self.gain = kalman_gain(self.transition, *_noise(params, self.regulator.model, context.period))

    def initial(self) -> State:
        size = len(self.transition)
        return {"predicted": np.zeros(size), "started": np.zeros(1)}

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        regulator, model = self.regulator, self.regulator.model
        m, n, size = len(model.dofs), self._n, len(self.transition)
        measured = regulator.error(u)[:m]
        at_start = ops.concatenate([measured, np.zeros(size - m)])
        predicted = ops.where(x["started"][0] > 0.5, x["predicted"], at_start)
        estimate = predicted + self.gain @ (measured - predicted[:m])
        feedforward = regulator.feedforward(t, u, p.friction)
        effort = feedforward - regulator.gains @ estimate[: 2 * m]
        signals = {"estimated_velocity": u["reference_velocity"] + estimate[m : m + n]}
        if self._loads:
            effort = effort - estimate[2 * m :]
            signals["disturbance"] = estimate[2 * m :]
        given = ops.clip(effort, -self._effort_limit, self._effort_limit) - feedforward
        drive = np.vstack([model.b, np.zeros((size - 2 * m, n))])
        after = {"predicted": self.transition @ estimate + drive @ given, "started": np.ones(1)}
        reference = {"position": u["reference_position"], "velocity": u["reference_velocity"]}
        return after, {**reference, "effort": effort, "kp": self._no_gain, "kd": self._no_gain, **signals}


def _transition(model: LinearModel, loads: int) -> Array:
    """Of (error (2 m,), loads) from one period to the next without δτ."""
    size = len(model.a)
    top = np.hstack([model.a, model.b[:, :loads]])
    return np.vstack([top, np.eye(loads, size + loads, size)])


def _noise(p: Params, model: LinearModel, period: float) -> tuple[Array, Array]:
    """Covariances of the state per period, and of the measured positions (m, m). A passive joint has the largest noise
    of the others."""

    def squares(values: tuple[float, ...]) -> Array:
        passive = len(model.dofs) - len(values)
        return np.diag(np.square([*values, *[max(values)] * passive]))

    of_motion = model.disturbed @ squares(p.effort_noise) @ model.disturbed.T
    loads = np.diag(np.square(p.load_noise)) * period if p.load_noise else np.zeros((0, 0))
    return np.asarray(block_diag(of_motion, loads)), squares(p.position_noise)


def kalman_gain(a: Array, process: Array, measured: Array) -> Array:
    """L of the steady-state filter x = x⁻ + L (y − C x⁻) of x⁺ = a x, whose first elements are measured; process,
    measured: covariances per period. Raises InputError where the state cannot be estimated."""
    c = np.eye(len(measured), len(a))
    try:
        p = solve_discrete_are(a.T, c.T, process, measured)
    except (LinAlgError, ValueError):
        raise InputError("the state cannot be estimated from the positions; check the noise") from None
    return np.linalg.solve(c @ p @ c.T + measured, c @ p).T


def load(params: Params, context: ControllerContext) -> Lqg:
    return Lqg(params, context)
