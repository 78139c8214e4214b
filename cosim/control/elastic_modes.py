"""The modes of elastic links about their equilibrium, while the joints are held, a step of their motion, and a
controller that knows them from a simulation along its reference, because no encoder measures them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.control.control_loop import DeclaredInputs
from cosim.control.controller_result import accepted
from cosim.core import ops
from cosim.core.errors import InputError
from cosim.core.layout import Layout
from cosim.core.types import (
    ALL,
    Array,
    Controller,
    ControllerContext,
    MechanismModel,
    Numeric,
    Signals,
    State,
    joint_signals,
    signals_of,
)

DIFFERENCE = 1e-6  # m, rad, m/s or rad/s, of differences
ITERATIONS = 20  # of the equilibrium
LARGEST_ANGLE = 1.5  # θ; beyond it the step is as here, which leaves room for less mass than at the start
FAST_DECAY = 0.5  # of faster oscillations, per period

FOLLOWED = ("reference_position", "reference_velocity", "reference_acceleration")


@dataclass(frozen=True, eq=False)
class ElasticModes:
    """The linear motion of the modes of elastic links about their equilibrium. modes: (m,) indices of the dofs;
    position: (m,) in equilibrium; damping, stiffness: (m, m); mass: (nv, nv) of the whole mechanism."""

    modes: Array
    position: Array
    mass: Array
    damping: Array
    stiffness: Array

    def own_mass(self, yielding: Array) -> Array:
        """(m, m) of the modes while the dofs `yielding` move freely, and all others are held."""
        own = self.mass[np.ix_(self.modes, self.modes)]
        if not len(yielding):
            return own
        beside = self.mass[np.ix_(yielding, self.modes)]
        return own - beside.T @ np.linalg.solve(self.mass[np.ix_(yielding, yielding)], beside)


def elastic_modes(model: MechanismModel, positions: Array, beside: Array | Sequence[int] = ()) -> ElasticModes:
    """positions: (nv,) of all dofs, the modes near their equilibrium; beside: dofs that count as modes where they are.
    Raises InputError where no equilibrium is found."""
    modes, chart = (
        np.array([*model.elastic_dofs, *beside], dtype=int),
        equilibrium(model, positions, model.elastic_dofs),
    )
    mass = model.mass_matrix(np.asarray(model.coordinates(chart)), *_start(model))
    damping, stiffness = _slope(model, modes, chart, along_velocity=True), _slope(model, modes, chart)
    return ElasticModes(modes, chart[modes], np.asarray(mass, dtype=float), damping, 0.5 * (stiffness + stiffness.T))


def equilibrium(model: MechanismModel, positions: Array, dofs: Array) -> Array:
    """(nv,) the positions with these dofs where gravity and springs hold them while all others stay, by Newton's
    method. Raises InputError where none is found."""
    chart, change = positions.copy(), np.zeros(len(dofs))
    for _ in range(ITERATIONS):
        change = np.linalg.solve(_slope(model, dofs, chart), _effort(model, dofs, chart))
        chart[dofs] -= change
        if np.abs(change).max(initial=0.0) < DIFFERENCE:
            return chart
    worst = model.dof_names[dofs[int(np.abs(change).argmax())]]
    raise InputError(f"the equilibrium of mode '{worst}' is not found: its load bends it too far; check its stiffness")


def _start(model: MechanismModel) -> tuple[float, ...]:
    return (0.0,) if model.timed else ()


def _effort(model: MechanismModel, dofs: Array, position: Array, velocity: Array | None = None) -> Array:
    """(m,) that would hold the dofs"""
    q, rest, equations = np.asarray(model.coordinates(position), dtype=float), np.zeros(model.nv), model.equations
    v = rest if velocity is None else velocity
    held = equations.inverse_dynamics(q, v, rest, *_start(model))
    return np.asarray(held + equations.friction_effort(v), dtype=float)[dofs]


def _slope(model: MechanismModel, dofs: Array, chart: Array, along_velocity: bool = False) -> Array:
    """(m, m) ∂(effort)/∂(position or velocity) of the dofs"""
    held = _effort(model, dofs, chart)
    units = DIFFERENCE * np.eye(model.nv)[dofs]
    moved = [
        _effort(model, dofs, chart, unit) if along_velocity else _effort(model, dofs, chart + unit) for unit in units
    ]
    return np.array([each - held for each in moved]).T / DIFFERENCE


def implicit_step(mass: Array, damping: Array, stiffness: Array, period: float) -> tuple[Array, Array]:
    """(G, D) of oscillations with these matrices (m, m), for the step

        η⁺ = η + T η̇ + T²/2 G a,   η̇⁺ = D (η̇ + T G a),   a at η + T/2 η̇.

    For an oscillation of the angle θ = ω T and the damping ζ, G is 1 / (θ²/4 / sin²(θ/2) + ζ θ): a linearly implicit
    midpoint rule with the exact frequency. Oscillations that are too fast for the period keep the step stable and decay
    by D, so that they stay where their load bends them."""
    from scipy.linalg import eigh  # takes longer to import than most rigs to read

    squares, shapes = eigh(stiffness, mass)
    angle = period * np.sqrt(np.maximum(squares, 1e-12))
    decay = 0.5 * period * np.einsum("ik,ij,jk->k", shapes, damping, shapes)
    gain = 1.0 / (0.25 * angle**2 / np.sin(0.5 * np.minimum(angle, LARGEST_ANGLE)) ** 2 + decay)
    back = shapes.T @ mass
    return shapes @ (gain[:, None] * back), shapes @ (np.where(angle > LARGEST_ANGLE, FAST_DECAY, 1.0)[:, None] * back)


class ModelledModes:
    """The block `controller` with the modes of the model in place of measured ones.

    From call to call, a period, the modes move with the controlled joints on their reference, prescribed ones on their
    motion, and all others as measured, by the step of `implicit_step`; its matrices are constant, from the modes at the
    start.
    """

    def __init__(self, controller: Controller, context: ControllerContext) -> None:
        modes = context.numeric_model.elastic_dofs
        self._controller, self._modes, self._context = controller, modes, context
        # without a reference of its positions the joints of a controller move as measured, by their efforts
        self._index = context.index if FOLLOWED[0] in controller.inputs else context.index[:0]
        self.params, self.outputs = controller.params, controller.outputs
        self.inputs: Signals = {**controller.inputs, **joint_signals(ALL, context.model.nv)}
        if len(self._index):
            self.inputs = {**self.inputs, **joint_signals(FOLLOWED, len(self._index))}
        self.signals = signals_of(controller)
        self._layout = Layout(controller.initial())
        start = elastic_modes(context.numeric_model, context.start)
        held = [*modes, *context.index, *np.flatnonzero(context.prescribed)]
        mass = start.own_mass(np.setdiff1d(np.arange(context.model.nv), held))
        self._start = start.position
        self._gain, self._kept = implicit_step(mass, start.damping, start.stiffness, context.period)

    def initial(self) -> State:
        """The modes where they hold the links at the start; whether it was called before, and the motion of the joints
        that it was called with."""
        rest = np.zeros(len(self._index))
        modes = {"position": self._start, "velocity": np.zeros(len(self._modes)), "called": np.zeros(1)}
        return {"controller": self._controller.initial(), "modes": modes | dict.fromkeys(FOLLOWED, rest)}

    def update(self, t: Numeric, p: Any, x: State, u: Mapping[str, Numeric]) -> tuple[State, dict[str, Numeric]]:
        """Raises WrongResult if the controller returns anything but its next state, its command and its signals."""
        modes, known = self._now(t, x["modes"], u), dict(u)
        for name in ("position", "velocity"):
            known[f"all_{name}"] = ops.set_at(u[f"all_{name}"], self._modes, modes[name])
        own = DeclaredInputs({name: known[name] for name in self._controller.inputs})
        result = self._controller.update(t, p, x["controller"], own)
        state, outputs = accepted(result, self._controller, self._layout, len(self._context.joints))
        followed = (
            {name: u[name] for name in FOLLOWED} if len(self._index) else {name: x["modes"][name] for name in FOLLOWED}
        )
        return {"controller": state, "modes": modes | followed | {"called": np.ones(1)}}, outputs

    def _now(self, t: Numeric, x: State, u: Mapping[str, Numeric]) -> dict[str, Numeric]:
        """Position and velocity of the modes, a period after x."""
        equations, period, half = self._context.model.equations, self._context.period, 0.5 * self._context.period
        locked = u["all_locked"] > 0.5
        chart, v, a = u["all_position"], u["all_velocity"], u["all_acceleration"]
        if len(self._index):  # in the middle of the period
            position, velocity, acceleration = (0.5 * (x[name] + u[name]) for name in FOLLOWED)
            chart = ops.set_at(chart, self._index, position)
            v = ops.set_at(v, self._index, velocity)
            a = ops.set_at(a, self._index, acceleration)
        chart = ops.where(locked, u["all_position"], chart)
        v, a = ops.where(locked, 0.0, v), ops.where(locked, 0.0, a)
        chart = ops.set_at(chart, self._modes, x["position"] + half * x["velocity"])
        v = ops.set_at(v, self._modes, x["velocity"])
        known = self._context.prescribed.copy()
        known[self._index] = True
        q = equations.coordinates(chart)
        applied = u["all_effort"] - equations.friction_effort(v)
        found, _ = equations.hybrid_dynamics(q, v, a, applied, ops.logical_or(known, locked), t)
        change = ops.where(x["called"][0] > 0.5, self._gain @ found[self._modes], 0.0)
        return {
            "position": x["position"] + period * (x["velocity"] + half * change),
            "velocity": self._kept @ (x["velocity"] + period * change),
        }
