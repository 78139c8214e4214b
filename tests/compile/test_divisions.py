"""Divisions are those of the processor: a number divided by itself is 1, however many divisions share the divisor."""

import numpy as np

from cosim import ops
from cosim.compile import ArrayPort, compile


def test_a_number_divided_by_itself_is_one_beside_other_divisions_by_it():
    def remaining(x, y):
        u = ops.clip(y, 0.0, x[0])
        return ops.array([1.0 - u / x[0], x[1] / x[0], x[2] / x[0]])

    compiled = compile(remaining, [ArrayPort("x", (3,)), ArrayPort("y", ())], interpret=False)
    x = np.random.default_rng(0).uniform(0.01, 50.0, (2000, 3))
    found = compiled(x, np.full(2000, 100.0))
    np.testing.assert_array_equal(found[:, 0], 0.0)
    np.testing.assert_array_equal(found[:, 1:], x[:, 1:] / x[:, :1])
