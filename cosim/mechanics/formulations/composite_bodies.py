"""Composite rigid bodies: a unit acceleration of one dof moves all bodies beyond it as one rigid body.

In ground axes about one point O of the tree, the origin of its first body, composites are plain sums, and the force
that moves one,

    f = m p̈_O + α × (m c),    n = I_O α + (m c) × p̈_O,

meets every dof on the way to the ground without being carried from body to body: A_ij = s_i · (f, n)_j.
"""

from __future__ import annotations

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.formulations import Formulation
from cosim.mechanics.formulations._closing import ByMultipliers, symmetric_matrix
from cosim.mechanics.formulations._tree_state import TreeState, why_not_rigid
from cosim.mechanics.formulations.newton_euler import bias_efforts
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.spatial import SpatialInertia, SpatialVector

ABOUT = "composite rigid bodies for the mass matrix, Newton–Euler for the bias, O(n²) and a solution in O(n³)"
SOURCE = "Walker and Orin, Efficient dynamic computer simulation of robotic mechanisms, 1982, method 3"


def refusal(equations: MechanismEquations) -> str | None:
    return why_not_rigid(equations)


def load(equations: MechanismEquations) -> Formulation:
    return ByMultipliers(equations, tree_equations)


def tree_equations(state: TreeState) -> tuple[Numeric, Numeric]:
    """A (n, n) and B (n,) of A q̈ = B + τ."""
    return mass_matrix(state), -bias_efforts(state)


def mass_matrix(state: TreeState) -> Numeric:
    """A (n, n), rotors included."""
    origins = first_origins(state)
    composites = [about(state, k, origins[k]) for k in range(len(state.joints))]
    for k in reversed(range(len(composites))):
        if (parent := state.parents[k]) >= 0:
            composites[parent] = composites[parent] + composites[k]
    screws = [
        SpatialVector(s.linear + ops.cross(s.angular, origins[k] - state.placed[k].position), s.angular)
        for k, s in zip(state.body_of_dof, state.columns, strict=True)
    ]
    elements: dict[tuple[int, int], Numeric] = {}
    for j, k in enumerate(state.body_of_dof):
        force = composites[k] @ screws[j]
        while k >= 0:
            for i in state.joints[k].dofs:
                if i <= j:
                    elements[i, j] = screws[i].dot(force)
            k = state.parents[k]
        elements[j, j] = elements[j, j] + state.rotors[j]
    return symmetric_matrix(state.dofs, elements)


def first_origins(state: TreeState) -> list[Numeric]:
    """Of every body the origin of the first body of its tree."""
    found: list[Numeric] = []
    for here, parent in zip(state.placed, state.parents, strict=True):
        found.append(here.position if parent < 0 else found[parent])
    return found


def about(state: TreeState, k: int, point: Numeric) -> SpatialInertia:
    """The inertia of body k about a point, in ground axes."""
    body, here = state.central[k], state.placed[k]
    c = here.position - point + here.rotation @ body.com
    moved = here.rotation @ body.inertia @ here.rotation.T
    inertia = moved + body.mass * ((c @ c) * np.eye(3) - ops.array([[x * y for y in c] for x in c]))
    return SpatialInertia(body.mass * np.eye(3), ops.skew(body.mass * c), inertia)
