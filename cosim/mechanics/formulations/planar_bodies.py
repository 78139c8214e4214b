"""Planar trees of parallel revolute joints by augmented bodies, in absolute angles.

For bodies that rotate in a plane the equations of `augmented_bodies` are scalars. Every body has its absolute angle φ_i
about the normal n, and vectors d_ij, b_ij of the plane. Hanging on the ground:

    A_ii = n·K_i n,    A_ij = M d_ij·b_j0,    B_ij = −M n·(d_ij × b_j0)    for j beyond i, else 0,

floating, about the centre of mass:

    A_ii = n·K_i n,    A_ij = −M b_ij·b_ji,    B_ij = M n·(b_ij × b_ji),

A symmetric, B antisymmetric, and

    Σ A_ij φ̈_j + Σ B_ij φ̇_j² = R_i.

The angles are sums of the coordinates, φ = Σ ± q along the path, so the equations of the joints are sums of these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.formulations import Formulation
from cosim.mechanics.formulations._closing import ByMultipliers, symmetric_matrix, vector
from cosim.mechanics.formulations._tree_state import TreeState, central, why_not_rigid
from cosim.mechanics.formulations.augmented_bodies import (
    AugmentedTree,
    PointMass,
    augmented_tree,
    first_bodies,
    summed,
    without_barycentre,
)
from cosim.mechanics.formulations.wittenburg import joints_to, structure
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.joints import PLANAR, REVOLUTE
from cosim.mechanics.multibody.tree import Tree

ABOUT = "planar trees of revolute joints by augmented bodies: A φ̈ + B φ̇² = R in absolute angles"
SOURCE = "Wittenburg, Dynamics of Systems of Rigid Bodies, 1977, chapter 5"

PARALLEL = 1e-12  # largest sine of the angle between axes that count as parallel


def refusal(equations: MechanismEquations) -> str | None:
    if (why := why_not_rigid(equations)) is not None:
        return why
    tree = equations.tree
    axes = rest_axes(tree)
    for k, (joint, kind, first) in enumerate(zip(tree.joints, tree.kinds, first_bodies(tree.parents), strict=True)):
        if kind is not REVOLUTE and not (kind is PLANAR and k == first):
            return f"joint '{joint.name}' is not revolute; only the first joint may be planar instead"
        if np.linalg.norm(np.cross(axes[k][:, 2], axes[first][:, 2])) > PARALLEL:
            return f"the axes of joints '{joint.name}' and '{tree.joints[first].name}' are not parallel"
    return without_barycentre(equations)


def load(equations: MechanismEquations) -> Formulation:
    return ByMultipliers(equations, Planar(equations).tree_equations)


def rest_axes(tree: Tree) -> list[np.ndarray]:
    """Of every body its axes (3, 3) in ground axes where all coordinates are 0."""
    found: list[np.ndarray] = []
    for body, parent in zip(tree.bodies, tree.parents, strict=True):
        found.append(body.rotation if parent < 0 else found[parent] @ body.rotation)
    return found


class Angle(NamedTuple):
    """The absolute angle φ of a body."""

    cosine: Numeric
    sine: Numeric
    rate: Numeric  # φ̇

    def rotated(self, vector: Numeric) -> Numeric:
        """A vector (2,) of the body from its direction at φ = 0."""
        x, y = vector
        return ops.array([self.cosine * x - self.sine * y, self.sine * x + self.cosine * y])


class PlanarTree(NamedTuple):
    """One tree. The vectors of its augmented bodies are (2,), in the plane, where all coordinates are 0."""

    augmented: AugmentedTree
    plane: np.ndarray  # (2, 3) its axes in ground axes; the normal is the first joint's axis
    floats: bool

    def points(self, i: int) -> list[PointMass]:
        """The masses of body i, by vectors to the point about which its moments are taken: that it hangs on, or its
        barycentre if the tree floats, with the opposite sign then."""
        return self.augmented.about_barycentre(i) if self.floats else self.augmented.points[i]

    def couplings(self) -> list[tuple[int, int, Numeric, Numeric, Numeric]]:
        """(i, j, ±M, x_i, x_j) of the bodies j > i that are coupled, A_ij = ±M x_i·x_j."""
        M, b0, b, d = self.augmented.mass, self.augmented.b0, self.augmented.b, self.augmented.d
        if self.floats:
            return [(i, j, -M, b[i, j], b[j, i]) for i, j in b if i < j]
        return [(i, j, M, d[i, j], b0[j]) for i, j in d if i < j]


def cross(x: Numeric, y: Numeric) -> Numeric:
    """n · (x × y)"""
    return x[0] * y[1] - x[1] * y[0]


class Planar:
    """The planar trees of a mechanism, with the signs by which their angles are sums of coordinates."""

    def __init__(self, equations: MechanismEquations) -> None:
        tree, firsts = equations.tree, first_bodies(equations.tree.parents)
        axes = rest_axes(tree)
        normals = [axes[first][:, 2] for first in firsts]
        self._T = structure(tree).T
        self._sign = [float(np.sign(normal @ own[:, 2])) for normal, own in zip(normals, axes, strict=True)]
        self._trees = [
            _planar_tree(tree, axes, self._T, [k for k, other in enumerate(firsts) if other == first])
            for first in sorted(set(firsts))
        ]

    def tree_equations(self, state: TreeState) -> tuple[Numeric, Numeric]:
        """A (n, n) and B (n,) of A q̈ = B + τ in the coordinates of the joints."""
        A: dict[tuple[int, int], Numeric] = {(r, r): rotor for r, rotor in enumerate(state.rotors)}
        B: dict[int, Numeric] = {}
        for tree in self._trees:
            angles = {i: self._angle(state, i) for i in tree.augmented.members}
            elements, right = equations_of_angles(state, tree, angles)
            for (a, b), value in summed(state.parents, tree.augmented.members, elements).items():
                (r, sign_r), (s, sign_s) = self._dof(state, a), self._dof(state, b)
                A[r, s] = A.get((r, s), 0.0) + sign_r * sign_s * value
            for i, moment in right.items():
                for dof, sign in self._dofs(state, i):
                    B[dof] = B.get(dof, 0.0) + sign * moment
            if tree.floats:
                self._add_translation(state, tree, angles, A, B)
        return symmetric_matrix(state.dofs, A), vector(state.dofs, B)

    def _dof(self, state: TreeState, a: int) -> tuple[int, float]:
        """(dof of the angle of joint a, which is its last one; ±1 along n)."""
        return state.joints[a].dofs[-1], self._sign[a]

    def _dofs(self, state: TreeState, i: int) -> list[tuple[int, float]]:
        """`_dof` of every joint that rotates body i."""
        return [self._dof(state, a) for a in joints_to(self._T, i)]

    def _angle(self, state: TreeState, i: int) -> Angle:
        phi, rate = (ops.sum(sign * x[dof] for dof, sign in self._dofs(state, i)) for x in (state.q, state.v))
        return Angle(ops.cos(phi), ops.sin(phi), rate)

    def _add_translation(
        self,
        state: TreeState,
        tree: PlanarTree,
        angles: dict[int, Angle],
        A: dict[tuple[int, int], Numeric],
        B: dict[int, Numeric],
    ) -> None:
        """The centre of mass, r_C = r_0 − Σ b_j0, in the plane of a first joint that is planar."""
        members, mass, _, b0 = tree.augmented
        along_x, along_y, _ = state.joints[members[0]].dofs
        C: dict[int, Numeric] = {along_x: np.array([1.0, 0.0]), along_y: np.array([0.0, 1.0])}
        rest: Numeric = np.zeros(2)
        for i in members:
            b = angles[i].rotated(b0[i])
            rest = rest + b * (angles[i].rate * angles[i].rate)
            for dof, sign in self._dofs(state, i):
                C[dof] = C.get(dof, 0.0) + sign * ops.array([b[1], -b[0]])
        force = ops.sum(_force(state, tree, j) for j in members) - mass * rest
        for r, column in C.items():
            B[r] = B.get(r, 0.0) + column @ force
            for s, other in C.items():
                if r <= s:
                    A[r, s] = A.get((r, s), 0.0) + mass * (column @ other)


def equations_of_angles(
    state: TreeState, tree: PlanarTree, angles: dict[int, Angle]
) -> tuple[dict[tuple[int, int], Numeric], dict[int, Numeric]]:
    """(A_ij of j ≥ i, R_i − Σ B_ij φ̇_j²)."""
    members = tree.augmented.members
    A = {(i, i): _own_inertia(state, tree, i) for i in members}
    right = {i: _moment(state, tree, angles, i) for i in members}
    for i, j, factor, x_i, x_j in tree.couplings():
        x, y = angles[i].rotated(x_i), angles[j].rotated(x_j)
        A[i, j], B_ij = factor * (x @ y), -factor * cross(x, y)
        right[i] = right[i] - B_ij * (angles[j].rate * angles[j].rate)
        right[j] = right[j] + B_ij * (angles[i].rate * angles[i].rate)
    return A, right


def _own_inertia(state: TreeState, tree: PlanarTree, i: int) -> Numeric:
    """n·K_i n; the axes of bodies have z along their joints."""
    return state.central[i].inertia[2, 2] + ops.sum(point.mass * (point.d @ point.d) for point in tree.points(i))


def _moment(state: TreeState, tree: PlanarTree, angles: dict[int, Angle], i: int) -> Numeric:
    """R_i: M_i and the moments of all F_j."""
    moment = np.cross(*tree.plane) @ state.loads[i].angular
    for point in tree.points(i):
        force = ops.sum(_force(state, tree, j) for j in point.bodies)
        arm = cross(angles[i].rotated(point.d), force)
        moment = moment + arm if tree.floats else moment - arm
    return moment


def _force(state: TreeState, tree: PlanarTree, j: int) -> Numeric:
    """F_j (2,), gravity included, in the plane."""
    return tree.plane @ (state.loads[j].linear + state.central[j].mass * state.equations.gravity)


def _planar_tree(tree: Tree, axes: list[np.ndarray], T: np.ndarray, members: list[int]) -> PlanarTree:
    plane = axes[members[0]][:, :2].T
    centres = [plane @ own @ central(body).com for own, body in zip(axes, tree.bodies, strict=True)]
    arms = [
        plane @ (np.eye(3) if parent < 0 else axes[parent]) @ body.position
        for body, parent in zip(tree.bodies, tree.parents, strict=True)
    ]
    mass = [body.mass for body in tree.bodies]
    augmented = augmented_tree(members, tree.parents, T, mass, centres, arms)
    return PlanarTree(augmented, plane, tree.kinds[members[0]] is PLANAR)
