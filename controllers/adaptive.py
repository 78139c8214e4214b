"""Adaptive control by Slotine and Li: the parameters of a load and of the friction are adapted while the arm moves.

With Λ = 2π · `bandwidth`, the error e = r − q, and the reference velocity w = v_r + Λ e:

    s = v − w,     effort = M(q) ẇ + C(q, v) w + g(q) + Y θ̂ − K s,     θ̂' = −Γ Yᵀ s  within bounds.

Y θ are the efforts of the load, by the regressor of the inverse dynamics, and of the friction at w. As the energy
½ sᵀ M s + ½ (θ̂ − θ)ᵀ Γ⁻¹ (θ̂ − θ) does not grow, s and e vanish (Slotine and Li, On the adaptive control of robot
manipulators, IJRR 6(3), 1987); θ̂ becomes θ where the motion excites it persistently. With the parameters scaled by
their bounds, Γ is one number.

C(q, v) w uses the Christoffel symbols, so that Ṁ − 2 C is skew-symmetric, by the inverse dynamics alone:
with its velocity terms c(q, v), quadratic in v, C(q, v) w = (c(q, v + w) − c(q, v − w)) / 4.
−K s is a PD loop in the drive, with the gains K Λ and K. While an effort is at its limit nothing is adapted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from cosim.core import ops
from cosim.core.errors import InputError, SectionError
from cosim.core.types import (
    ALL,
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
from cosim.plugins.controllers._required_effort import CREEP_SPEED

# the parameters of a link as signals of the controller
LOAD_SIGNALS: Signals = {
    "load_mass": Signal((), "kg", "adapted mass of the load", "estimate"),
    **{
        f"load_moment_{axis}": Signal((), "kg*m", "adapted mass · distance in the axes of the link", "estimate")
        for axis in "xyz"
    },
    **{
        f"load_inertia_{axes}": Signal((), "kg*m^2", "adapted inertia about the origin of the link", "estimate")
        for axes in ("xx", "yy", "zz", "xy", "xz", "yz")
    },
}
FRICTION_SIGNALS: Signals = {
    "viscous": Signal((), "joint damping", "adapted viscous friction", "estimate"),
    "coulomb": Signal((), "joint effort", "adapted dry friction", "estimate"),
}
# of the parameters of a link: bound -> which of them have it, and their least value in units of the bound
OF_LOAD = {
    "largest_mass": ((0,), 0.0),
    "largest_moment": ((1, 2, 3), -1.0),
    "largest_inertia": ((4, 5, 6, 7, 8, 9), -1.0),
}


@params
class Params:
    bandwidth: PerJoint = param(unit="Hz", above=0, doc="Λ / 2π, of the error where s = 0")
    kd: PerJoint = param(unit="joint damping", above=0, doc="K, effort per s")
    adaptation: float = param(min=0, default=1.0, doc="rate of the scaled parameters per power [1/J]")
    load: str | None = param(default=None, doc="link whose unknown load is adapted")
    largest_mass: float = param(unit="kg", min=0, constant=True, default=0.0, doc="bound of its mass")
    largest_moment: float = param(min=0, constant=True, default=0.0, doc="bound of mass · distance [kg·m], by axis")
    largest_inertia: float = param(
        unit="kg*m^2", min=0, constant=True, default=0.0, doc="bound, about the link's origin"
    )
    largest_viscous: PerJoint = param(unit="joint damping", min=0, constant=True, default=0.0, doc="bound of friction")
    largest_coulomb: PerJoint = param(
        unit="joint effort", min=0, constant=True, default=0.0, doc="bound of dry friction"
    )
    dead_zone: PerJoint = param(unit="joint velocity", min=0, default=0.0, doc="|s| that adapts nothing")
    friction: bool = param(default=True, doc="compensate the joints' friction in the model at w")


class Adaptive:
    """The adaptive controller; its state is the adapted parameters, scaled by their bounds. adapted: numbers of the
    adapted parameters of the load; scale (k,): bounds of all parameters; lowest (k,): the least scaled values."""

    def __init__(self, params: Params, context: ControllerContext) -> None:
        """Raises InputError for drives with their own loops, closed loops, and where nothing is adapted."""
        check_effort_mode(context, "feedforward_pd")
        if context.model.constraint_rows:
            raise InputError("the mechanism has closed loops, which this controller does not know; use feedforward_pd")
        n = self._n = len(context.joints)
        self.params = params
        self.inputs = {
            **joint_signals((*REFERENCE, "position", "velocity"), n),
            **joint_signals(tuple(name for name in ALL if name != "all_effort"), context.model.nv),
        }
        self.outputs = joint_signals(COMMAND, n)
        self._model, self._index, self._period = context.model, context.index, context.period
        self._effort_limit = context.limits.effort
        self.adapted, self.scale, self.lowest = self._parameters(params, context)
        self._friction = [name for name in FRICTION_SIGNALS if np.any(getattr(params, f"largest_{name}"))]
        self._load = [tuple(LOAD_SIGNALS)[k] for k in self.adapted]
        self.signals: Signals = {
            **{name: LOAD_SIGNALS[name] for name in self._load},
            **{name: replace(FRICTION_SIGNALS[name], shape=(n,)) for name in self._friction},
        }

    def _parameters(self, p: Params, context: ControllerContext) -> tuple[Array, Array, Array]:
        bounds = {key: getattr(p, key) for key in OF_LOAD if getattr(p, key) > 0.0}
        if bounds and p.load is None:
            raise SectionError("the load has a bound and no link; give 'load'", list(bounds)[:1])
        if p.load is not None and not bounds:
            raise SectionError("the load has no bound; give largest_mass", ("load",))
        friction = np.concatenate([np.broadcast_to(b, self._n) for b in (p.largest_viscous, p.largest_coulomb)])
        if not bounds and not friction.any():
            raise InputError("nothing is adapted; give 'load' and largest_mass, largest_viscous or largest_coulomb")
        if p.load is not None:
            model = context.numeric_model
            rest, time = np.zeros(model.nv), (0.0,) if model.equations.timed else ()
            # refuses a link that does not exist or does not move
            model.link_regressor(model.coordinates(rest), rest, rest, p.load, *time)
        rows = [(k, bound, OF_LOAD[key][1]) for key, bound in bounds.items() for k in OF_LOAD[key][0]]
        adapted = np.array([k for k, _, _ in rows], dtype=int)
        scale = np.concatenate([[bound for _, bound, _ in rows], friction])
        return adapted, scale, np.concatenate([[lowest for *_, lowest in rows], np.zeros(len(friction))])

    def initial(self) -> State:
        return {"scaled": np.zeros(len(self.scale))}

    def parameters(self, x: State) -> Numeric:
        """The adapted parameters (k,) in SI: of the load, viscous and Coulomb friction of each joint."""
        return x["scaled"] * self.scale

    def update(self, t: Numeric, p: Params, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        position, velocity, acceleration, effort = (u[name] for name in REFERENCE)
        kd, rate = ops.array(p.kd), 2.0 * math.pi * ops.array(p.bandwidth)
        error, slower = position - u["position"], velocity - u["velocity"]
        w, dw = velocity + rate * error, acceleration + rate * slower
        s = u["velocity"] - w
        known, regressor = self._efforts(t, p, u, w, dw)
        feedforward = known + regressor @ x["scaled"] + effort
        request = feedforward - kd * s
        saturated: Numeric = 0.0
        for value, limit in zip(request, self._effort_limit, strict=True):
            saturated = ops.where(ops.abs(value) >= limit, 1.0, saturated)
        zone = ops.array(p.dead_zone)
        beyond = s - ops.clip(s, -zone, zone)
        change = -self._period * p.adaptation * (regressor.T @ beyond)
        scaled = ops.clip(x["scaled"] + ops.where(saturated > 0.5, 0.0, change), self.lowest, 1.0)
        command = {"position": position, "velocity": velocity, "effort": feedforward, "kp": kd * rate, "kd": kd}
        return {"scaled": scaled}, command | self._adapted({"scaled": scaled})

    def _adapted(self, x: State) -> dict[str, Numeric]:
        """The adapted parameters as signals."""
        values, k, n = self.parameters(x), len(self.adapted), self._n
        friction = dict(zip(FRICTION_SIGNALS, (values[k : k + n], values[k + n :]), strict=True))
        load = dict(zip(self._load, values[:k], strict=True))
        return load | {name: friction[name] for name in self._friction}

    def _efforts(
        self, t: Numeric, p: Params, u: Mapping[str, Numeric], w: Numeric, dw: Numeric
    ) -> tuple[Numeric, Numeric]:
        """(effort (n,) by the model, regressor (n, k) of the scaled parameters) at the velocity w and its rate. Other
        joints have their velocity, and their acceleration where it is prescribed; locked ones are at rest."""
        model, equations, index = self._model, self._model.equations, self._index
        locked, time = u["all_locked"] > 0.5, (t,) if self._model.equations.timed else ()
        q = equations.coordinates(u["all_position"])
        v = ops.where(locked, 0.0, u["all_velocity"])
        reference = ops.where(locked, 0.0, ops.set_at(v, index, w))
        a = ops.where(locked, 0.0, ops.set_at(u["all_acceleration"], index, dw))

        def of_slotine_and_li(function: Callable[..., Numeric]) -> Numeric:
            rest = np.zeros(model.nv)
            mean, half = 0.5 * (v + reference), 0.5 * (v - reference)
            return (function(q, mean, a) - function(q, half, rest) + function(q, rest, rest))[index]

        known = of_slotine_and_li(lambda q, v, a: equations.inverse_dynamics(q, v, a, *time))
        if p.friction:
            known = known + equations.friction_effort(reference)[index]
        columns = []
        if p.load is not None:
            link = p.load
            of_load = of_slotine_and_li(lambda q, v, a: model.link_regressor(q, v, a, link, *time))
            columns = [of_load[:, k] for k in self.adapted]
        for column in (w, ops.smooth_sign(w, CREEP_SPEED)):
            columns += [column[i] * np.eye(self._n)[i] for i in range(self._n)]
        return known, ops.array(columns).T * self.scale


def load(params: Params, context: ControllerContext) -> Adaptive:
    return Adaptive(params, context)
