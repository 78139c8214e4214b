"""Inertia that several dofs accelerate together, beside what a sweep over the tree takes: efforts −C K Cᵀ q̈.

The columns of C are directions of motion. A rotor that turns with several joints has one, its ratios, and its inertia
is K; a drive of several joints has one along each of them. With q̈ = w where K = 0, and W = Cᵀ M⁻¹ C, the
accelerations x = Cᵀ q̈ along the directions follow from

    (1 + W K) x = Cᵀ w                                                         (Woodbury 1950),

which takes one response of the tree more for each direction: to efforts along it, of a tree at rest. Impulses and
jumps of velocities obey the same equations. Nothing is divided by K, which may be 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.constrained_dynamics import Solution
from cosim.mechanics.multibody.friction import FRICTION_SPEED
from cosim.mechanics.multibody.tree import Tree


class CoupledInertia(NamedTuple):
    """K (k, k) along the directions C (n, k)."""

    directions: np.ndarray
    inertia: Numeric

    @classmethod
    def of_rotors(cls, tree: Tree) -> CoupledInertia:
        """Of the rotors of a tree that turn with several joints, on the dofs of the tree."""
        n, inertias = len(tree.rotors), [rotor.inertia for rotor in tree.rotors]
        along = np.array([[float(i == j) for j in range(n)] for i in range(n)]).reshape(n, n)
        return cls(tree.rotor_directions, ops.array(inertias) * along if n else along)

    @property
    def acts(self) -> bool:
        return self.directions.shape[1] > 0

    @property
    def matrix(self) -> Numeric:
        """C K Cᵀ (n, n)"""
        return self.directions @ self.inertia @ self.directions.T

    def times(self, a: Numeric) -> Numeric:
        """C K Cᵀ a (n,)"""
        return self.directions @ (self.inertia @ (self.directions.T @ a))

    def along(self, free: Numeric, responses: Sequence[Numeric]) -> Numeric:
        """K x (k,): what acts along the directions, against the acceleration; free: w (n,), responses: of each
        direction M⁻¹ c (n,)."""
        W = self.directions.T @ ops.array(list(responses)).T
        x = ops.solve(np.eye(len(self.inertia)) + W @ self.inertia, self.directions.T @ free)
        return self.inertia @ x

    def joined(self, free: Solution, responses: Sequence[Solution], tau: Numeric, prescribed: Numeric) -> Solution:
        """The solution with this inertia, from the one without it and the responses of a tree at rest to efforts along
        each direction; tau, prescribed (n,): as in `hybrid_dynamics`."""
        taken = self.along(free.acceleration, [unit.acceleration for unit in responses])
        a, effort, multipliers, power = free
        for force, unit in zip(taken, responses, strict=True):
            a, effort = a - force * unit.acceleration, effort - force * unit.effort
            multipliers, power = multipliers - force * unit.multipliers, power - force * unit.power
        return Solution(a, ops.where(prescribed, effort + self.directions @ taken, tau), multipliers, power)


def rotor_friction(tree: Tree, v_tree: Numeric) -> Numeric:
    """Damping and dry friction of the rotors that turn with several joints, on the dofs of the tree, along +v:
    c (d θ̇ + f θ̇ / √(θ̇² + v_s²)), θ̇ = c·v."""
    effort: Numeric = np.zeros(len(v_tree))
    for rotor, c in zip(tree.rotors, tree.rotor_directions.T, strict=True):
        rate = c @ v_tree
        torque = rotor.damping * rate
        if not ops.is_zero(rotor.friction):
            torque = torque + rotor.friction * ops.smooth_sign(rate, FRICTION_SPEED)
        effort = effort + c * torque
    return effort
