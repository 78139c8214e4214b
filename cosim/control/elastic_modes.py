"""The modes of elastic links about their equilibrium, while the joints are held, and a step of their motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.core.errors import InputError
from cosim.core.types import Array, MechanismModel

STEP = 1e-6  # m, rad, m/s or rad/s, of differences
ITERATIONS = 20  # of the equilibrium
FASTEST = 1.5  # θ; beyond it the step is as here, which leaves room for less mass than at the start
DECAY = 0.5  # of faster oscillations, per period


@dataclass(frozen=True, eq=False)
class ElasticModes:
    """modes: (m,) indices of the dofs; position: (m,) in equilibrium; damping, stiffness: (m, m); mass: (nv, nv) of the
    whole mechanism."""

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
        if np.abs(change).max(initial=0.0) < STEP:
            return chart
    worst = model.dof_names[dofs[int(np.abs(change).argmax())]]
    raise InputError(f"the equilibrium of mode '{worst}' is not found: its load bends it too far; check its stiffness")


def _start(model: MechanismModel) -> tuple[float, ...]:
    return (0.0,) if model.timed else ()


def _effort(model: MechanismModel, dofs: Array, position: Array, velocity: Array | None = None) -> Array:
    """(m,) that would hold the dofs"""
    q, rest, equations = np.asarray(model.coordinates(position), dtype=float), np.zeros(model.nv), model.equations
    v = rest if velocity is None else velocity
    held = equations.inverse_dynamics(q, v, rest, *_start(model)) + equations.spring_effort(q)
    return np.asarray(held + equations.friction_effort(v), dtype=float)[dofs]


def _slope(model: MechanismModel, dofs: Array, chart: Array, along_velocity: bool = False) -> Array:
    """(m, m) ∂(effort)/∂(position or velocity) of the dofs"""
    held = _effort(model, dofs, chart)
    units = STEP * np.eye(model.nv)[dofs]
    moved = [
        _effort(model, dofs, chart, unit) if along_velocity else _effort(model, dofs, chart + unit) for unit in units
    ]
    return np.array([each - held for each in moved]).T / STEP


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
    gain = 1.0 / (0.25 * angle**2 / np.sin(0.5 * np.minimum(angle, FASTEST)) ** 2 + decay)
    back = shapes.T @ mass
    return shapes @ (gain[:, None] * back), shapes @ (np.where(angle > FASTEST, DECAY, 1.0)[:, None] * back)
