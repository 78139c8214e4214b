"""Constrained motion by the separate-body sweeps (Popov and Vereshchagin 1974–1978).

A constraint is a row G q̈ + γ = 0 whose reaction λ acts along Gᵀ: as wrenches F on bodies and efforts g on
joints. In the inward sweep the articulated force of a body becomes Q + Σ E_r λ_r. Each column s transmits
E_r − M s (s·E_r + g_r)/U, as it does with Q, and adds u_r u_s / U to the inertia W = G M⁻¹ Gᵀ of the
constraint space, u_r = s·E_r + g_r. No mass matrix is formed.

A row is eliminated at a common ancestor of its bodies, or at the ground:

    W_rr λ_r + Σ W_rs λ_s + E_r·a + c_r = 0   ⇒   M += E_r E_rᵀ / W_rr,  Q −= E_r c_r / W_rr,  and so on:

so a closed loop adds to the inertia of that body. With every row at the ground (`GROUND`) this is an LDLᵀ
solution of W λ = −c; with every row where its loop closes, the cost is linear in the number of loops. The
multiplier of a row that depends on those before it, or that involves no movable dof, is 0.

`least_norm` distributes reactions over rows that depend on others. Rows that share a dof form a group; groups are
separate problems. With the rows G_d = B G_i of a group, G_i those that are solved for, λ_i has the same efforts as λ_i
− Bᵀ λ_d and λ_d for any λ_d, and |λ|² is least for

    (E + B Bᵀ) λ_d = B λ_i,    B = G_d G_iᵀ (G_i G_iᵀ)⁻¹.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.compile.elimination import Elimination
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.bodies import AnyMotion, AnyVector, transport, transport_force, transport_inertia
from cosim.mechanics.multibody.dynamics import accelerate, release_column
from cosim.mechanics.multibody.spatial import SpatialVector
from cosim.mechanics.multibody.sweeps import Unrolled

GROUND = -1
OPEN = -2  # in place of the body at which a row is eliminated
# W_rr relative to its largest possible value, below which the row counts as dependent on others
DEPENDENT_PIVOT = 1e-12


class ConstraintRow(NamedTuple):
    """One row: G by bodies and dofs, and γ, the part without accelerations."""

    wrenches: Mapping[int, SpatialVector]  # body -> force and moment at its origin, its axes
    efforts: Mapping[int, Numeric]  # dof -> effort
    bias: Numeric


class Solution(NamedTuple):
    """What the equations of motion determine in one state."""

    acceleration: Numeric  # q̈ (nv,)
    effort: Numeric  # τ (nv,)
    multipliers: Numeric  # λ (m,)
    power: Numeric  # input of joints and laws that depend on time [W]


class Eliminated(NamedTuple):
    """λ = −gain (c + E·a + Σ coupling λ_s)"""

    row: int
    gain: Numeric
    force: SpatialVector | None  # E
    constant: Numeric  # c
    coupling: Mapping[int, Numeric]


@dataclass
class _Multipliers:
    """The rows that are not eliminated yet: W, c, and the scale |G_r|² Σ 1/U, an upper bound of W_rr."""

    constant: list[Numeric]
    sizes: list[Numeric]  # |G_r|²
    coupling: list[dict[int, Numeric]] = field(default_factory=list)
    scale: list[Numeric] = field(default_factory=list)

    @staticmethod
    def of(rows: Sequence[ConstraintRow]) -> _Multipliers:
        sizes = [
            ops.sum(w.dot(w) for w in row.wrenches.values()) + ops.sum(g * g for g in row.efforts.values())
            for row in rows
        ]
        return _Multipliers([row.bias for row in rows], sizes, [{} for _ in rows], [0.0] * len(rows))

    def couple(self, r: int, s: int, value: Numeric) -> None:
        self.coupling[r][s] = self.coupling[r].get(s, 0.0) + value
        if r != s:
            self.coupling[s][r] = self.coupling[r][s]

    def add_column(self, row_projections: Mapping[int, Numeric], gain: Numeric, acceleration: Numeric) -> None:
        """Add a column with the given u_r, the acceleration `gain` per effort, and the acceleration without λ."""
        given = list(row_projections.items())
        for k, (r, u) in enumerate(given):
            self.constant[r] = self.constant[r] + u * acceleration
            compliance = u * gain
            self.scale[r] = self.scale[r] + self.sizes[r] * gain
            for s, other in given[k:]:
                self.couple(r, s, other * compliance)

    def eliminate(self, r: int, forces: dict[int, SpatialVector]) -> Eliminated:
        """Eliminate row r; updates `forces`, the E of the rows at the body (none at the ground)."""
        others = self.coupling[r]
        pivot = others.pop(r, 0.0)
        independent = pivot > DEPENDENT_PIVOT * self.scale[r]
        gain = ops.where(independent, 1.0 / ops.where(independent, pivot, 1.0), 0.0)
        force = forces.pop(r, None)
        given = list(others.items())
        for k, (s, w) in enumerate(given):
            factor = gain * w
            self.constant[s] = self.constant[s] - factor * self.constant[r]
            if force is not None:
                forces[s] = forces[s] - force * factor if s in forces else force * -factor
            del self.coupling[s][r]
            for p, other in given[k:]:
                self.couple(s, p, -factor * other)
        return Eliminated(r, gain, force, self.constant[r], dict(others))

    def next(self, rows: set[int]) -> int:
        """The row with the fewest couplings, to keep W sparse."""
        return min(rows, key=lambda r: (len(self.coupling[r]), r))


def solve_tree(
    sweeps: Unrolled,
    moving: Sequence[AnyMotion],
    forces: Sequence[AnyVector],
    root: SpatialVector,
    rows: Sequence[ConstraintRow],
    levels: Sequence[int],
    qdd: Numeric,
    tau: Numeric,
    prescribed: Numeric,
) -> Solution:
    """The motion of bodies under the `forces` Q of each alone; `root`: the acceleration of the ground.

    levels: the body at which each row is eliminated. qdd, tau, prescribed: (nv,) as in `hybrid_dynamics`.
    """
    return InwardSweep(sweeps, moving, forces, root, rows, levels, (qdd, tau, prescribed)).solution({})


class InwardSweep:
    """The inward sweep over a tree, which leaves some rows open: `solution` takes their multipliers.

    levels: the body at which each row is eliminated, `OPEN` for one whose multiplier comes from outside. given: q̈, τ,
    prescribed (nv,) as in `hybrid_dynamics`.
    """

    def __init__(
        self,
        sweeps: Unrolled,
        moving: Sequence[AnyMotion],
        forces: Sequence[AnyVector],
        root: SpatialVector,
        rows: Sequence[ConstraintRow],
        levels: Sequence[int],
        given: tuple[Numeric, Numeric, Numeric],
    ) -> None:
        self._sweeps, self._moving, self._root, self._given = sweeps, moving, root, given
        qdd, tau, prescribed = given
        n, bodies, parents = len(moving), sweeps.bodies, sweeps.parents
        self._dofs = dofs = sweeps.by_v(list(range(len(qdd))))
        self._multipliers = multipliers = _Multipliers.of(rows)
        pending: dict[int, set[int]] = {}
        for r, level in enumerate(levels):
            pending.setdefault(level, set()).add(r)
        self.open = sorted(pending.pop(OPEN, set()))
        efforts: dict[int, dict[int, Numeric]] = {}  # dof -> row -> g
        for r, row in enumerate(rows):
            for dof, g in row.efforts.items():
                efforts.setdefault(dof, {})[r] = g
        self._M = M = [body.own_inertia(motion) for body, motion in zip(bodies, moving, strict=True)]
        self._Q = Q = list(forces)
        self._E = E = _wrenches_by_body(rows, n)
        self._columns: list[list[Numeric]] = [[] for _ in range(n)]
        self._loads: list[list[Numeric]] = [[] for _ in range(n)]
        self._row_projections: list[list[dict[int, Numeric]]] = [[] for _ in range(n)]
        self._eliminated: dict[int, list[Eliminated]] = {}

        for k in reversed(range(n)):
            motion, E_k = moving[k], E[k]
            self._eliminated[k] = _eliminate(multipliers, pending.pop(k, set()), E_k)
            for row in self._eliminated[k]:
                if row.force is not None:
                    M[k] = M[k].stiffened(row.force, row.gain)
                    Q[k] = Q[k] - row.force * (row.gain * row.constant)
            Q_k, M_k = Q[k] - M[k] @ motion.bias, M[k]
            E_k = dict(E_k)
            for r, force in E_k.items():
                multipliers.constant[r] = multipliers.constant[r] + force.dot(motion.bias)
            for i in reversed(range(len(motion.hinge))):
                s, dof = motion.hinge[i], dofs[k][i]
                M_k, column = release_column(M_k, s, bodies[k].rotor[i], prescribed[dof])
                u = s.dot(Q_k)
                free, fixed = ops.where(prescribed[dof], 0.0, tau[dof] + u), ops.where(prescribed[dof], qdd[dof], 0.0)
                Q_k = Q_k - column.drive * free - column.response * fixed
                projections = _projections(s, E_k, efforts.get(dof, {}))
                multipliers.add_column(projections, column.gain, free * column.gain + fixed)
                for r, projection in projections.items():
                    step = column.drive * projection
                    E_k[r] = E_k[r] - step if r in E_k else step * -1.0
                self._columns[k].insert(0, column)
                self._loads[k].insert(0, u)
                self._row_projections[k].insert(0, projections)
            parent, passing = parents[k], {r: force for r, force in E_k.items() if not _is_zero_force(force)}
            if parent == GROUND:
                above = transport(bodies[k], motion, root) if passing else root
                for r, force in passing.items():
                    multipliers.constant[r] = multipliers.constant[r] + force.dot(above)
                continue
            M[parent] = M[parent] + transport_inertia(bodies[k], motion, M_k)
            Q[parent] = Q[parent] + transport_force(bodies[k], motion, Q_k)
            for r, force in passing.items():
                passed = transport_force(bodies[k], motion, force)
                E[parent][r] = E[parent][r] + passed if r in E[parent] else passed

        self._eliminated[GROUND] = _eliminate(multipliers, pending.pop(GROUND, set()), {})

    @property
    def open_accelerations(self) -> list[Numeric]:
        """Of each open row G q̈ + γ while the multipliers of all open rows are 0."""
        return [self._multipliers.constant[r] for r in self.open]

    @property
    def open_inertia(self) -> list[list[Numeric]]:
        """W of the open rows: what a multiplier of one adds to the acceleration of another. Symmetric."""
        coupling = self._multipliers.coupling
        return [[coupling[r].get(s, 0.0) for s in self.open] for r in self.open]

    def solution(self, multipliers: Mapping[int, Numeric]) -> Solution:
        """The outward sweep; multipliers: of the open rows, by row."""
        sweeps, moving, root = self._sweeps, self._moving, self._root
        factors = dict(multipliers)
        _substitute(self._eliminated[GROUND], root, factors)
        a: list[SpatialVector] = []
        results: list[tuple[Numeric, Numeric]] = []
        power: Numeric = 0.0
        for k in range(len(moving)):
            above = root if sweeps.parents[k] == GROUND else a[sweeps.parents[k]]
            given = [[vector[dof] for dof in self._dofs[k]] for vector in self._given]
            total = [
                u + ops.sum(factors[r] * projection for r, projection in projections.items())
                for u, projections in zip(self._loads[k], self._row_projections[k], strict=True)
            ]
            base = transport(sweeps.bodies[k], moving[k], above)
            here, result = accelerate(base, moving[k], self._columns[k], total, *given)
            a.append(here + moving[k].bias)
            results.append(result)
            _substitute(self._eliminated[k], a[k], factors)
            passing = ops.sum(factors[r] * force.dot(moving[k].drift) for r, force in self._E[k].items())
            power = power + (self._M[k] @ a[k] - self._Q[k]).dot(moving[k].drift) - passing
        accelerations, answers = (ops.concatenate([result[i] for result in results]) for i in (0, 1))
        found = ops.array([factors[r] for r in range(len(self._multipliers.constant))])
        return Solution(accelerations, answers, found, power)


def rows_by_dof(
    sweeps: Unrolled, moving: Sequence[AnyMotion], rows: Sequence[ConstraintRow], nv: int
) -> list[dict[int, Numeric]]:
    """G by rows, dof -> element: the rates of the rows are G v, and Gᵀ λ are the efforts of their reactions. Elements
    that are always 0 are left out."""
    dofs = sweeps.by_v(list(range(nv)))
    G: list[dict[int, Numeric]] = [dict(row.efforts) for row in rows]
    for k, r, force in _transmitted(sweeps, moving, rows):
        for s, dof in zip(moving[k].hinge, dofs[k], strict=True):
            effort = s.dot(force)
            G[r][dof] = G[r][dof] + effort if dof in G[r] else effort
    return [{dof: element for dof, element in row.items() if not ops.is_zero(element)} for row in G]


def largest_by_dof(sweeps: Unrolled, moving: Sequence[AnyMotion], rows: Sequence[ConstraintRow], nv: int) -> Array:
    """What |G| (m, nv) would be at most if every joint axis could be turned at will, on numbers: the moment of a row
    about a rotational joint, its force along a linear one. An element of G is small against it where
    the axis is nearly orthogonal to the wrench of the row."""
    dofs, found = sweeps.by_v(list(range(nv))), np.zeros((len(rows), nv))
    for r, row in enumerate(rows):
        for dof, effort in row.efforts.items():
            found[r, dof] = abs(effort)
    for k, r, force in _transmitted(sweeps, moving, rows):
        for s, dof in zip(moving[k].hinge, dofs[k], strict=True):
            found[r, dof] += sum(float(np.linalg.norm(a) * np.linalg.norm(b)) for a, b in zip(s, force, strict=True))
    return found


def _transmitted(
    sweeps: Unrolled, moving: Sequence[AnyMotion], rows: Sequence[ConstraintRow]
) -> Iterator[tuple[int, int, SpatialVector]]:
    """(body, row, the wrench of this row on the body and its descendants), descendants first; zeros are left out."""
    forces = _wrenches_by_body(rows, len(moving))
    for k in reversed(range(len(moving))):
        for r, force in forces[k].items():
            if _is_zero_force(force):
                continue
            yield k, r, force
            if (parent := sweeps.parents[k]) != GROUND:
                passed = transport_force(sweeps.bodies[k], moving[k], force)
                forces[parent][r] = forces[parent][r] + passed if r in forces[parent] else passed


def _wrenches_by_body(rows: Sequence[ConstraintRow], bodies: int) -> list[dict[int, SpatialVector]]:
    """Of each body, the wrenches of the rows on it."""
    found: list[dict[int, SpatialVector]] = [{} for _ in range(bodies)]
    for r, row in enumerate(rows):
        for body, wrench in row.wrenches.items():
            found[body][r] = wrench
    return found


def _projections(
    s: SpatialVector, forces: Mapping[int, SpatialVector], efforts: Mapping[int, Numeric]
) -> dict[int, Numeric]:
    """u_r = s·E_r + g_r of the rows that are not orthogonal to a column."""
    projections = {r: s.dot(force) for r, force in forces.items()}
    for r, g in efforts.items():
        projections[r] = projections.get(r, 0.0) + g
    return {r: u for r, u in projections.items() if not ops.is_zero(u)}


def _is_zero_force(force: SpatialVector) -> bool:
    return all(ops.is_zero(x) for part in force for x in part)


def _eliminate(multipliers: _Multipliers, rows: set[int], forces: dict[int, SpatialVector]) -> list[Eliminated]:
    eliminations = []
    while rows:
        r = multipliers.next(rows)
        rows.remove(r)
        eliminations.append(multipliers.eliminate(r, forces))
    return eliminations


def _substitute(eliminations: Sequence[Eliminated], a: SpatialVector, factors: dict[int, Numeric]) -> None:
    """λ of the rows eliminated at a body whose acceleration is a; at the ground c contains E·a already."""
    for row in reversed(eliminations):
        known = row.constant + ops.sum(w * factors[s] for s, w in row.coupling.items())
        if row.force is not None:
            known = known + row.force.dot(a)
        factors[row.row] = -(row.gain * known)


def lowest_common_body(parents: Sequence[int], bodies: Sequence[int]) -> int:
    """The deepest common ancestor of the given bodies, a body counting as its own ancestor."""
    paths = []
    for k in bodies:
        path = [k]
        while path[-1] != GROUND:
            path.append(parents[path[-1]])
        paths.append(path)
    shared = set.intersection(*map(set, paths)) if paths else {GROUND}
    return max(shared)


# --- reactions of least norm ---

Row = Mapping[int, Numeric]  # dof -> element of G, zeros left out


def least_norm(rows: Sequence[Row], redundant: Collection[int], multipliers: Numeric, holds: Numeric) -> Numeric:
    """The λ (m,) of least norm with the same efforts Gᵀ λ as the given multipliers, which are 0 for redundant rows.

    rows: of G, 0 where they are inactive. holds: (m,) 1 for active rows, else 0.
    """
    found, left = list(multipliers), set(redundant)
    for group in groups(rows):
        dependent = [r for r in group if r in left]
        if not dependent:
            continue
        independent = [r for r in group if r not in left]
        given = ops.array([multipliers[r] for r in independent])
        G_i, G_d = _matrices(rows, independent, dependent)
        values = _distributed(G_i, G_d, given, [holds[r] for r in independent])
        for r, value in zip((*independent, *dependent), values, strict=True):
            found[r] = value
    return ops.array(found)


def groups(rows: Sequence[Row]) -> list[list[int]]:
    """The rows that share dofs, also by way of others, together and in order; rows without dofs are in none."""
    leader = list(range(len(rows)))

    def first(r: int) -> int:
        while leader[r] != r:
            leader[r] = r = leader[leader[r]]
        return r

    owner: dict[int, int] = {}
    for r, row in enumerate(rows):
        for dof in row:
            a, b = first(r), first(owner.setdefault(dof, r))
            leader[max(a, b)] = min(a, b)
    found: dict[int, list[int]] = {}
    for r, row in enumerate(rows):
        if row:
            found.setdefault(first(r), []).append(r)
    return list(found.values())


def _matrices(rows: Sequence[Row], *chosen: Sequence[int]) -> list[Numeric]:
    """These rows as matrices over all dofs that occur in them."""
    dofs = sorted({dof for numbers in chosen for r in numbers for dof in rows[r]})
    return [ops.array([[rows[r].get(dof, 0.0) for dof in dofs] for r in numbers]) for numbers in chosen]


def _distributed(independent: Numeric, dependent: Numeric, given: Numeric, holds: Sequence[Numeric]) -> list[Numeric]:
    """λ_i and λ_d of a group."""
    if not len(given):
        return [0.0] * len(dependent)
    # the ones on the diagonal keep the matrix regular where rows are inactive
    normal = independent @ independent.T + ops.array(np.diag([1.0 - h for h in holds]))
    B = Elimination(normal).solve(independent @ dependent.T).T
    shares = Elimination(np.eye(len(dependent)) + B @ B.T).solve(B @ given)
    return [*(given - B.T @ shares), *shares]
