"""Divisions by the same number share its reciprocal; a single division stays one."""

import numpy as np
import pytest

from cosim import ops
from cosim.compile import ArrayPort, compile
from cosim.compile.routine import Routine

X = np.random.default_rng(3).uniform(0.1, 9.0, (37, 4))
PORTS = [ArrayPort("x", (4,))]


def kinds(fn):
    """How often each operation occurs."""
    nodes = [node[0] for node in Routine(fn, [(4,)], "f").graph.nodes]
    return {kind: nodes.count(kind) for kind in ("DIV", "MUL", "INV") if kind in nodes}


def shared(x):
    return ops.array([x[0] / x[3], x[1] / x[3], 1.0 / x[3]])


def test_one_reciprocal_serves_all_divisions_by_a_number():
    assert kinds(shared) == {"DIV": 1, "MUL": 2}
    np.testing.assert_allclose(
        compile(shared, PORTS, interpret=False)(X[0]), [X[0, 0] / X[0, 3], X[0, 1] / X[0, 3], 1.0 / X[0, 3]], rtol=4e-16
    )


@pytest.mark.parametrize("fn", [lambda x: ops.array([x[0] / x[3]]), lambda x: ops.array([(1.0 / x[3]) * x[0]])])
def test_a_single_division_is_exact(fn):
    assert kinds(fn) == {"DIV": 1}
    np.testing.assert_array_equal(compile(fn, PORTS, "single", interpret=False)(X), X[:, :1] / X[:, 3:])


def test_a_constant_divisor_stays():
    def scaled(x):
        return ops.array([x[0] / 3.0, x[1] / 3.0])

    assert kinds(scaled) == {"DIV": 2}
    np.testing.assert_array_equal(compile(scaled, PORTS, interpret=False)(X), X[:, :2] / 3.0)


def test_a_row_of_a_batch_equals_a_single_state_to_the_bit():
    def mixed(x):
        return ops.array([x[0] / x[3] + x[1], x[1] / x[3] - x[2] / (x[0] * x[0]), x[2] / 7.0])

    compiled = compile(mixed, PORTS, interpret=False)
    np.testing.assert_array_equal(compiled(X), [compiled(x) for x in X])
