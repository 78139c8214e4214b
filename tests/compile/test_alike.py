"""Functions that differ in numbers only, in SIMD lanes of one code."""

from functools import partial

import numpy as np

from cosim import ops
from cosim.compile import compile
from cosim.compile.alike import Alike, groups
from cosim.compile.routine import Routine
from tests.compile.calls import ports

# constants among which are 1, 2, −1 and equal ones, which vanish from products or are computed once
NUMBERS = [(0.5, 1.0, 3.0), (2.0, 0.7, 0.7), (1.0, -1.0, 2.0), (-3.0, 4.0, 5.0), (0.1, 0.2, 1.0)]


def item(a, b, c, x, u):
    y = a * x[0] - b * ops.sin(x[1]) + c * u[0]
    return ops.array([y, y / c + b * y * y, ops.where(y > a, x[0] / x[1], c * x[0])])


def routines():
    return [Routine(partial(item, *numbers), [(2,), (1,)], "item") for numbers in NUMBERS]


def test_items_give_what_each_gives_by_itself():
    n = len(NUMBERS)
    places = [np.arange(2 * n).reshape(2, n).T, np.array([[0], [2], [1], [1], [0]])]
    alike = Alike(routines(), places, [2 * n, 3], "items")
    both = compile(lambda x, u: alike(x, u), ports(x=(2 * n,), u=(3,)), "both")
    rng = np.random.default_rng(3)
    for _ in range(20):
        x, u = rng.normal(size=2 * n), rng.normal(size=3)
        expected = [item(*numbers, x[i], u[j]) for numbers, i, j in zip(NUMBERS, *places, strict=True)]
        np.testing.assert_allclose(np.reshape(both(x, u), (3, n)).T, expected, rtol=1e-14)
        np.testing.assert_allclose(np.reshape(alike(x, u), (3, n)).T, expected, rtol=1e-15)


def test_other_operations_are_another_group():
    def other(x, u):
        return ops.array([x[0] + u[0] * x[1], x[1], x[0]])

    items = routines()
    items.insert(1, Routine(other, [(2,), (1,)], "other"))
    assert groups(items) == [[0, 2, 3, 4, 5], [1]]
