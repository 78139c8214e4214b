"""Ten variables of a link: 0 is the inertia of the rig, and every value belongs to a possible body."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.apps.identification.blocks import numbers_of_inertia, pseudo_inertia, upper_factor
from cosim.mechanics.multibody.description.inertia import inertia_matrix

BODIES = [
    (2.0, [0.2, -0.1, 0.3], [0.02, 0.03, 0.04, 0.001, -0.002, 0.003]),
    (0.1, [0.0, 0.0, 0.0], [1e-4, 1e-4, 1.5e-4, 0, 0, 0]),
    (30.0, [-1.0, 0.5, 0.0], [3.0, 2.0, 4.0, 0.3, 0.0, -0.2]),
]


@pytest.mark.parametrize(("mass", "com", "moments"), BODIES)
def test_variables_of_0_are_the_body_itself(mass, com, moments):
    factor = upper_factor(mass, np.array(com), inertia_matrix(*moments))
    np.testing.assert_allclose(numbers_of_inertia(factor, np.zeros(10)), [mass, *com, *moments], atol=1e-12 * mass)
    np.testing.assert_allclose(factor, np.triu(factor))


@pytest.mark.parametrize(("mass", "com", "moments"), BODIES)
def test_every_value_is_a_possible_body(mass, com, moments):
    factor = upper_factor(mass, np.array(com), inertia_matrix(*moments))
    for x in np.random.default_rng(0).normal(size=(50, 10)):
        found = np.asarray(numbers_of_inertia(factor, x), dtype=float)
        values = np.linalg.eigvalsh(inertia_matrix(*found[4:]))
        assert found[0] > 0.0
        assert values[0] > 0.0
        assert values[0] + values[1] > values[2]
        assert np.linalg.eigvalsh(pseudo_inertia(found[0], found[1:4], inertia_matrix(*found[4:])))[0] > 0.0


def test_a_rod_gets_a_thickness():
    """Else variables across it would have no effect."""
    factor = upper_factor(1.0, np.zeros(3), inertia_matrix(0.0, 0.1, 0.1, 0, 0, 0))
    found = np.asarray(numbers_of_inertia(factor, np.zeros(10)), dtype=float)
    assert 0.0 < found[4] < 1e-6
    np.testing.assert_allclose(found[5:7], 0.1, rtol=1e-5)
