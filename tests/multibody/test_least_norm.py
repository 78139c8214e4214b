"""Reactions distributed over dependent rows: group by group as in one system of all rows."""

import numpy as np
import pytest

from cosim.multibody.least_norm import groups, least_norm

RNG = np.random.default_rng(0)


def dense(G, redundant, multipliers, holds):
    """The same for all rows at once."""
    solved = [r for r in range(len(G)) if r not in redundant]
    independent, dependent = G[solved], G[list(redundant)]
    normal = independent @ independent.T + np.diag(1.0 - holds[solved])
    B = np.linalg.solve(normal, independent @ dependent.T).T
    shares = np.linalg.solve(np.eye(len(redundant)) + B @ B.T, B @ multipliers[solved])
    found = np.array(multipliers)
    found[solved] -= B.T @ shares
    found[list(redundant)] = shares
    return found


def coupled_rows(parts):
    """(G, redundant rows): of each part two random rows over four dofs, and two that depend on them; a part may share
    its last dof with the next."""
    G, redundant = np.zeros((4 * len(parts), 4 * len(parts) + 1)), []
    for k, shares in enumerate(parts):
        rows = RNG.normal(size=(2, 4 + shares))
        first = 4 * k
        G[first : first + 2, first : first + rows.shape[1]] = rows
        G[first + 2 : first + 4] = RNG.normal(size=(2, 2)) @ G[first : first + 2]
        redundant += [first + 2, first + 3]
    return G, redundant


def by_dof(G):
    return [{int(dof): row[dof] for dof in np.flatnonzero(row)} for row in G]


@pytest.mark.parametrize("parts", [(0,), (0, 0, 0), (1, 1, 0), (0, 1, 0)])
def test_groups_give_what_all_rows_together_give(parts):
    G, redundant = coupled_rows(parts)
    multipliers = RNG.normal(size=len(G))
    multipliers[redundant] = 0.0
    found = least_norm(by_dof(G), redundant, multipliers, np.ones(len(G)))
    np.testing.assert_allclose(found, dense(G, redundant, multipliers, np.ones(len(G))), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(G.T @ found, G.T @ multipliers, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found, np.linalg.lstsq(G.T, G.T @ multipliers, rcond=1e-12)[0], rtol=1e-8, atol=1e-10)


def test_released_rows_carry_nothing():
    G, redundant = coupled_rows((1, 0))
    holds = np.ones(len(G))
    holds[4:] = 0.0
    G *= holds[:, None]
    multipliers = RNG.normal(size=len(G)) * holds
    multipliers[redundant] = 0.0
    found = least_norm(by_dof(G), redundant, multipliers, holds)
    np.testing.assert_allclose(found, dense(G, redundant, multipliers, holds), rtol=1e-10, atol=1e-12)
    assert not found[4:].any()


def test_a_row_without_dofs_carries_nothing():
    found = least_norm([{0: 2.0}, {}], [1], np.array([3.0, 0.0]), np.ones(2))
    np.testing.assert_array_equal(found, [3.0, 0.0])


def test_groups_are_joined_by_later_rows():
    rows = [{0: 1.0}, {1: 1.0}, {}, {2: 1.0}, {0: 1.0, 1: 1.0}]
    assert groups(rows) == [[0, 1, 4], [3]]
