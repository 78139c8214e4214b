"""LDLᵀ of the equations of bodies in Cartesian coordinates, without fill-in and in linear time.

The symmetric indefinite matrix [M Qᵀ; Q −C] of the unknowns (ẍ, −λ) has a graph: a vertex per body and per joint, an
edge where a joint acts on a body. For a tree of bodies it is a tree. Eliminated in an order in which every vertex comes
after its children, no block outside the tree is ever filled (Baraff, Linear-time dynamics using Lagrange multipliers,
1996). Here an element of a sweep is a body with the joint above it, two vertices:

    D_k = M_k + Σ_children Q_pᵀ S⁻¹ Q_p,      S = C + Q_k D_k⁻¹ Q_kᵀ  (the pivot of the joint is −S).

A body without inertia in a direction that its joint forbids has a singular D_k. There Q_kᵀ W Q_k is added to it, and
subtracted again behind the joint, where it changes nothing: ẍ_k satisfies Q_k ẍ_k = b − Q_p ẍ_p.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.multibody.sweeps import Column, Sweeps

# pivot relative to its largest possible value, below which a closing row counts as dependent on others
DEPENDENT = 1e-12


class Blocks(NamedTuple):
    """The rows of a body and of the m rows of its joint; sizes s and m."""

    inertia: Numeric  # (s, s) M_k
    own: Numeric  # (m, s) Q_k on the body
    parent: Numeric  # (m, s) Q_p on its parent
    compliance: Numeric  # (m,) diagonal of C: 1/J of rotors
    weight: Numeric  # (m,) diagonal of W


class Pivots(NamedTuple):
    """A = L D Lᵀ of one block."""

    lower: Numeric  # (n, n); below the diagonal
    inverse: Numeric  # (n,) 1/D


class Factors(NamedTuple):
    """What is left of the elimination of a body and its joint."""

    body: Pivots
    joint: Pivots
    response: Numeric  # (s, m) D_k⁻¹ Q_kᵀ
    passed: Numeric  # (m, s) S⁻¹ Q_p


def ldlt(a: Numeric) -> Pivots:
    """Of a definite matrix (n, n); only its lower triangle is used."""
    n, inverse = len(a), []
    a = ops.array(np.array(a, dtype=object)) if ops.is_symbolic(a) else np.array(a, dtype=float)
    for k in range(n):
        inverse.append(ops.reciprocal(a[k, k]))
        column = a[k + 1 :, k]
        scaled = column * inverse[k]
        for i in range(n - k - 1):
            a[k + 1 + i, k + 1 : k + 2 + i] = a[k + 1 + i, k + 1 : k + 2 + i] - scaled[i] * column[: i + 1]
        a[k + 1 :, k] = scaled
        a[k, k:] = 0.0
    return Pivots(a, ops.array(inverse))


def solve(pivots: Pivots, b: Numeric) -> Numeric:
    """x (n, c) with A x = b."""
    lower, inverse = pivots
    n, symbolic = len(b), ops.is_symbolic(b) or ops.is_symbolic(lower)
    x = ops.array(np.array(b, dtype=object)) if symbolic else np.array(b, dtype=float)
    for k in range(n):
        for i in range(k + 1, n):
            x[i] = x[i] - lower[i, k] * x[k]
    for k in reversed(range(n)):
        x[k] = x[k] * inverse[k]
        for i in range(k + 1, n):
            x[k] = x[k] - lower[i, k] * x[i]
    return x


def factorise(sweeps: Sweeps, blocks: Column) -> Column:
    """The `Factors` of every body; blocks: its `Blocks`."""

    def own(kind: object, body: object, blocks: Blocks) -> Numeric:
        return blocks.inertia

    def eliminate(kind: object, body: object, inertia: Numeric, blocks: Blocks) -> tuple[Numeric, Factors]:
        weighted = blocks.weight[:, None] * blocks.own
        of_body = ldlt(inertia + blocks.own.T @ weighted)
        response = solve(of_body, blocks.own.T)
        of_joint = ldlt(np.eye(len(blocks.compliance)) * blocks.compliance + blocks.own @ response)
        passed = solve(of_joint, blocks.parent)
        stiffness = blocks.parent.T @ (passed - blocks.weight[:, None] * blocks.parent)
        return stiffness, Factors(of_body, of_joint, response, passed)

    return sweeps.inward(own, eliminate, blocks)


def substitute(
    sweeps: Sweeps, blocks: Column, factors: Column, forces: Column, given: Column, size: tuple[int, int]
) -> Column:
    """(ẍ (s, c), λ (m, c)) of every body, for c right sides: forces (s, c) on the body, given (m, c) of its joint's
    equations Q ẍ + C λ = given. size: (s, c)."""

    def own(kind: object, body: object, blocks: Blocks, factors: Factors, force: Numeric, given: Numeric) -> Numeric:
        return force

    def forward(
        kind: object, body: object, force: Numeric, blocks: Blocks, factors: Factors, own: Numeric, given: Numeric
    ) -> tuple[Numeric, tuple[Numeric, Numeric]]:
        alone = solve(factors.body, force)
        multiplier = solve(factors.joint, given - blocks.own @ alone)
        on_parent = blocks.parent.T @ (multiplier - blocks.weight[:, None] * given)
        return on_parent, (alone, multiplier)

    def backward(
        kind: object,
        body: object,
        above: Numeric,
        blocks: Blocks,
        factors: Factors,
        given: Numeric,
        found: tuple[Numeric, Numeric],
    ) -> tuple[Numeric, tuple[Numeric, Numeric]]:
        alone, multiplier = found
        multiplier = multiplier - factors.passed @ above
        here = alone + factors.response @ multiplier
        return here, (here, multiplier - blocks.weight[:, None] * (given - blocks.parent @ above))

    found = sweeps.inward(own, forward, blocks, factors, forces, given)
    return sweeps.outward(backward, np.zeros(size), blocks, factors, given, found)


def border_multipliers(coupling: Numeric, demand: Numeric, sizes: Sequence[Numeric]) -> Numeric:
    """μ (m,) of the rows that close loops: coupling (m, m) = G H⁻¹ Gᵀ, demand (m,). 0 for rows that depend on others.

    sizes: |G_r|² of each row, by which its largest possible pivot is judged."""
    m = len(demand)
    a = ops.array(np.array(coupling, dtype=object)) if ops.is_symbolic(coupling) else np.array(coupling, dtype=float)
    mobility = _largest([a[r, r] / sizes[r] for r in range(m)])
    x, gains = list(demand), []
    for k in range(m):
        independent = a[k, k] > DEPENDENT * mobility * sizes[k]
        gains.append(ops.where(independent, 1.0 / ops.where(independent, a[k, k], 1.0), 0.0))
        for i in range(k + 1, m):
            factor = a[i, k] * gains[k]
            a[i, k + 1 :] = a[i, k + 1 :] - factor * a[k, k + 1 :]
            x[i] = x[i] - factor * x[k]
    for k in reversed(range(m)):
        x[k] = gains[k] * (x[k] - ops.sum(a[k, i] * x[i] for i in range(k + 1, m)))
    return ops.array(x)


def _largest(values: Sequence[Numeric]) -> Numeric:
    largest: Numeric = 0.0
    for value in values:
        largest = ops.maximum(largest, value)
    return largest


# --- the graph ---


def body_joint_graph(parents: Sequence[int], loops: Iterable[Iterable[int]] = ()) -> list[tuple[int, int]]:
    """Edges between vertices: body k is vertex k, the joint above it n + k, and loop l, which acts on the given bodies,
    2n + l. The ground (−1) is no vertex."""
    n = len(parents)
    edges = [(k, n + k) for k in range(n)]
    edges += [(n + k, parent) for k, parent in enumerate(parents) if parent >= 0]
    return edges + [(2 * n + loop, body) for loop, bodies in enumerate(loops) for body in bodies if body >= 0]


def elimination_order(parents: Sequence[int], loops: int = 0) -> list[int]:
    """Every vertex after its children; loops come last. Parents have smaller numbers than their children."""
    n = len(parents)
    return [v for k in reversed(range(n)) for v in (k, n + k)] + list(range(2 * n, 2 * n + loops))


def filled_blocks(edges: Iterable[tuple[int, int]], order: Sequence[int]) -> list[tuple[int, int]]:
    """The blocks (below the diagonal) that are 0 in the matrix and not in its factor, for an order of elimination, as
    pairs of vertices."""
    place = {vertex: k for k, vertex in enumerate(order)}
    later: list[set[int]] = [set() for _ in order]
    for pair in edges:
        first, second = sorted(place[v] for v in pair)
        later[first].add(second)
    filled = list[tuple[int, int]]()
    for beside in later:
        if beside:
            nearest = min(beside)
            new = beside - {nearest} - later[nearest]
            filled += [(order[nearest], order[other]) for other in sorted(new)]
            later[nearest] |= new
    return filled
