"""Divisions are those of the processor: a number divided by itself is 1, however many divisions share the divisor."""

import numpy as np

from cosim import ops
from cosim.compile import compile
from cosim.compile.jacobian import Jacobian
from cosim.compile.operations import LEAVES
from cosim.compile.routine import Routine
from tests.compile.calls import ports


def test_a_reciprocal_is_one_division_however_many_products_have_it():
    def scaled(x):
        inverse = ops.reciprocal(x[0])
        return ops.array([x[1] * inverse, x[2] * inverse, inverse])

    kinds = [node[0] for node in Routine(scaled, [(3,)], "scaled").graph.nodes if node[0] not in LEAVES]
    assert sorted(kinds) == ["DIV", "MUL", "MUL"]
    compiled, x = compile(scaled, ports(x=(3,))), np.array([0.3, 5.0, 7.0])
    np.testing.assert_array_equal(compiled(x), [5.0 * (1.0 / 0.3), 7.0 * (1.0 / 0.3), 1.0 / 0.3])
    found = Jacobian(scaled, [(3,)], "slope")(x)
    expected = [[-5.0 / 0.09, 1.0 / 0.3, 0.0], [-7.0 / 0.09, 0.0, 1.0 / 0.3], [-1.0 / 0.09, 0.0, 0.0]]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_a_number_divided_by_itself_is_one_beside_other_divisions_by_it():
    def remaining(x, y):
        u = ops.clip(y, 0.0, x[0])
        return ops.array([1.0 - u / x[0], x[1] / x[0], x[2] / x[0]])

    compiled = compile(remaining, ports(x=(3,), y=()))
    x = np.random.default_rng(0).uniform(0.01, 50.0, (2000, 3))
    found = compiled(x, np.full(2000, 100.0))
    np.testing.assert_array_equal(found[:, 0], 0.0)
    np.testing.assert_array_equal(found[:, 1:], x[:, 1:] / x[:, :1])
