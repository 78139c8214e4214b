"""Recursive Newton–Euler equations: the mass matrix column by column, the bias from q̈ = 0.

Outward, from the ground to the tips, along the axes of each body (Aᵀ takes vectors from the parent's axes):

    ω = Aᵀ ω_p + Ω,    ω̇ = Aᵀ ω̇_p + Aᵀ ω_p × Ω + Ω̊,
    p̈ = Aᵀ (p̈_p + ω̇_p × d + ω_p × (ω_p × d)) + 2 Aᵀ ω_p × d̊ + d̊̊,
    F = m (p̈ + ω̇ × c + ω × (ω × c)),    N = J ω̇ + ω × J ω,

inward f = F + Σ A f_child, n = N + c × F + Σ (A n_child + d × A f_child), and the efforts are τ = s · (f, n).
With q̇ = 0, g = 0 and q̈ a unit vector the efforts are a column of A; with q̈ = 0 they are −B.
"""

from __future__ import annotations

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.formulations import Formulation
from cosim.mechanics.formulations._closing import ByMultipliers
from cosim.mechanics.formulations._tree_state import CentralBody, HingeState, TreeState, why_not_rigid
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.spatial import SpatialVector

ABOUT = "recursive Newton–Euler equations: the mass matrix column by column, O(n³)"
SOURCE = (
    "Luh, Walker and Paul, On-line computational scheme for mechanical manipulators, 1980;"
    " Walker and Orin, Efficient dynamic computer simulation of robotic mechanisms, 1982, method 1"
)


def refusal(equations: MechanismEquations) -> str | None:
    return why_not_rigid(equations)


def load(equations: MechanismEquations) -> Formulation:
    return ByMultipliers(equations, tree_equations)


def tree_equations(state: TreeState) -> tuple[Numeric, Numeric]:
    """A (n, n) and B (n,) of A q̈ = B + τ."""
    n = state.dofs
    columns = [column(state, dof) for dof in range(n)]
    return ops.array(np.transpose(columns)).reshape(n, n), -bias_efforts(state)


def column(state: TreeState, dof: int) -> Numeric:
    """The efforts (n,) of a unit acceleration of one dof at rest and without gravity. Bodies that are not moved by it
    take no part in the recursions but for passing on the force."""
    moved: dict[int, SpatialVector] = {}
    forces: dict[int, SpatialVector] = {}
    for k, (joint, parent) in enumerate(zip(state.joints, state.parents, strict=True)):
        if dof in joint.dofs:
            moved[k] = joint.columns[joint.dofs.index(dof)]
        elif parent in moved:
            moved[k] = carried(joint, moved[parent])
        if k in moved:
            forces[k] = inertial_force(state.central[k], moved[k])
    efforts = inward(state, forces)
    return ops.set_at(efforts, [dof], [efforts[dof] + state.rotors[dof]])


def bias_efforts(state: TreeState) -> Numeric:
    """The efforts (n,) that q̈ = 0 takes against gravity, velocities and applied forces."""
    omegas: list[Numeric] = []
    accelerations: list[SpatialVector] = []
    forces: dict[int, SpatialVector] = {}
    for k, (joint, parent) in enumerate(zip(state.joints, state.parents, strict=True)):
        above = SpatialVector(-state.equations.gravity, np.zeros(3)) if parent < 0 else accelerations[parent]
        omega_p = np.zeros(3) if parent < 0 else omegas[parent]
        here = joint.rotation.T @ omega_p
        slip, spin = joint.velocity
        centripetal = ops.cross(omega_p, ops.cross(omega_p, joint.position))
        linear = joint.rotation.T @ centripetal + 2.0 * ops.cross(here, slip) + joint.bias.linear
        angular = ops.cross(here, spin) + joint.bias.angular
        omegas.append(here + spin)
        accelerations.append(carried(joint, above) + SpatialVector(linear, angular))
        forces[k] = inertial_force(state.central[k], accelerations[k], omegas[k])
        if k in state.wrenches:
            forces[k] = forces[k] - state.wrenches[k]
    return inward(state, forces)


def carried(joint: HingeState, a: SpatialVector) -> SpatialVector:
    """The acceleration of the body as part of its parent, without centripetal terms."""
    linear = a.linear + ops.cross(a.angular, joint.position)
    return SpatialVector(joint.rotation.T @ linear, joint.rotation.T @ a.angular)


def inertial_force(body: CentralBody, a: SpatialVector, omega: Numeric | None = None) -> SpatialVector:
    """(F, N + c × F), the force and its moment about the origin that the motion takes; omega: None at rest."""
    at_com, moment = a.linear + ops.cross(a.angular, body.com), body.inertia @ a.angular
    if omega is not None:
        at_com = at_com + ops.cross(omega, ops.cross(omega, body.com))
        moment = moment + ops.cross(omega, body.inertia @ omega)
    force = body.mass * at_com
    return SpatialVector(force, moment + ops.cross(body.com, force))


def inward(state: TreeState, forces: dict[int, SpatialVector]) -> Numeric:
    """The efforts (n,) of forces on the bodies, summed from the tips to the ground."""
    total, efforts = dict(forces), [0.0] * state.dofs
    for k in reversed(range(len(state.joints))):
        if k not in total:
            continue
        joint, parent, here = state.joints[k], state.parents[k], total[k]
        for dof, s in zip(joint.dofs, joint.columns, strict=True):
            efforts[dof] = s.dot(here)
        if parent >= 0:
            force, moment = joint.rotation @ here.linear, joint.rotation @ here.angular
            passed = SpatialVector(force, moment + ops.cross(joint.position, force))
            total[parent] = total[parent] + passed if parent in total else passed
    return ops.array(efforts)
