"""Whether a violated constraint can be satisfied at all near a state, and what keeps it from being so.

What the free dofs cannot remove from the residuals f, not by any small displacement δ, is the least |f + G δ|. Where
this is as large as f itself, no step and no projection help: what is given contradicts the constraint (a motion of some
dofs), or the constraints contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from cosim.core.errors import plural
from cosim.core.types import Array, State
from cosim.simulation.plant.plant import Plant

REMOVED = 0.1  # part of a residual, below which a displacement has removed it
REMAINS = 0.5  # the same, above which it has not
RANK = 1e-6  # singular value of G relative to the largest, below which it counts as 0


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
    q, v, _ = plant.motion(t, x)
    residual, rate = (np.asarray(part, dtype=float) for part in equations.constraint_violation(q, v, t))
    holonomic, owners = np.array(constraints.holonomic), np.array(constraints.owners)
    own = owners == [constraint.name for constraint in constraints.members].index(name)
    active = plant.active(x)
    holds = np.ones(len(owners), dtype=bool) if active is None else np.asarray(active)[owners] > 0.5
    of_positions = bool((own & holonomic).any()) and _size(residual, own[holonomic]) >= _size(rate, own & ~holonomic)
    rows = holds & holonomic if of_positions else holds
    f = residual[holds[holonomic]] if of_positions else rate[holds]
    G, own, owners = np.asarray(equations.constraint_jacobian(q, t), dtype=float)[rows], own[rows], owners[rows]
    fixed = np.asarray(plant.locked_or_imposed(x), dtype=bool)
    size, left = _size(f, own), _remainder(f, G[:, ~fixed])
    if not _size(left, own) >= REMAINS * size:
        numbers = np.flatnonzero(rows)
        out = [r for r in np.flatnonzero(own) if numbers[r] in constraints.redundant and abs(f[r]) >= REMAINS * size]
        return Contradiction(redundant=tuple(_row_name(plant, numbers[r]) for r in out))
    if _size(_remainder(f, G), own) <= REMOVED * size:
        pushed = np.abs(G.T @ left)  # the dofs along which the remainder could change
        return Contradiction(given=tuple(np.flatnonzero(fixed & (pushed > RANK * pushed.max())).tolist()))
    involved = np.unique(owners[np.abs(left) > REMOVED * np.abs(left).max()])
    return Contradiction(others=tuple(constraints.members[k].name for k in involved))


def _size(values: Array, chosen: Array) -> float:
    return float(np.linalg.norm(values[chosen]))


def _remainder(f: Array, G: Array) -> Array:
    """f + G δ of the δ that makes it least."""
    return f - G @ np.linalg.lstsq(G, f, rcond=RANK)[0]


def _row_name(plant: Plant, row: int) -> str:
    constraints = plant.model.equations.constraints
    first = constraints.owners.index(constraints.owners[row])
    return constraints.members[constraints.owners[row]].law.rows[row - first].name
