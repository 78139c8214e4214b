"""Wittenburg's equations of a tree of general joints from the matrices of its graph, A q̈ = B.

Bodies are vertices, joints directed edges: S_ia is +1 where edge a leaves body i and −1 where it enters, the row of
the ground apart; T is the path matrix, T S = S T = E. Vectors are in ground axes: c_ia from the centre of mass of body
i to the point of joint a, z_a along joint a from its point on the parent to that on the child, p and k the axes of
rotation and translation of the dofs. With C_ia = S_ia c_ia and Z_ia = z_a for the parent i of joint a,

    ω = −(pT)ᵀ q̇,    d = (C + Z) T,    L = p × T d − k T    (rows: dofs, columns: bodies),
    ω̇ = −(pT)ᵀ q̈ + ω̇′,    r̈ = Lᵀ q̈ + U,
    A = L m Lᵀ + (pT) J (pT)ᵀ,
    B = L (F − m U) − pT (M − J ω̇′ − ω × J ω).

Elements of d: from the point of body i that leads to body j, back to the one it hangs on. Loops are −A q̈ + B + τ +
Hᵀ λ = 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.formulations import Formulation
from cosim.mechanics.formulations._closing import ByMultipliers, symmetric_matrix, vector
from cosim.mechanics.formulations._tree_state import TreeState, why_not_rigid
from cosim.mechanics.multibody.description.structure import Edge, Structure
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.tree import Tree

ABOUT = "Wittenburg's matrix equations of a tree: incidence and path matrix, O(n³)"
SOURCE = "Wittenburg, Dynamics of Systems of Rigid Bodies, 1977, chapter 5"

Vectors = dict[tuple[int, int], Numeric]  # a matrix of vectors: elements (i, j) that are not 0


def refusal(equations: MechanismEquations) -> str | None:
    return why_not_rigid(equations)


def load(equations: MechanismEquations) -> Formulation:
    return ByMultipliers(equations, tree_equations)


def structure(tree: Tree) -> Structure:
    """The graph of the moving bodies, with S and T; fixed joints are no edges of it."""
    edges = (Edge(a, joint, tree.parents[a - 1] + 1, a) for a, joint in enumerate(tree.joints, 1))
    return Structure((tree.mechanism.root, *(joint.child for joint in tree.joints)), tuple(edges))


def joints_to(T: np.ndarray, i: int) -> list[int]:
    """The joints on the path from the ground to body i."""
    return np.flatnonzero(T[:, i]).tolist()


def bodies_beyond(T: np.ndarray, a: int) -> list[int]:
    """The bodies that joint a leads to."""
    return np.flatnonzero(T[a]).tolist()


class TreeIncidence(NamedTuple):
    """The matrices of a tree in one state."""

    T: np.ndarray
    pT: Vectors  # by dof and body
    d: Vectors  # (C + Z) T, by body and body
    L: Vectors  # by dof and body


def graph(state: TreeState) -> TreeIncidence:
    found = structure(state.equations.tree)
    S, T = found.S, found.T
    d = joint_vectors(state, S, T)
    pT = {
        (dof, i): s.angular * T[a, i]
        for dof, (a, s) in enumerate(zip(state.body_of_dof, state.columns, strict=True))
        for i in bodies_beyond(T, a)
    }
    kT = {
        (dof, i): s.linear * T[a, i]
        for dof, (a, s) in enumerate(zip(state.body_of_dof, state.columns, strict=True))
        for i in bodies_beyond(T, a)
    }
    L: Vectors = {}
    for dof, k in kT:
        path = (j for j in joints_to(T, k) if (dof, j) in pT)
        L[dof, k] = ops.sum(ops.cross(pT[dof, j], d[j, k]) for j in path) - kT[dof, k]
    return TreeIncidence(T, pT, d, L)


def joint_vectors(state: TreeState, S: np.ndarray, T: np.ndarray) -> Vectors:
    """d = (C + Z) T."""
    C_and_Z: Vectors = {}
    for a, (joint, parent, here) in enumerate(zip(state.joints, state.parents, state.placed, strict=True)):
        C_and_Z[a, a] = S[a, a] * (here.rotation @ -state.central[a].com)
        if parent >= 0:  # c and z together: from the centre of mass of the parent to the point on the child
            arm = joint.position - state.central[parent].com
            C_and_Z[parent, a] = S[parent, a] * (state.placed[parent].rotation @ arm)
    d: Vectors = {}
    for (i, a), value in C_and_Z.items():
        for k in bodies_beyond(T, a):
            d[i, k] = d.get((i, k), 0.0) + T[a, k] * value
    return d


def tree_equations(state: TreeState) -> tuple[Numeric, Numeric]:
    """A (n, n) and B (n,) of A q̈ = B + τ."""
    T, pT, d, L = graph(state)
    n, gravity = len(state.parents), state.equations.gravity
    omega_dot, U = remainders(state, T, d)
    A: dict[tuple[int, int], Numeric] = {(r, r): rotor for r, rotor in enumerate(state.rotors)}
    B: dict[int, Numeric] = {}
    for k in range(n):
        m, _, inertia = state.central[k]
        rotation, omega = state.placed[k].rotation, state.placed[k].angular
        J = rotation @ inertia @ rotation.T
        F, M = state.loads[k]
        F = F + m * gravity
        dofs = [dof for dof in range(state.dofs) if (dof, k) in L]
        for i, r in enumerate(dofs):
            B[r] = B.get(r, 0.0) + L[r, k] @ (F - m * U[k])
            B[r] = B[r] - pT[r, k] @ (M - J @ omega_dot[k] - ops.cross(omega, J @ omega))
            weighted, turned = m * L[r, k], J @ pT[r, k]
            for s in dofs[i:]:
                A[r, s] = A.get((r, s), 0.0) + L[s, k] @ weighted + pT[s, k] @ turned
    return symmetric_matrix(state.dofs, A), vector(state.dofs, B)


def remainders(state: TreeState, T: np.ndarray, d: Vectors) -> tuple[list[Numeric], list[Numeric]]:
    """(ω̇′, U): angular accelerations, and accelerations of the centres of mass, where q̈ = 0 and the ground is at rest;

    ω̇′ = −Tᵀ f,    U = −Σ (ω̇′_j × d_ji + ω_j × (ω_j × d_ji)) − Tᵀ (s + 2 h)."""
    n = len(state.parents)
    f, s_and_h = [], []
    for joint, here, parent in zip(state.joints, state.placed, state.parents, strict=True):
        omega = np.zeros(3) if parent < 0 else state.placed[parent].angular
        f.append(here.rotation @ joint.bias.angular + ops.cross(omega, here.rotation @ joint.velocity.angular))
        h = ops.cross(omega, here.rotation @ joint.velocity.linear)
        s_and_h.append(here.rotation @ joint.bias.linear + 2.0 * h)
    paths = [joints_to(T, i) for i in range(n)]
    omega_dot = [ops.sum(-T[a, i] * f[a] for a in paths[i]) for i in range(n)]
    U = []
    for i in range(n):
        value = ops.sum(-T[a, i] * s_and_h[a] for a in paths[i])
        for j in paths[i]:
            omega = state.placed[j].angular
            value = value - ops.cross(omega_dot[j], d[j, i]) - ops.cross(omega, ops.cross(omega, d[j, i]))
        U.append(value)
    return omega_dot, U
