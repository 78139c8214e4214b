"""Trees of bodies that rotate about points, by augmented bodies and barycentres.

Every body gets the masses of the bodies behind each of its joints as point masses at that joint; M is the mass of the
tree. Vectors are fixed to their body i:

    d_ij    from its point towards body j (its centre of mass for j = i) back to the point it hangs on,
            0 where i is not on the path to j,
    b_i0 = Σ m_j d_ij / M    from the barycentre back to that point,    b_ij = b_i0 − d_ij    to the point towards j.

Hanging on the ground by a joint that rotates about a point:

    K_i = J_i + Σ m_k (d_ik² E − d_ik d_ik),    K_ij = M (d_ij·b_j0 E − b_j0 d_ij) for j beyond i,
    Σ K_ij ω̇_j = M_i − ω_i × K_i ω_i − Σ d_ij × (M b̈′_j0 + F_j) − M b_i0 × Σ d̈′_ji.

On any other joint, as a craft that floats, the centre of mass separates, M r̈_C = Σ F, and about it

    K_i = J_i + Σ m_k (b_ik² E − b_ik b_ik),    K_ij = M (b_ji b_ij − b_ji·b_ij E),
    Σ K_ij ω̇_j = M_i − ω_i × K_i ω_i + M Σ b_ij × b̈′_ji + Σ b_ij × F_j.

Dashes: the part of ω × (ω × …). With ω = −(pT)ᵀ q̇ and the velocity Cᵀ q̇ of the centre of mass,

    A = (pT) K (pT)ᵀ + C M Cᵀ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.formulations import Formulation
from cosim.mechanics.formulations._closing import ByMultipliers, symmetric_matrix, vector
from cosim.mechanics.formulations._tree_state import TreeState, why_not_rigid
from cosim.mechanics.formulations.wittenburg import Vectors, bodies_beyond, structure
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.joints import REVOLUTE, SPHERICAL, UNIVERSAL

ABOUT = "augmented bodies and barycentres of trees with spherical, universal and revolute joints, O(n³)"
SOURCE = (
    "Hooker and Margulies, The dynamical attitude equations for an n-body satellite, 1965;"
    " Wittenburg, Dynamics of Systems of Rigid Bodies, 1977, chapter 5"
)

ROTATIONS = (REVOLUTE, UNIVERSAL, SPHERICAL)


def refusal(equations: MechanismEquations) -> str | None:
    if (why := why_not_rigid(equations)) is not None:
        return why
    tree = equations.tree
    for joint, kind, parent in zip(tree.joints, tree.kinds, tree.parents, strict=True):
        if kind.timed:
            return f"joint '{joint.name}' depends on time, and the ground of augmented bodies is at rest"
        if parent >= 0 and kind not in ROTATIONS:
            return f"joint '{joint.name}' does not keep a point fixed; joints between bodies must be rotations"
    return without_barycentre(equations)


def load(equations: MechanismEquations) -> Formulation:
    return ByMultipliers(equations, tree_equations)


def without_barycentre(equations: MechanismEquations) -> str | None:
    """Which tree on the ground has no mass, None where all have some."""
    for first, mass in zip(*tree_masses(equations), strict=True):
        if ops.is_zero(mass):
            return f"the tree of joint '{equations.tree.joints[first].name}' has no mass, so no barycentre"
    return None


def tree_masses(equations: MechanismEquations) -> tuple[list[int], list[Numeric]]:
    """(the first body, the mass) of every tree on the ground."""
    firsts = first_bodies(equations.tree.parents)
    trees = sorted(set(firsts))
    mass = [body.mass for body in equations.tree.bodies]
    return trees, [ops.sum(m for m, first in zip(mass, firsts, strict=True) if first == tree) for tree in trees]


def first_bodies(parents: Sequence[int]) -> list[int]:
    """Of every body the first body of its tree."""
    found: list[int] = []
    for k, parent in enumerate(parents):
        found.append(k if parent < 0 else found[parent])
    return found


class PointMass(NamedTuple):
    """Masses of other bodies, or its own, at a point of an augmented body."""

    mass: Numeric
    d: Numeric  # from the point back to the one that the body hangs on
    bodies: list[int]  # whose masses these are


class AugmentedTree(NamedTuple):
    """The augmented bodies of one tree; of each its own mass first, then those at its joints. The bodies that do not
    lie beyond it are at the point that it hangs on, where d is 0."""

    members: list[int]
    mass: Numeric
    points: dict[int, list[PointMass]]
    b0: dict[int, Numeric]

    @property
    def d(self) -> Vectors:
        """d_ij where it is not 0."""
        return {(i, j): point.d for i in self.members for point in self.points[i] for j in point.bodies}

    @property
    def b(self) -> Vectors:
        """b_ij"""
        d = self.d
        return {(i, j): self.b0[i] - d.get((i, j), 0.0) for i in self.members for j in self.members}

    def about_barycentre(self, i: int) -> list[PointMass]:
        """The masses of body i and the bodies before it, with their b_ij in place of d."""
        beyond = {j for point in self.points[i] for j in point.bodies}
        before = [j for j in self.members if j not in beyond]
        rest = self.mass - ops.sum(point.mass for point in self.points[i])
        found = [PointMass(point.mass, self.b0[i] - point.d, point.bodies) for point in self.points[i]]
        return [*found, PointMass(rest, self.b0[i], before)] if before else found


def augmented_tree(
    members: list[int],
    parents: Sequence[int],
    T: np.ndarray,
    mass: Sequence[Numeric],
    centres: Sequence[Numeric],
    arms: Sequence[Numeric],
) -> AugmentedTree:
    """centres, arms: of every body the vectors to its centre of mass from the point it hangs on, and to that point from
    the one its parent hangs on."""
    points = {i: [PointMass(mass[i], -centres[i], [i])] for i in members}
    for a in members:
        if (parent := parents[a]) >= 0:
            beyond = bodies_beyond(T, a)
            points[parent].append(PointMass(ops.sum(mass[j] for j in beyond), -arms[a], beyond))
    total = ops.sum(mass[k] for k in members)
    b0 = {i: ops.sum(point.mass * point.d for point in points[i]) / total for i in members}
    return AugmentedTree(members, total, points, b0)


def tree_equations(state: TreeState) -> tuple[Numeric, Numeric]:
    """A (n, n) and B (n,) of A q̈ = B + τ."""
    T, firsts = structure(state.equations.tree).T, first_bodies(state.parents)
    A: dict[tuple[int, int], Numeric] = {(r, r): rotor for r, rotor in enumerate(state.rotors)}
    B: dict[int, Numeric] = {}
    omega_dot = remainders(state)
    mass = [body.mass for body in state.central]
    centres = [here.rotation @ body.com for here, body in zip(state.placed, state.central, strict=True)]
    for first in sorted(set(firsts)):
        members = [k for k, other in enumerate(firsts) if other == first]
        tree = augmented_tree(members, state.parents, T, mass, centres, state.arms)
        hangs = state.equations.tree.kinds[first] in ROTATIONS
        K, moments = hanging(state, tree) if hangs else floating(state, tree)
        add_rotations(state, T, tree, K, moments, omega_dot, A, B)
        if not hangs:
            add_translation(state, tree, omega_dot, A, B)
    return symmetric_matrix(state.dofs, A), vector(state.dofs, B)


def hanging(state: TreeState, tree: AugmentedTree) -> tuple[Vectors, dict[int, Numeric]]:
    """(K_ij for j ≥ i, right sides) of a tree that hangs on the ground by a rotation."""
    members, M, points, b0 = tree
    d = tree.d
    K = {(i, j): M * (r @ b0[j] * np.eye(3) - outer(b0[j], r)) for (i, j), r in d.items() if i != j}
    moments: dict[int, Numeric] = {}
    for i in members:
        K[i, i] = augmented_inertia(state, i, points[i])
        omega, (_, moment) = state.placed[i].angular, force_and_moment(state, i)
        moment = moment - ops.cross(omega, K[i, i] @ omega)
        for point in points[i]:
            pulls = [M * centripetal(state, j, b0[j]) for j in point.bodies if j != i]
            forces = [force_and_moment(state, j)[0] for j in point.bodies]
            moment = moment - ops.cross(point.d, ops.sum([*pulls, *forces]))
        before = [centripetal(state, j, d[j, i]) for j in members if j != i and (j, i) in d]
        if before:
            moment = moment - M * ops.cross(b0[i], ops.sum(before))
        moments[i] = moment
    return K, moments


def floating(state: TreeState, tree: AugmentedTree) -> tuple[Vectors, dict[int, Numeric]]:
    """(K_ij for j ≥ i, right sides) of a tree about its centre of mass."""
    members, M, _, _ = tree
    b = tree.b
    K = {
        (i, j): M * (outer(b[j, i], b[i, j]) - b[j, i] @ b[i, j] * np.eye(3)) for i in members for j in members if j > i
    }
    moments: dict[int, Numeric] = {}
    for i in members:
        points = tree.about_barycentre(i)
        K[i, i] = augmented_inertia(state, i, points)
        omega, (_, moment) = state.placed[i].angular, force_and_moment(state, i)
        moment = moment - ops.cross(omega, K[i, i] @ omega)
        for point in points:
            pulls = [M * centripetal(state, j, b[j, i]) for j in point.bodies if j != i]
            forces = [force_and_moment(state, j)[0] for j in point.bodies]
            moment = moment + ops.cross(point.d, ops.sum([*pulls, *forces]))
        moments[i] = moment
    return K, moments


def augmented_inertia(state: TreeState, i: int, points: Sequence[PointMass]) -> Numeric:
    """K_i = J_i + Σ m (d² E − d d), in ground axes."""
    rotation = state.placed[i].rotation
    K = rotation @ state.central[i].inertia @ rotation.T
    for mass, d, _ in points:
        K = K + mass * (d @ d * np.eye(3) - outer(d, d))
    return K


def force_and_moment(state: TreeState, j: int) -> tuple[Numeric, Numeric]:
    """(F_j with gravity, M_j) at the centre of mass."""
    force, moment = state.loads[j]
    return force + state.central[j].mass * state.equations.gravity, moment


def centripetal(state: TreeState, j: int, r: Numeric) -> Numeric:
    """ω × (ω × r) of a vector fixed to body j."""
    omega = state.placed[j].angular
    return ops.cross(omega, ops.cross(omega, r))


def remainders(state: TreeState) -> list[Numeric]:
    """ω̇′: the angular accelerations where q̈ = 0."""
    return [remainder.angular for remainder in state.remainders]


def outer(x: Numeric, y: Numeric) -> Numeric:
    return ops.array([[a * b for b in y] for a in x])


def add_rotations(
    state: TreeState,
    T: np.ndarray,
    tree: AugmentedTree,
    K: Vectors,
    moments: dict[int, Numeric],
    omega_dot: list[Numeric],
    A: dict[tuple[int, int], Numeric],
    B: dict[int, Numeric],
) -> None:
    """(pT) K (pT)ᵀ to A, −pT (moments − K ω̇′) to B."""
    axes = [s.angular for s in state.columns]
    for (i, j), block in K.items():
        moments[i] = moments[i] - block @ omega_dot[j]
        if i != j:
            moments[j] = moments[j] - block.T @ omega_dot[i]
    for (a, b), block in summed(state.parents, tree.members, K).items():
        for s in state.joints[b].dofs:
            turned = block @ axes[s]
            for r in state.joints[a].dofs:
                if r <= s:
                    A[r, s] = A.get((r, s), 0.0) + axes[r] @ turned
    for a in tree.members:
        moment = ops.sum(moments[i] for i in bodies_beyond(T, a))
        for dof in state.joints[a].dofs:
            B[dof] = B.get(dof, 0.0) + axes[dof] @ moment


def summed(parents: Sequence[int], members: Sequence[int], K: Vectors) -> Vectors:
    """T K Tᵀ, elements (a, b) with b ≥ a: the sums of K_ij over the bodies i beyond joint a and j beyond joint b.
    K: elements (i, j) with j ≥ i of a symmetric matrix."""
    rows = dict(K) | {(j, i): block.T for (i, j), block in K.items() if i != j}
    for a in reversed(members):
        for j in members:
            if (a, j) in rows and (parent := parents[a]) >= 0:
                rows[parent, j] = rows[parent, j] + rows[a, j] if (parent, j) in rows else rows[a, j]
    found = {(a, j): block for (a, j), block in rows.items() if j >= a}
    for b in reversed(members):
        for a in members:
            if (a, b) in found and a <= (parent := parents[b]):
                found[a, parent] = found[a, parent] + found[a, b] if (a, parent) in found else found[a, b]
    return found


def add_translation(
    state: TreeState,
    tree: AugmentedTree,
    omega_dot: list[Numeric],
    A: dict[tuple[int, int], Numeric],
    B: dict[int, Numeric],
) -> None:
    """C M Cᵀ to A, C (Σ F − M r̈′_C) to B; the centre of mass is at r_0 − Σ b_j0 from the point of the first body."""
    first = tree.members[0]
    C: dict[int, Numeric] = {}
    for i in tree.members:
        for dof, u in state.partial_velocities[i].items():
            C[dof] = C.get(dof, 0.0) - ops.cross(u.angular, tree.b0[i])
    for dof in state.joints[first].dofs:
        C[dof] = C[dof] + state.columns[dof].linear
    # without the acceleration of the ground: gravity is among the forces
    rest = state.remainders[first].linear + state.equations.gravity
    for i in tree.members:
        rest = rest - ops.cross(omega_dot[i], tree.b0[i]) - centripetal(state, i, tree.b0[i])
    force = ops.sum(force_and_moment(state, i)[0] for i in tree.members) - tree.mass * rest
    for r, along in C.items():
        B[r] = B.get(r, 0.0) + along @ force
        for s, other in C.items():
            if r <= s:
                A[r, s] = A.get((r, s), 0.0) + tree.mass * (along @ other)
