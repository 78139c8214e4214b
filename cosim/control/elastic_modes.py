"""The modes of elastic links about their equilibrium, while the joints are held, and a step of their motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.errors import InputError
from cosim.types import Array, MechanismModel

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
    """positions: (nv,) of all dofs, those of the modes near their equilibrium; beside: dofs that count as modes
    where they are. Raises InputError where no equilibrium is found."""
    equations, rest, time = model.equations, np.zeros(model.nv), (0.0,) if model.timed else ()
    modes, chart, m = np.array([*model.elastic_dofs, *beside], dtype=int), positions.copy(), len(model.elastic_dofs)

    def effort(position: Array, velocity: Array = rest) -> Array:
        """(m,) that would hold the modes"""
        q = np.asarray(model.coordinates(position), dtype=float)
        held = equations.inverse_dynamics(q, velocity, rest, *time) + equations.spring_effort(q)
        return np.asarray(held + equations.friction_effort(velocity), dtype=float)[modes]

    def slope(along_velocity: bool = False) -> Array:
        held = effort(chart)
        moved = [effort(chart, unit) if along_velocity else effort(chart + unit) for unit in units]
        return np.array([each - held for each in moved]).T / STEP

    units = STEP * np.eye(model.nv)[modes]
    change = np.zeros(m)
    for _ in range(ITERATIONS):
        change = np.linalg.solve(slope()[:m, :m], effort(chart)[:m])
        chart[modes[:m]] -= change
        if np.abs(change).max(initial=0.0) < STEP:
            break
    else:
        worst = model.dof_names[modes[int(np.abs(change).argmax())]]
        what = f"the equilibrium of mode '{worst}' is not found: its load bends it too far"
        raise InputError(f"{what}; check its stiffness, or take 'modes: measured'")
    stiffness = slope()
    mass = np.asarray(model.mass_matrix(np.asarray(model.coordinates(chart)), *time), dtype=float)
    return ElasticModes(modes, chart[modes], mass, slope(along_velocity=True), 0.5 * (stiffness + stiffness.T))


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
