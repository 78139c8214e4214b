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
from cosim.mechanics.multibody.nearest import ClosureSearch
from cosim.simulation.plant.plant import Plant

REMAINS = 1e-7  # m, rad or per s, above which a motion of the free dofs has not removed a residual
REMOVED = 0.1  # part of the rest, below which a motion of all dofs has removed it
RANK = 1e-6  # singular value of G relative to the largest, or force on a dof, below which it counts as 0


class Contradiction(NamedTuple):
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


def contradiction(plant: Plant, t: float, x: State, name: str) -> Contradiction:
    """Of constraint `name`, which is violated in the state x at time t [s]; of its positions, else of its
    velocities."""
    equations = plant.model.equations
    constraints = equations.constraints
    holonomic, owners = np.array(constraints.holonomic), np.array(constraints.owners)
    active = plant.active(x)
    holds = np.ones(len(owners), dtype=bool) if active is None else np.asarray(active)[owners] > 0.5
    holds[list(constraints.inexact)] = False
    own = owners == [constraint.name for constraint in constraints.members].index(name)
    q, v, _ = plant.motion(t, x)
    residual, rate = (np.asarray(part, dtype=float) for part in equations.constraint_violation(q, v, t))
    of_positions = _size(residual[(own & holds)[holonomic]]) >= _size(rate[own & holds & ~holonomic])
    rows = np.flatnonzero(holds & holonomic if of_positions else holds)
    fixed = np.asarray(plant.locked_or_imposed(x), dtype=bool)
    free, every = np.flatnonzero(~fixed), np.arange(len(fixed))

    def least(dofs: Array) -> tuple[Array, Array]:
        """(the least residual of the rows that motions of these dofs leave, G there)."""
        if of_positions:
            of_closure = np.cumsum(holonomic)[rows] - 1
            place, _ = ClosureSearch.of(equations, equations.closure, of_closure, dofs, np.asarray(q), t).close(
                np.asarray(q, dtype=float)
            )
            left = np.asarray(equations.constraint_violation(place, v, t)[0], dtype=float)[of_closure]
            return left, np.asarray(equations.constraint_jacobian(place, t), dtype=float)[rows]
        G = np.asarray(equations.constraint_jacobian(q, t), dtype=float)[rows]
        f = rate[rows]
        return f - G[:, dofs] @ np.linalg.lstsq(G[:, dofs], f, rcond=RANK)[0], G

    before = (residual[np.cumsum(holonomic)[rows] - 1]) if of_positions else rate[rows]
    size = _size(before[own[rows]])
    left, G = least(free)
    if not _size(left[own[rows]]) > REMAINS:
        out = [
            r for r, f in zip(rows, before, strict=True) if own[r] and r in constraints.redundant and abs(f) > size / 2
        ]
        return Contradiction(redundant=tuple(_row_name(plant, int(r)) for r in out))
    if not _size(least(every)[0][own[rows]]) > REMOVED * _size(left[own[rows]]):
        pushed = np.abs(G.T @ left)  # the dofs along which the rest could change
        return Contradiction(given=tuple(np.flatnonzero(fixed & (pushed > RANK * pushed.max())).tolist()))
    involved = np.unique(owners[rows][np.abs(left) > REMOVED * np.abs(left).max()])
    return Contradiction(others=tuple(constraints.members[k].name for k in involved))


def _size(values: Array) -> float:
    return float(np.linalg.norm(values))


def _row_name(plant: Plant, row: int) -> str:
    constraints = plant.model.equations.constraints
    first = constraints.owners.index(constraints.owners[row])
    return constraints.members[constraints.owners[row]].law.rows[row - first].name
