"""Loops of CAD accuracy: constraint rows that depend on others but for small errors of the geometry.

A planar loop in space, a Bennett linkage and the like move because some of their rows follow from the others. Axes off
by 1e-6 rad, such as 1.5708 for π/2, make these rows independent, however weakly: taken exactly, the mechanism is a
structure, or does not close. A real one moves by the play of its joints. Such rows are left out here. What remains is a
mechanism that moves exactly; the residuals of the rows left out stay as small as the errors are.

Rows count as such where three things hold. In every configuration on a walk through the remaining mechanism G has them
in the space of the other rows, within `DEPENDENT`; the residuals stay within `TOLERANCE` all the way; and the remaining
mechanism can move. A short crank or a position near a singular one does not pass: the residual of a row that holds
something grows with the motion that it prevents.

Axes that should meet in a point, as in a spherical four-bar or a universal joint of two hinges, and miss it by a little
are the same case: their position rows follow from the others but for the distance.

Lengths are relative to the largest lever of the loops. Where all frames are at the point in which the axes meet, the
levers are themselves errors of the drawing; then the size of the links stands for them, if the loop would not close or
not move otherwise. Rows of coordinates alone, as of gears, are always exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.core.types import Array
from cosim.mechanics.multibody.description.structure import PARALLEL
from cosim.mechanics.multibody.model import Model
from cosim.mechanics.multibody.nearest import (
    CLOSURE_TOLERANCE,
    MIN_DAMPING,
    ClosureSearch,
    damped_least_squares,
    separate_parts,
)

TOLERANCE = PARALLEL  # rad, or m per m of lever: residual of a row that is left out
DEPENDENT = 1e-2  # part of a row of length 1 that other rows do not have, below which it may be one to leave out
EXACT = 1e-8  # the same of rows that depend on others exactly
ZERO = 1e-12  # length of a row that counts as none
TWO_AXES = 2  # directions in which the turning of bodies is held: the axes of such a loop are not parallel
WALKS = 3  # directions in which the remaining mechanism moves
STEPS, STEP = 12, 0.2  # rad, or m per m of lever: how far


def inexact_rows(model: Model, q: Array, t: float = 0.0, released: Sequence[str] = ()) -> dict[int, float]:
    """Row -> the largest residual [m or rad] it may have, of the rows to leave out; none where loops are exact.

    q: (nq,) with loops closed as far as they can be. released: constraints that may be released; rows of others do not
    depend on them."""
    equations = model.equations
    rows_of_closure = np.flatnonzero(equations.constraints.holonomic)
    found: dict[int, float] = {}
    parts = separate_parts(equations.closure.pattern, np.ones(model.nv, dtype=bool))
    owners, without_dofs = equations.closure.owners, ~equations.closure.pattern.any(axis=1)
    for part, dofs in parts:
        constant = without_dofs & np.isin(owners, owners[part])  # of the same constraints
        part = np.union1d(part, np.flatnonzero(constant))
        loops = _CoupledRows(model, rows_of_closure[part], part, dofs, released)
        found |= loops.inexact(q, t)
    return found


class _CoupledRows:
    """Constraint rows that share dofs, by number among all and among the holonomic ones."""

    def __init__(self, model: Model, rows: Array, of_closure: Array, dofs: Array, released: Sequence[str]) -> None:
        self.model, self.rows, self.of_closure, self.dofs = model, rows, of_closure, dofs
        constraints = model.equations.constraints
        owners = [constraints.members[constraints.owners[r]] for r in rows]
        self.geometric = np.array([bool(owner.frames) for owner in owners])
        self.linear_row = np.array(
            [c.law.rows[k].residual_unit == "m" for c, k in zip(owners, _within(owners), strict=True)]
        )
        self.linear_dof = np.array(model.equations.units)[dofs] == "m"
        self.size = 0.0  # [m] of the links, where it stands for the levers
        names = [owner.name for owner in owners]
        self.groups = [[k for k, name in enumerate(names) if name not in released]]
        self.groups += [[k for k, name in enumerate(names) if name == one] for one in released if one in names]

    def inexact(self, q: Array, t: float) -> dict[int, float]:
        """See `inexact_rows`."""
        if not self.geometric.any():
            return {}
        f = np.asarray(self.model.equations.closure.whole(q, t)[0])[self.of_closure]
        closed = np.abs(f).max() < CLOSURE_TOLERANCE
        exactly = len(self._dependent(q, t, EXACT, reach=False)) if closed else 0
        if len(self.rows) - exactly >= len(self.dofs):  # it does not move
            scaled, lever = self._scaled(q, t, reach=True)
            of_turning = scaled[self.geometric & ~self.linear_row]
            # with parallel axes the levers are what the loop is made of, however short they are
            meets = np.linalg.matrix_rank(of_turning, DEPENDENT) >= TWO_AXES if of_turning.size else False
            size = self._size_of_links()
            self.size = size if meets and lever <= TOLERANCE * size else 0.0
        left_out = self._dependent(q, t, DEPENDENT)
        # near a singular configuration more rows depend on others than elsewhere
        while len(left_out) > exactly:
            outcome = self._walk(q, t, left_out)
            if isinstance(outcome, dict):
                return outcome
            left_out = outcome
        return {}

    def _scaled(self, q: Array, t: float, reach: bool) -> tuple[Array, float]:
        """(G of these rows and dofs, each row relative to what it would be at most with other directions of axes,
        or with `reach` false to its own length; the largest lever [m])."""
        equations = self.model.equations
        G = np.asarray(equations.constraint_jacobian(q, t), dtype=float)[np.ix_(self.rows, self.dofs)]
        most = equations.largest_jacobian(q, t)[np.ix_(self.rows, self.dofs)]
        levers = most[np.ix_(self.linear_row & self.geometric, ~self.linear_dof)]
        lever = float(levers.max(initial=0.0))
        if not reach:
            return _over(G, np.linalg.norm(G, axis=1)), lever
        unit = lever = self.size or lever
        unit = unit or 1.0
        scale = np.where(self.linear_row, 1.0 / unit, 1.0)[:, None] * np.where(self.linear_dof, unit, 1.0)
        most = np.where(self.geometric[:, None], most, np.abs(G))
        reached = np.linalg.norm(scale * most, axis=1)
        if self.size:
            reached = np.where(self.linear_row & self.geometric, np.maximum(reached, 1.0), reached)
        return _over(scale * G, reached), lever

    def _size_of_links(self) -> float:
        """The largest radius of gyration about its joint [m] of the links that these dofs move."""
        tree, v_map = self.model.equations.tree, self.model.equations.v_map
        moves = np.abs(v_map.matrix[:, self.dofs]).sum(axis=1) > 0.0
        owners = np.repeat(np.arange(len(tree.kinds)), [kind.nv for kind in tree.kinds])
        figures = self.model.inertial_parameters[np.unique(owners[moves])]
        heavy = figures[figures[:, 0] > 0.0]
        return float(np.sqrt(0.5 * heavy[:, 4:7].sum(axis=1) / heavy[:, 0]).max(initial=0.0))

    def _dependent(self, q: Array, t: float, tolerance: float, reach: bool = True) -> list[int]:
        """The rows (numbers within these) that depend on the others within a tolerance. A row that others could stand
        for as well is kept if it comes first, and rows of coordinates before others."""
        scaled, _ = self._scaled(q, t, reach)
        permanent, dependent = np.zeros((0, scaled.shape[1])), []
        for group in self.groups:
            basis = permanent
            for exactly in (True, False):
                left = [k for k in group if self.geometric[k] != exactly]
                while left:
                    rest = [_remainder(scaled[k], basis) for k in left]
                    sizes = np.array([np.linalg.norm(part) for part in rest])
                    first = int(np.argmax(sizes >= 0.5 * sizes.max()))
                    if sizes[first] <= (EXACT if exactly else tolerance):
                        break
                    basis = np.vstack([basis, rest[first] / sizes[first]])
                    del left[first]
                dependent += left
            if group is self.groups[0]:
                permanent = basis
        return sorted(dependent)

    def _walk(self, q: Array, t: float, left_out: list[int]) -> dict[int, float] | list[int]:
        """Walk through the mechanism without these rows: {row: bound} if they may be left out, {} if not, a list of
        fewer rows if some hold something elsewhere."""
        equations = self.model.equations
        kept = np.delete(self.of_closure, left_out)
        search = ClosureSearch.of(equations, equations.closure, kept, self.dofs, q, t)
        _, lever = self._scaled(q, t, reach=True)
        unit = np.where(self.linear_dof, lever or 1.0, 1.0)
        bounds = TOLERANCE * np.where(self.linear_row, lever or 1.0, 1.0)[left_out]
        rng, moved = np.random.default_rng(2), False
        for _ in range(WALKS):
            place, direction = q, rng.normal(size=len(self.dofs))
            for step in range(STEPS):
                place, violation = search.close(place)
                if violation >= CLOSURE_TOLERANCE:
                    break
                fewer = self._dependent(place, t, DEPENDENT)
                if len(fewer) < len(left_out):
                    return fewer
                f = np.asarray(equations.closure.whole(place, t)[0])[self.of_closure[left_out]]
                if not (np.abs(f) <= bounds).all():
                    return {}
                moved = moved or step > 0
                _, G = search.closure(place, t)
                G = _over(G * unit, np.linalg.norm(G * unit, axis=1))
                direction = direction - damped_least_squares(G, G @ direction, MIN_DAMPING)
                size = np.abs(direction).max(initial=0.0)
                if not size > EXACT:
                    break
                direction = direction / size
                place = search.dofs.moved(place, STEP * unit * direction)
        return dict(zip(self.rows[left_out].tolist(), bounds.tolist(), strict=True)) if moved else {}


def _within(owners: Sequence[object]) -> list[int]:
    """Of each row its number within its constraint; rows of one constraint stand together."""
    numbers, last = [], None
    for owner in owners:
        numbers.append(numbers[-1] + 1 if owner is last else 0)
        last = owner
    return numbers


def _over(rows: Array, sizes: Array) -> Array:
    """The rows divided by their sizes; rows without size become zero."""
    return rows / np.where(sizes > ZERO, sizes, np.inf)[:, None]


def _remainder(row: Array, basis: Array) -> Array:
    for _ in range(2):  # twice is enough (Kahan)
        row = row - (basis @ row) @ basis
    return row
