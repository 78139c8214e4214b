"""Scalar code computes the sines and cosines of several inputs at once: the same bits as one by one and in batches."""

import numpy as np
import pytest

from cosim import ops
from cosim.compile import compile
from cosim.compile.mathlib import REDUCIBLE, TOGETHER
from cosim.compile.routine import Routine
from cosim.compile.split import LONGEST
from tests.compile.calls import ports

RNG = np.random.default_rng(2)


def both(x):
    return ops.concatenate([ops.sin(x), ops.cos(x)])


def calls(fn, n):
    """(calls for several arguments, calls for one)"""
    text = Routine(fn, [(n,)], "sines").definition(1)
    return text.count(f"@cosim.sincos.{TOGETHER}("), text.count("@cosim.sincos.1(")


@pytest.mark.parametrize(("n", "expected"), [(1, (0, 1)), (2, (1, 0)), (4, (1, 0)), (5, (1, 1)), (7, (2, 0))])
def test_inputs_are_taken_in_groups(n, expected):
    assert TOGETHER == 4 and calls(both, n) == expected


def test_an_angle_that_needs_another_sine_is_not_computed_in_advance():
    assert calls(lambda x: ops.array([ops.sin(x[0] + ops.sin(x[1])) * ops.cos(x[0] * 2.0)]), 2) == (1, 1)


@pytest.mark.parametrize("n", [3, 6])
def test_every_argument_gets_its_own_bits(n):
    compiled = compile(both, ports(x=(n,)))
    alone = compile(both, ports(x=(1,)))
    x = RNG.uniform(-50.0, 50.0, (23, n))
    x[3, 0], x[4, n - 1], x[5, 1], x[6, 0], x[7, 2] = 2.0 * REDUCIBLE, -1e300, np.inf, np.nan, -0.0
    expected = [np.concatenate([[alone(row[k : k + 1])[which] for k in range(n)] for which in (0, 1)]) for row in x]
    np.testing.assert_array_equal([compiled(row) for row in x], expected)
    np.testing.assert_array_equal(compiled(x), expected)


@pytest.mark.parametrize("length", [1, LONGEST])
def test_an_angle_that_a_call_returns_is_that_of_the_call(length):
    """Also in a long function, whose parts pass results of calls through memory."""
    inner = Routine(lambda x: ops.array([x[0] * 3.0, x[1] + x[2]]), [(3,)], "inner")

    def outer(x):
        angles = inner(x)
        first = ops.sin(angles[0]) + ops.cos(angles[1]) + ops.sin(x[0]) * ops.cos(x[1])
        for k in range(length):
            first = first * x[k % 3] + 0.25 * x[(k + 1) % 3]
        return ops.array([first, ops.sin(x[2])])

    x = np.array([0.3, -0.4, 0.5])
    np.testing.assert_allclose(compile(outer, ports(x=(3,)))(x), outer(x), rtol=1e-12, atol=1e-300)
