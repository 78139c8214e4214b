"""Whether a violated constraint can be satisfied at all near a state, and what keeps it from being so.

The free dofs are moved from there to where the residuals are least. What is left then no step and no projection would
remove: what is given contradicts the constraint (a motion of some dofs), or the constraints contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from cosim.core.errors import plural
from cosim.core.types import Array, State
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.nearest import ClosureSearch
from cosim.simulation.plant.plant import Plant

REMAINS = 1e-7  # m, rad or per s, above which a motion of the free dofs has not removed a residual
REMOVED = 0.1  # part of the rest, below which a motion of all dofs has removed it
RANK = 1e-6  # singular value of G relative to the largest, or force on a dof, below which it counts as 0


class ConstraintContradiction(NamedTuple):
    """What was established of a violated constraint in a state. given: dofs whose given motion it does not fit: were
    they free, it could be satisfied; others: constraints that it contradicts, its own name too where its own rows do;
    redundant: its rows that were left out as following from others, and do not here. Nothing of it where the free dofs
    could satisfy the constraint, or where that is not clear."""

    given: tuple[int, ...] = ()
    others: tuple[str, ...] = ()
    redundant: tuple[str, ...] = ()

    def text(self, name: str, dof_names: tuple[str, ...]) -> str:
        """As the end of a sentence about constraint `name`; empty where nothing was established."""
        if self.given:
            return f"it does not fit the motion given to {_listed(dof_names[k] for k in self.given)}"
        if self.others:
            rest = _listed(other for other in self.others if other != name)
            return f"its equations contradict {f'those of {rest}' if rest else 'each other'}"
        if self.redundant:
            rows = plural(len(self.redundant), "row")
            return f"its {rows} {_listed(self.redundant)} followed from others at the start, and no longer"
        return ""


def _listed(names: Iterable[str]) -> str:
    return " and ".join(f"'{name}'" for name in names)


def contradiction(plant: Plant, t: float, x: State, name: str) -> ConstraintContradiction:
    """Of constraint `name`, which is violated in the state x at time t [s]; of its positions, else of its
    velocities."""
    search = _LeastResiduals.of(plant, t, x, name)
    own, before = search.own, search.residual
    fixed = np.asarray(plant.locked_or_imposed(x), dtype=bool)
    left, G = search.least(np.flatnonzero(~fixed))
    constraints = plant.model.equations.constraints
    if not _size(left[own]) > REMAINS:
        dependent = np.isin(search.rows, constraints.redundant) & (np.abs(before) > 0.5 * _size(before[own]))
        return ConstraintContradiction(redundant=tuple(_row_name(plant, int(r)) for r in search.rows[own & dependent]))
    of_all, _ = search.least(np.arange(len(fixed)))
    if not _size(of_all[own]) > REMOVED * _size(left[own]):
        pushed = np.abs(G.T @ left)  # the dofs along which the rest could change
        return ConstraintContradiction(given=tuple(np.flatnonzero(fixed & (pushed > RANK * pushed.max())).tolist()))
    involved = search.rows[np.abs(left) > REMOVED * np.abs(left).max()]
    owners = dict.fromkeys(constraints.owners[int(r)] for r in involved)
    return ConstraintContradiction(others=tuple(constraints.members[k].name for k in owners))


class _LeastResiduals(NamedTuple):
    """The rows (m,) of active constraints in a state, whose least residuals are searched for. residual (m,): in the
    state, of positions or of velocities; own (m,): whether a row is of the constraint in question."""

    equations: MechanismEquations
    q: Array
    t: float
    rows: Array
    residual: Array
    own: Array
    of_positions: bool

    @staticmethod
    def of(plant: Plant, t: float, x: State, name: str) -> _LeastResiduals:
        equations = plant.model.equations
        constraints = equations.constraints
        holonomic, owners = np.array(constraints.holonomic), np.array(constraints.owners)
        active = plant.active(x)
        holds = np.ones(len(owners), dtype=bool) if active is None else np.asarray(active)[owners] > 0.5
        holds[list(constraints.inexact)] = False
        own = owners == [constraint.name for constraint in constraints.members].index(name)
        q, v, _ = plant.motion(t, x)
        positions, rate = (np.asarray(part, dtype=float) for part in equations.constraint_violation(q, v, t))
        f = np.zeros(len(owners))
        f[holonomic] = positions
        of_positions = _size(f[own & holds]) >= _size(rate[own & holds & ~holonomic])
        rows = np.flatnonzero(holds & holonomic if of_positions else holds)
        residual = (f if of_positions else rate)[rows]
        return _LeastResiduals(equations, np.asarray(q, dtype=float), t, rows, residual, own[rows], of_positions)

    def least(self, dofs: Array) -> tuple[Array, Array]:
        """(the least residual (m,) that motions of these dofs leave, G (m, nv) there)."""
        q = self._place(dofs) if self.of_positions else self.q
        G = np.asarray(self.equations.constraint_jacobian(q, self.t), dtype=float)[self.rows]
        if self.of_positions:
            return np.asarray(self.equations.closure.whole(q, self.t)[0])[self._of_closure], G
        change, *_ = np.linalg.lstsq(G[:, dofs], self.residual, rcond=RANK)
        return self.residual - G[:, dofs] @ change, G

    @property
    def _of_closure(self) -> Array:
        """The numbers of the rows among the holonomic ones."""
        return np.cumsum(self.equations.constraints.holonomic)[self.rows] - 1

    def _place(self, dofs: Array) -> Array:
        equations = self.equations
        search = ClosureSearch.of(equations, equations.closure, self._of_closure, dofs, self.q, self.t)
        return search.close(self.q)[0]


def _size(values: Array) -> float:
    return float(np.linalg.norm(values))


def _row_name(plant: Plant, row: int) -> str:
    constraints = plant.model.equations.constraints
    first = constraints.owners.index(constraints.owners[row])
    return constraints.members[constraints.owners[row]].law.rows[row - first].name
