"""Linear equations with several right sides: the solution, what zeros save, and derivatives of implicit functions."""

import numpy as np
import pytest

from cosim.core import ops
from cosim.core.compile import compile
from cosim.core.compile.elimination import Elimination
from cosim.core.compile.jacobian import ImplicitJacobian, Jacobian
from cosim.core.compile.routine import Routine
from tests.compile.calls import ports

RNG = np.random.default_rng(5)
SPARSE = np.eye(7) + np.where(RNG.uniform(size=(7, 7)) < 0.3, RNG.normal(size=(7, 7)), 0.0) * 0.2
ARROW = 3.0 * np.eye(12)
ARROW[0, :] = ARROW[:, 0] = 1.0
ARROW[0, 0] = 30.0


@pytest.mark.parametrize("matrix", [SPARSE, ARROW, np.eye(3)])
def test_it_solves_for_vectors_and_matrices(matrix):
    n, equations = len(matrix), Elimination(matrix)
    for b in (RNG.normal(size=n), RNG.normal(size=(n, 3))):
        np.testing.assert_allclose(matrix @ equations.solve(b), b, atol=1e-13)


def test_symbols_give_what_numbers_give():
    def solved(a, b):
        return Elimination(SPARSE + ops.array(np.diag(a))).solve(b)

    a, b = RNG.normal(size=7) * 0.1, RNG.normal(size=7)
    compiled = compile(solved, ports(a=(7,), b=(7,)))
    np.testing.assert_allclose(compiled(a, b), np.linalg.solve(SPARSE + np.diag(a), b), rtol=1e-13)


def test_a_pivot_of_zero_gives_values_that_are_not_finite():
    with np.errstate(all="ignore"):
        assert not np.isfinite(Elimination(np.array([[0.0, 1.0], [1.0, 0.0]])).solve(np.ones(2))).all()


def test_an_arrow_is_eliminated_from_its_tips():
    """From its head, every element would fill: about 2 n³/3 operations instead of a few n."""

    def solved(d, b):
        matrix = ops.array(ARROW.astype(object)) + np.zeros((12, 12)) + ops.array(np.diag(d))
        return Elimination(matrix).solve(b)

    assert Routine(solved, [(12,), (12,)], "arrow").operations < 12 * 12


def circle(x, z, scale):
    """z on the circle of radius x[0], at an angle that x[1] shifts, by two implicit equations; f of both."""
    residual = ops.array([z[0] ** 2.0 + z[1] ** 2.0 - x[0] ** 2.0, z[1] - x[1] * z[0]])
    return ops.array([scale[0] * z[0] * x[1], z[1] + x[0], x[1]]), residual


def explicit(x, scale):
    z0 = x[0] / ops.sqrt(1.0 + x[1] ** 2.0)
    return circle(x, ops.array([z0, x[1] * z0]), scale)[0]


def test_an_implicit_function_has_the_derivative_of_the_explicit_one():
    x, scale = np.array([1.3, 0.4]), np.array([2.0])
    z0 = x[0] / np.sqrt(1.0 + x[1] ** 2)
    z = np.array([z0, x[1] * z0])
    expected = Jacobian(explicit, [(2,), (1,)], "explicit")(x, scale)
    implicit = ImplicitJacobian(circle, [(2,), (2,), (1,)], "implicit")
    np.testing.assert_allclose(implicit(x, z, scale), expected, rtol=1e-13, atol=1e-15)
    arguments = ports(x=(2,), z=(2,), scale=(1,))
    np.testing.assert_allclose(compile(implicit, arguments, "implicit")(x, z, scale), expected, rtol=1e-13, atol=1e-15)


def test_a_symmetric_matrix_is_eliminated_by_half():
    rng = np.random.default_rng(4)
    factor = rng.normal(size=(6, 6)) * (rng.uniform(size=(6, 6)) < 0.6) + 3.0 * np.eye(6)
    matrix = factor @ factor.T
    half = Elimination(matrix, symmetric=True)
    np.testing.assert_allclose(half.inverse(), np.linalg.inv(matrix), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(half.inverse(), half.inverse().T)
    np.testing.assert_allclose(Elimination(matrix).inverse(), half.inverse(), rtol=1e-9, atol=1e-12)

    def inverse(symmetric):
        def of(flat):
            a = flat.reshape(6, 6)
            mirrored = ops.array([[a[min(i, j), max(i, j)] for j in range(6)] for i in range(6)])
            return Elimination(mirrored, symmetric=symmetric).inverse()

        return Routine(of, [(36,)], "inverse").operations

    assert inverse(True) < 0.8 * inverse(False)
