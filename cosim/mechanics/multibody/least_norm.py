"""Reactions of least norm where constraint rows depend on others.

Rows that share a dof form a group; groups are separate problems. With the rows G_d = B G_i of a group, G_i those that
are solved for, λ_i has the same efforts as λ_i − Bᵀ λ_d and λ_d for any λ_d, and |λ|² is least for

    (E + B Bᵀ) λ_d = B λ_i,    B = G_d G_iᵀ (G_i G_iᵀ)⁻¹.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from cosim.core import ops
from cosim.core.compile.elimination import Elimination
from cosim.core.types import Numeric

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
