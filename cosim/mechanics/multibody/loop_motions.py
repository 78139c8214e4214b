"""The motions that closed loops leave in one configuration, and which dofs a drive may move by themselves.

The velocities with G v = 0 are v = N y, N (nv, m) the null space of the constraint Jacobian G. Dofs whose rows of N are
linearly independent may move independently, and where there are m of them all others follow: v = N N_d⁻¹ v_d with the
rows N_d of the actuated ones (coordinate partitioning: Wehage and Haug, J. Mech. Design 104, 1982).
Angles and lengths are comparable by the largest lever of the loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cosim.core.types import Array
from cosim.mechanics.multibody.model import Model
from cosim.mechanics.multibody.nearest import CLOSURE_TOLERANCE, ClosureSearch, separate_parts

DEPENDENT = 1e-8  # of the largest singular value of G, below which rows depend on others
BESIDE, REACH = 3, 0.3  # configurations beside one [rad or m], in which no element of G vanishes by chance
NOTHING = 1e-9  # of the largest element of G: one that counts as zero
LEFT = 1e-3  # part of a motion of length 1, above which a dof takes part in it


@dataclass(frozen=True)
class CoupledLoops:
    """Closed loops that share dofs, in one configuration: their constraints by name and rows of G, their dofs (n,) that
    can move, and the velocities `scale` · `motions` (n, m) that they leave. scale: (n,) 1 or the lever [m]; the columns
    of motions have length 1."""

    constraints: tuple[str, ...]
    rows: Array
    dofs: Array
    motions: Array
    scale: Array

    @property
    def velocities(self) -> Array:
        """(n, m) that the loops leave."""
        return self.scale[:, None] * self.motions

    def at(self, model: Model, q: Array, t: float = 0.0) -> CoupledLoops:
        """The same loops at q (nq,)."""
        G = np.asarray(model.equations.constraint_jacobian(q, t), dtype=float)[np.ix_(self.rows, self.dofs)]
        return replace(self, motions=_null_space(G * self.scale))

    @property
    def independent(self) -> int:
        """How many dofs may move independently of each other."""
        return self.motions.shape[1]

    def independent_among(self, dofs: Sequence[int]) -> int:
        """How many of these dofs may move independently of each other, at a dead centre too."""
        return int(np.linalg.matrix_rank(self.motions[np.searchsorted(self.dofs, dofs)], DEPENDENT)) if len(dofs) else 0

    def chosen(self, order: Iterable[int], least: float) -> list[int]:
        """The first dofs in this order that may move independently of those before them. least: part of a row of N
        that others before do not have; next to 0 at a dead centre, where a small motion of the dof is a large one of
        others, and for a dof that gears let hardly move."""
        rows, basis, found = dict(zip(self.dofs.tolist(), self.motions, strict=True)), self.motions[:0], []
        for dof in order:
            rest = rows[dof]
            for _ in range(2):  # twice is enough (Kahan)
                rest = rest - (basis @ rest) @ basis
            if (size := np.linalg.norm(rest)) > least:
                basis, found = np.vstack([basis, rest / size]), [*found, dof]
        return found

    def following(self, actuated: Sequence[int]) -> Array:
        """(n, k): the velocities of the dofs per velocity of each actuated one, the least ones if there are others."""
        own = self.motions[np.searchsorted(self.dofs, actuated)]
        inverse = np.linalg.pinv(own) if len(actuated) else np.zeros((self.independent, 0))
        scaled = self.motions @ inverse
        return self.scale[:, None] * scaled / self.scale[np.searchsorted(self.dofs, actuated)]

    def left(self, actuated: Sequence[int]) -> list[int]:
        """The dofs that can still move while the actuated ones do not."""
        _, sizes, directions = np.linalg.svd(self.motions[np.searchsorted(self.dofs, actuated)])
        idle = self.motions @ directions[int((sizes > DEPENDENT).sum()) :].T
        return self.dofs[np.linalg.norm(idle, axis=1) > LEFT].tolist()


def coupled_loops(model: Model, q: Array, movable: Array, t: float = 0.0) -> list[CoupledLoops]:
    """The loops of a mechanism at q (nq,), where they are closed; those without a dof that can move are left out.

    movable: (nv,) dofs that are neither latched nor given. Redundant rows of the model do not count."""
    constraints = model.equations.constraints
    if not constraints.solved:
        return []
    solved = np.array(constraints.solved, dtype=int)
    G = np.asarray(model.equations.constraint_jacobian(q, t), dtype=float)[solved]
    pattern = _pattern(model, q, t)[solved]
    linear = np.array([unit == "m" for unit in model.dof_units])
    units = [row.residual_unit for constraint in constraints.members for row in constraint.law.rows]
    in_metres = np.array([units[r] == "m" for r in solved])
    found = []
    for rows, dofs in separate_parts(pattern, movable):
        own = G[np.ix_(rows, dofs)]
        lever = float(np.abs(own[in_metres[rows]][:, ~linear[dofs]]).max(initial=0.0)) or 1.0
        scale = np.where(linear[dofs], lever, 1.0)
        names = dict.fromkeys(constraints.members[k].name for k in (constraints.owners[r] for r in solved[rows]))
        found.append(CoupledLoops(tuple(names), solved[rows], dofs, _null_space(own * scale), scale))
    return found


def closed_beside(model: Model, q: Array, dofs: Sequence[int]) -> Array | None:
    """Coordinates (nq,) with closed loops beside q, by a motion of these dofs; None if they do not close."""
    equations, closure = model.equations, model.equations.closure
    inexact, rows = equations.constraints.inexact_closure, np.arange(closure.whole.rows)
    search = ClosureSearch.of(equations, closure, rows, np.array(dofs, dtype=int), q, 0.0, inexact)
    place, violation = search.close(q)
    return place if violation < CLOSURE_TOLERANCE else None


def depths(model: Model) -> Array:
    """(nv,): how many joints lie between the ground and each dof, its own included; mimic joints count."""
    tree, found = model.equations.tree, dict[int, int]()
    for k, parent in enumerate(tree.parents):
        found[k] = found.get(parent, 0) + 1
    pairs = enumerate(zip(tree.joints, tree.kinds, strict=True))
    return np.array([found[k] for k, (joint, kind) in pairs if joint.mimic is None for _ in range(kind.nv)], dtype=int)


def nearest_to_base(model: Model, loops: CoupledLoops) -> list[int]:
    """The dofs of loops, those with the fewest joints between them and the ground first."""
    depth = depths(model)
    return sorted(loops.dofs.tolist(), key=lambda dof: (depth[dof], dof))


def _pattern(model: Model, q: Array, t: float) -> Array:
    """(r, nv): on which dofs the constraint of each row of G depends, also where that vanishes at q by chance, as at a
    dead centre."""
    equations, closure, rng = model.equations, model.equations.closure, np.random.default_rng(5)
    pattern = np.zeros((len(model.constraint_rows), model.nv), dtype=bool)
    every, inexact = (np.arange(closure.whole.rows), np.arange(model.nv)), equations.constraints.inexact_closure
    search = ClosureSearch.of(equations, closure, *every, q, t, inexact)
    for k in range(1 + BESIDE):
        place, violation = search.close(search.dofs.moved(q, (k > 0) * REACH * rng.uniform(-1.0, 1.0, model.nv)))
        if violation < CLOSURE_TOLERANCE:  # rows of open loops depend on what moves the whole loop
            sizes = np.abs(np.asarray(equations.constraint_jacobian(place, t), dtype=float))
            pattern |= sizes > NOTHING * sizes.max(initial=0.0)
    owners = np.array(equations.constraints.owners)
    return np.array([pattern[owners == owner].any(axis=0) for owner in owners])


def _null_space(G: Array) -> Array:
    """(n, m): the directions in which no row of G changes."""
    sizes = np.linalg.norm(G, axis=1, keepdims=True)
    _, values, directions = np.linalg.svd(G / np.where(sizes > 0.0, sizes, 1.0))
    return directions[int((values > DEPENDENT * values.max(initial=0.0)).sum()) :].T
