"""Like parts of long graphs become loops over items, with the bits of straight-line code."""

from functools import partial

import numpy as np
import pytest

from cosim.core import ops
from cosim.core.compile import ArrayPort, compile, like_items
from cosim.core.compile.alike import Alike, groups
from cosim.core.compile.jit import vector_lanes
from cosim.core.compile.routine import Routine, call_when
from tests.compile.calls import ports

RNG = np.random.default_rng(7)
MANY = 61  # no multiple of the lanes
NEVER = 10**9


def compiled(monkeypatch, least, make, sizes):
    monkeypatch.setattr(like_items, "LEAST_ITEMS", least)
    f = compile(make(), [ArrayPort(f"x{k}", (n,)) for k, n in enumerate(sizes)])
    return f, f.routine.definition(1)


def assert_equal_bits(monkeypatch, make, *sizes, loops, folds=0):
    """Loops and straight-line code give the same bits, for one state and for a batch; loops, folds: calls of each."""
    rolled, text = compiled(monkeypatch, like_items.LEAST_ITEMS, make, sizes)
    unrolled, plain = compiled(monkeypatch, NEVER, make, sizes)
    assert (text.count("@items_"), text.count("@fold_")) == (loops, folds)
    assert "@items_" not in plain and "@fold_" not in plain
    k = 2 * vector_lanes() + 3
    batch = [RNG.uniform(-3.0, 3.0, (k, n)) for n in sizes]
    batch[0][1, 2], batch[0][2, 3], batch[0][3, 5] = np.nan, np.inf, -0.0
    expected = [unrolled(*(x[row] for x in batch)) for row in range(k)]
    for found in ([rolled(*(x[row] for x in batch)) for row in range(k)], rolled(*batch)):
        assert np.array(found).tobytes() == np.array(expected).tobytes()


GAINS, ORDER = RNG.uniform(0.1, 2.0, MANY), RNG.permutation(MANY)


def constants(x, y):
    """Equal and differing ones."""
    return ops.sin(GAINS * x) * 2.5 + ops.tanh(y) / GAINS - ops.cos(GAINS * x) * x


def three_classes(x, y, s):
    """Of items, with interleaved elements and a value that all use."""
    common = ops.exp(s[0]) * s[1]
    results = [None] * (3 * MANY)
    for k in range(3 * MANY):
        if k % 3 == 0:
            results[k] = ops.where(x[k] > common, x[k] * y[3 * MANY - 1 - k], -common)
        elif k % 3 == 1:
            results[k] = ops.clip(x[k] - y[k], -0.5, 0.1 * k) * s[1]
        else:
            results[k] = ops.logical_and(x[k] > 0.0, ops.logical_not(y[k] < x[k]))
    return ops.array(results)


def sums_and_maxima(x, y):
    squares = x * x * 0.5
    largest = ops.sum([])
    for k in range(MANY):
        largest = ops.maximum(largest, ops.abs(y[k] - 1.0))
    mixed = ops.sum(squares[k] * y[k] if k % 4 else squares[k] for k in range(MANY))
    return ops.concatenate([squares / (1.0 + mixed), ops.array([largest, ops.sum(squares), x @ y])])


def neighbours(x):
    """Items that share no result stay apart even where they read the same elements."""
    return (x[1:] - x[:-1]) * ops.sin(x[1:] + x[:-1])


LOOPS = [  # function, sizes of its arguments, calls of loops and of folds
    (constants, (MANY, MANY), 1, 0),
    (three_classes, (3 * MANY, 3 * MANY, 2), 3, 0),
    (sums_and_maxima, (MANY, MANY), 3, 4),
    (neighbours, (MANY,), 1, 0),
    (lambda x: ops.concatenate([np.ones(MANY), x[ORDER], np.zeros(MANY), x * x - 1.0, x[::-1]]), (MANY,), 1, 0),
]


@pytest.mark.parametrize(("fn", "sizes", "loops", "folds"), LOOPS, ids=lambda value: getattr(value, "__name__", ""))
def test_loops_and_straight_line_code_give_the_same_bits(monkeypatch, fn, sizes, loops, folds):
    assert_equal_bits(monkeypatch, lambda: fn, *sizes, loops=loops, folds=folds)


def test_a_row_of_operations_may_begin_with_the_end_of_another(monkeypatch):
    """A polynomial by Horner, to which a sum is added: the last operation of the first is one of the sum too."""

    def make():
        def fn(x, y):
            value = x[0]
            for k in range(1, MANY):
                value = value * y[0] + x[k]
            for k in range(1, MANY):
                value = value + x[k] * y[k]
            return ops.concatenate([ops.array([value]), ops.sin(x) * y])

        return fn

    assert_equal_bits(monkeypatch, make, MANY, MANY, loops=1, folds=2)


def test_items_before_and_after_calls(monkeypatch):
    """Loops come in the order of what they need: results of a call and of a sum are inputs of later items."""

    def make():
        inner = Routine(lambda x: ops.cos(x) + ops.concatenate([x[1:], x[:1]]), [(MANY,)], "inner")

        def fn(x):
            scaled = x * 0.25 + 1.0
            called = inner(scaled * scaled)
            total = ops.sum(called[k] * scaled[k] for k in range(MANY))
            chosen = call_when(total > 0.0, inner, [called - total], [scaled])
            return ops.concatenate([chosen * scaled, ops.sqrt(ops.abs(called - total))])

        return fn

    monkeypatch.setattr(like_items, "LEAST_ITEMS", 48)
    rolled, text = compiled(monkeypatch, 48, make, [MANY])
    assert text.count("@fold_") == 1 and text.count("@items_") >= 3
    unrolled, _ = compiled(monkeypatch, NEVER, make, [MANY])
    for scale in (0.1, 1.0, -8.0):
        x = scale * RNG.uniform(-1.0, 2.0, (9, MANY))
        expected = np.array([unrolled(row) for row in x])
        assert np.array([rolled(row) for row in x]).tobytes() == expected.tobytes() == rolled(x).tobytes()


@pytest.mark.parametrize("n", [6, 47])
def test_few_items_stay_straight_line_code(n):
    text = Routine(lambda x: x * x + ops.sin(x), [(n,)], "few").definition(1)
    assert "@items_" not in text


def test_a_graph_that_is_mostly_something_else_stays_as_it_is():
    def fn(x):
        y = x[0]
        for k in range(1000):
            y = ops.sin(y * x[k % 5]) + y
        return ops.concatenate([x * 2.0, ops.array([y])])

    assert "@items_" not in Routine(fn, [(MANY,)], "mostly").definition(1)


def test_code_of_many_items_is_as_long_as_that_of_few():
    def length(n):
        text = Routine(lambda x, y: ops.sin(x) * y + ops.sum(x * y), [(n,), (n,)], "length").definition(1)
        return text.count("\n")

    assert length(60) == length(2000)


# --- what is alike ---

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
