"""The laws of one mechanism as pure functions of numbers or symbols, in its independent coordinates.

A joint that mimics another has no coordinate of its own: q_full = P q + offset, v_full = P v. Inverse
dynamics and energies need only that. For motion under given efforts the tree is solved as if the mimic
were free, and one force per mimic, equal and opposite along its row G = (mimic − multiplier · leader),
brings G q̈ to zero: W λ = −G q̈₀ with W = G M⁻¹ Gᵀ, whose columns are the effects of such forces alone, in
sweeps over the same articulated inertias.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim import ops
from cosim.compile.rolled import RolledRoutine
from cosim.multibody import dynamics, kinematics
from cosim.multibody.description import Pose
from cosim.multibody.joints import JOINTS
from cosim.multibody.tree import Tree

# speed at which Coulomb friction has grown to 1/√2 of its value; below it joints creep instead of sticking
FRICTION_SPEED = 0.01

REST = np.zeros(3)

# from this many bodies on, sweeps are loops: straight-line code then compiles for seconds and outgrows caches
ROLLED_FROM = 48


@dataclass(frozen=True)
class Mimics:
    """How the coordinates of all joints of the tree follow from the independent ones.

    All joints here have one coordinate each; `leader[k]` is the independent coordinate that joint k
    follows (its own when it is no mimic) with q_k = multiplier[k] · q + offset[k].
    """

    leader: np.ndarray
    multiplier: np.ndarray
    offset: np.ndarray
    followers: tuple[int, ...]  # joints of the tree that are mimics


class Rules:
    """Pure functions of one mechanism; arguments and results as in `Model`, for one state."""

    def __init__(self, tree: Tree, mimics: Mimics, gravity: np.ndarray) -> None:
        self.tree, self.mimics, self.gravity = tree, mimics, gravity
        self.sweeps = tree.sweeps
        self.nv_full = sum(JOINTS[k].nv for k in tree.kinds)
        self._rolled: dict[Any, RolledRoutine] = {}
        self.own = np.array([k for k in range(self.nv_full) if k not in mimics.followers], dtype=int)

    # --- the mimics' map ---

    def _spread(self, x: Any) -> Any:
        """P x: velocities or accelerations of all joints."""
        return x[self.mimics.leader] * self.mimics.multiplier if self.mimics.followers else x

    def _positions(self, q: Any) -> Any:
        return self._spread(q) + self.mimics.offset if self.mimics.followers else q

    def _gather(self, tau: Any) -> Any:
        """Pᵀ τ: efforts of all joints, felt at the independent ones."""
        if not self.mimics.followers:
            return tau
        return ops.array(
            [
                ops.total(tau[k] * self.mimics.multiplier[k] for k in np.flatnonzero(self.mimics.leader == i))
                for i in range(len(self.own))
            ]
        )

    def _rows(self) -> list[np.ndarray]:
        """G: one row per mimic over all joints."""
        rows = []
        for k in self.mimics.followers:
            row = np.zeros(self.nv_full)
            row[k] = 1.0
            row[self.own[self.mimics.leader[k]]] = -self.mimics.multiplier[k]
            rows.append(row)
        return rows

    # --- sweeps over the tree ---

    def _tree_hybrid(self, *vectors: Any) -> tuple[Any, ...]:
        return self._over_tree(dynamics.hybrid_dynamics, *vectors)

    def _over_tree(self, algorithm: Callable[..., Any], *vectors: Any) -> Any:
        """An algorithm of `dynamics` or `kinematics`: written out, or as a loop when there are many bodies."""
        if len(self.tree.bodies) < ROLLED_FROM or not any(map(ops.is_symbolic, vectors)):
            return algorithm(self.sweeps, *vectors)
        given = [v for v in vectors if ops.is_symbolic(v)]
        constants = [None if ops.is_symbolic(v) else np.asarray(v) for v in vectors]
        key = algorithm.__name__, tuple(None if c is None else c.tobytes() for c in constants)
        if key not in self._rolled:
            sizes = [(JOINTS[k].nq, JOINTS[k].nv) for k in self.tree.kinds]
            shapes = [np.shape(v) for v in given]
            self._rolled[key] = RolledRoutine(algorithm, self.sweeps, sizes, shapes, constants, algorithm.__name__)
        return self._rolled[key](*given)

    # --- dynamics ---

    def hybrid_dynamics(self, q: Any, v: Any, qdd: Any, tau: Any, prescribed: Any) -> tuple[Any, Any]:
        """(q̈, τ): see `Model.hybrid_dynamics`."""
        if not self.mimics.followers:
            return self._tree_hybrid(q, v, qdd, tau, prescribed, self.gravity)
        q_full, held = self._positions(q), prescribed[self.mimics.leader]
        efforts = [0.0] * self.nv_full
        for i, k in enumerate(self.own):
            efforts[k] = tau[i]
        rows = self._rows()
        acceleration, effort, *found = self._tree_hybrid(
            q_full, self._spread(v), self._spread(qdd), ops.array(efforts), held, self.gravity, *rows
        )
        responses = list(zip(found[::2], found[1::2], strict=True))
        delassus = [[g @ answer for answer, _ in responses] for g in rows]
        for r, k in enumerate(self.mimics.followers):
            delassus[r][r] = delassus[r][r] + ops.where(held[k], 1.0, 0.0)
        multipliers = ops.solve(ops.array(delassus), ops.array([-(g @ acceleration) for g in rows]))
        for factor, (answer, reaction) in zip(multipliers, responses, strict=True):
            acceleration = acceleration + answer * factor
            effort = effort + reaction * factor
        return acceleration[self.own], ops.where(prescribed, self._gather(effort), tau)

    def forward_dynamics(self, q: Any, v: Any, tau: Any) -> Any:
        free = np.zeros(len(self.own), dtype=bool)
        return self.hybrid_dynamics(q, v, np.zeros(len(free)), tau, free)[0]

    def inverse_dynamics(self, q: Any, v: Any, qdd: Any) -> Any:
        vectors = self._positions(q), self._spread(v), self._spread(qdd)
        return self._gather(self._over_tree(dynamics.inverse_dynamics, *vectors, self.gravity))

    def inertia_effort(self, q: Any, qdd: Any) -> Any:
        """M(q) q̈: inverse dynamics at rest and without gravity."""
        vectors = self._positions(q), np.zeros(self.nv_full), self._spread(qdd)
        return self._gather(self._over_tree(dynamics.inverse_dynamics, *vectors, REST))

    def friction_effort(self, v: Any) -> Any:
        """What damping and Coulomb friction take, (nv,), along +v: d v + f v / √(v² + v_s²)."""
        v = self._spread(v)
        joints = self.tree.joints
        damping, coulomb = np.array([j.damping for j in joints]), np.array([j.friction for j in joints])
        smooth = ops.smooth_sign(v, FRICTION_SPEED) if coulomb.any() else v
        return self._gather(damping * v + coulomb * smooth)

    def mass_matrix(self, q: Any) -> Any:
        full = kinematics.mass_matrix(self.sweeps, self._positions(q), self.nv_full)
        if not self.mimics.followers:
            return full
        spread = np.zeros((self.nv_full, len(self.own)))
        spread[np.arange(self.nv_full), self.mimics.leader] = self.mimics.multiplier
        return spread.T @ full @ spread

    # --- energies and frames ---

    def kinetic_energy(self, q: Any, v: Any) -> Any:
        return self._over_tree(kinematics.kinetic_energy, self._positions(q), self._spread(v))

    def potential_energy(self, q: Any) -> Any:
        return self._over_tree(kinematics.potential_energy, self._positions(q), self.gravity)

    def frame_pose(self, q: Any, body: int, frame: Pose) -> Any:
        return kinematics.frame_pose(self.sweeps, self._positions(q), body, frame)

    def frame_jacobian(self, q: Any, body: int, frame: Pose) -> Any:
        full = kinematics.frame_jacobian(self.sweeps, self._positions(q), self.nv_full, body, frame)
        if not self.mimics.followers:
            return full
        return ops.array([self._gather(row) for row in full])


def find_mimics(tree: Tree) -> Mimics:
    """The map from independent coordinates to those of all joints of the tree."""
    names: Sequence[str] = [j.name for j in tree.joints]
    own = [j.name for j in tree.joints if j.mimic is None]
    leader, multiplier, offset = [], [], []
    for joint in tree.joints:
        leader.append(own.index(joint.mimic.joint if joint.mimic else joint.name))
        multiplier.append(joint.mimic.multiplier if joint.mimic else 1.0)
        offset.append(joint.mimic.offset if joint.mimic else 0.0)
    followers = tuple(names.index(j.name) for j in tree.joints if j.mimic)
    return Mimics(np.array(leader, dtype=int), np.array(multiplier), np.array(offset), followers)
