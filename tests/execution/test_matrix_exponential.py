"""The exponential of a matrix, against scipy's."""

import numpy as np
import pytest
from scipy.linalg import expm

from cosim.execution.drive_loops import exponential


@pytest.mark.parametrize("size", [0.0, 1e-9, 0.3, 1.0, 20.0, 400.0])
def test_it_is_that_of_scipy(size):
    rng = np.random.default_rng(1)
    for n in (1, 4, 19):
        matrix = size * rng.normal(size=(n, n)) / n
        matrix -= size * np.eye(n)  # stable, as drives and their current loops are
        expected = expm(matrix)
        np.testing.assert_allclose(exponential(matrix), expected, rtol=0, atol=1e-11 * max(np.abs(expected).max(), 1.0))


def test_a_double_integrator_is_exact():
    np.testing.assert_array_equal(exponential(np.array([[0.0, 0.25], [0.0, 0.0]])), [[1.0, 0.25], [0.0, 1.0]])


def test_a_stiff_current_loop_decays():
    np.testing.assert_allclose(exponential(np.diag([-1e4, -1.0])), np.diag([0.0, np.exp(-1.0)]), atol=1e-14)
