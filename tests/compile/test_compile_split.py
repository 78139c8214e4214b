"""Long graphs are split into several functions with bitwise identical results."""

import numpy as np
import pytest

from cosim.core import ops
from cosim.core.compile import ArrayPort, Routine, array_entry, compile, split, stack_array
from cosim.core.compile.jit import vector_lanes
from cosim.core.compile.routine import call_when, with_callees
from tests.compile.calls import run

LANES = vector_lanes()
ONE_FUNCTION = 10**9
N = 4  # elements of the vectors that random expressions are made of

UNARY = [
    ops.sin,
    ops.cos,
    ops.tanh,
    ops.abs,
    ops.sign,
    ops.floor,
    lambda x: -x,
    lambda x: x * x,
    lambda x: ops.sqrt(ops.abs(x)),
    lambda x: ops.logical_not(x > 0.5),
]
BINARY = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x / (1.0 + y * y),
    ops.atan2,
    ops.maximum,
    lambda x, y: x < y,
    lambda x, y: ops.logical_or(x > 1.0, y > 1.0),
    lambda x, y: ops.where(x > y, x, 2.0),
]


def compiled(monkeypatch, length, make, sizes, parts=True):
    """The function that `make` returns, compiled with functions of at most `length` tasks."""
    monkeypatch.setattr(split, "LONGEST_FUNCTION", length)
    f = compile(make(), [ArrayPort(f"x{k}", (n,)) for k, n in enumerate(sizes)])
    text = f.routine.definition(1)
    assert (".part1.1(" in text) == (parts and length < ONE_FUNCTION)
    return f


def both(monkeypatch, make, *sizes, length=30):
    """(in one function, in parts)."""
    return [compiled(monkeypatch, n, make, sizes) for n in (ONE_FUNCTION, length)]


def random(*shape):
    return np.random.default_rng(0).uniform(-3.0, 3.0, shape)


def same(found, expected):
    found, expected = (x if isinstance(x, tuple) else (x,) for x in (found, expected))
    assert [x.tobytes() for x in found] == [x.tobytes() for x in expected]


def agree(one, parts, *sizes):
    """One state, batches, and outputs that lie on inputs as far as they fit."""
    for lead in ((), (1,), (LANES,), (2 * LANES + 1,)):
        arrays = [random(*lead, n) + k for k, n in enumerate(sizes)]
        expected = one(*arrays)
        same(parts(*arrays), expected)
        expected = expected if isinstance(expected, tuple) else (expected,)
        free, out = arrays[::-1], []
        for target in expected:
            fitting = [k for k, array in enumerate(free) if array.shape == target.shape]
            out.append(free.pop(fitting[0]) if fitting else np.empty_like(target))
        parts.native(*arrays, out=tuple(out) if len(out) > 1 else out[0])
        same(tuple(out), expected)


def inner_routine(rng):
    a, b = rng.normal(size=2)
    return Routine(lambda x, y: (ops.sin(a * x) + y[::-1] * x[0], b * x - y[1]), [(N,), (N,)], "inner")


def random_function(seed):
    """A function of (x (N,), y (N,), on (1,)) of many random operations and calls, some of them conditional."""

    def make():
        rng = np.random.default_rng(seed)
        routines = [inner_routine(rng) for _ in range(2)]

        def function(x, y, on):
            values = [*x, *y, 0.5, 0.0, -0.0]

            def vector():
                picks = rng.integers(max(0, len(values) - 40), len(values), N)
                return ops.array([values[k] for k in picks])

            for _ in range(30):
                a, b = vector(), vector()
                kind = rng.integers(12)
                if kind < 4:
                    new = UNARY[rng.integers(len(UNARY))](a)
                elif kind < 9:
                    new = BINARY[rng.integers(len(BINARY))](a, b)
                elif kind == 9:
                    new, _ = routines[rng.integers(2)](x if rng.integers(2) else a, b)
                elif kind == 10:
                    new = ops.concatenate(routines[rng.integers(2)](y, a))
                else:
                    _, new = call_when(on[0] > rng.normal(), routines[rng.integers(2)], (a, b), (b, a))
                values += [ops.tanh(v) if k % 2 else v for k, v in enumerate(new)]
            return ops.array(values[-3 * N :]), vector(), ops.array([values[k] for k in rng.permutation(len(values))])

        return function

    return make


@pytest.mark.parametrize(("seed", "length"), [(0, 25), (1, 50), (2, 120), (3, 250)])
def test_random_functions(seed, length, monkeypatch):
    one, parts = both(monkeypatch, random_function(seed), N, N, 1, length=length)
    for on in (-5.0, 0.0, 5.0):
        for lead in ((), (LANES + 1,)):
            x, y = random(2, *lead, N)
            same(parts(x, y, [on]), one(x, y, [on]))
    x, y = random(2, LANES + 1, N)
    mixed = np.linspace(-5.0, 5.0, LANES + 1)[:, None]  # each row decides for itself
    same(parts(x, y, mixed), one(x, y, mixed))
    by_rows = [parts(*row) for row in zip(x, y, mixed, strict=True)]
    same(parts(x, y, mixed), tuple(map(np.array, zip(*by_rows, strict=True))))


def long(x, times=10):
    for _ in range(times):
        x = 0.5 * x + ops.sin(x[::-1])
    return x


def every_kind():
    """Inputs whole, in part and moved, numbers, one value twice, nothing, what a call returns."""
    called = Routine(lambda x: (long(x, 2), x[::-1]), [(N,)], "called")

    def function(x, y):
        z, turned = called(x)
        w = long(z)
        odds = ops.array([3.0, x[0], -0.0, x[0], w[1]])
        return x, y[1:], x[::-1], odds, ops.concatenate([w, w]), ops.zeros(0), z, turned[:2], called(w[:N])[0]

    return function


def no_elements():
    empty = Routine(lambda x: x, [(0,)], "empty")
    return lambda x, y: (empty(x), long(y))


def deep(x):
    for _ in range(400):
        x = 0.5 * x[::-1] + 1.0 / (1.0 + x * x)
    return x


FUNCTIONS = {
    "outputs may be inputs that later parts need": (
        lambda: lambda x, y: (x + y, long(x) * y, long(y) - x[0], y, x),
        N,
        N,
    ),
    "outputs of every kind": (every_kind, N, N),
    "arrays of no elements": (no_elements, 0, N),
    "deep expressions": (lambda: deep, 2),
}


@pytest.mark.parametrize("what", FUNCTIONS)
def test_parts_give_the_bits_of_the_whole(monkeypatch, what):
    make, *sizes = FUNCTIONS[what]
    agree(*both(monkeypatch, make, *sizes, length=600 if make() is deep else 30), *sizes)


def test_calls_take_arrays_as_they_lie(monkeypatch):
    """Inputs, parts of inputs and results of other calls are not copied."""

    def make():
        called = Routine(lambda x: long(x, 1), [(N,)], "called")
        return lambda x: called(called(x[1:])) + long(called(x[:N]), 8)

    one, parts = both(monkeypatch, make, N + 1)
    agree(one, parts, N + 1)
    text = parts.routine.definition(1)
    # the workspace, and the outputs from it
    assert (text.count("alloca"), text.count("memcpy")) == (1, 1)


def test_parts_within_parts(monkeypatch):
    def make():
        deepest = Routine(lambda x, y: (long(x), long(y)), [(N,), (N,)], "deepest")

        def middle(x, y):
            x, y = deepest(long(x), y)
            return deepest(y, long(x))

        middle = Routine(middle, [(N,), (N,)], "middle")
        return lambda x, y: middle(*call_when(y[0] > 0.0, middle, (long(x), y), (y, x)))

    one, parts = both(monkeypatch, make, N, N)
    x = random(N)
    for first in (-1.0, 1.0):
        y = np.array([first, 2.0, 3.0, 4.0])
        same(parts(x, y), one(x, y))
    assert all(".part1.1(" in routine.definition(1) for routine in with_callees(parts.routine))


def test_sine_and_cosine_are_found_together(monkeypatch):
    def make():
        return lambda x: (long(ops.sin(x)), ops.cos(x))

    counts = []
    for length in (ONE_FUNCTION, 100):
        f = compiled(monkeypatch, length, make, [N])
        counts.append(f.routine.definition(1).count("@cosim.sincos"))
    # each part has its own groups of angles that are computed at once
    assert counts[0] <= counts[1] <= counts[0] + 2


def test_a_large_workspace_is_on_the_heap(monkeypatch):
    def make():
        return lambda x: long(x)

    one, stack = both(monkeypatch, make, N)
    texts = [stack.routine.definition(1)]
    monkeypatch.setattr(stack_array, "STACK_BYTES", 0)
    heap = compiled(monkeypatch, 30, make, [N])
    texts.append(heap.routine.definition(1))
    agree(one, heap, N)
    assert ["malloc" in text for text in texts] == ["free" in text for text in texts] == [False, True]


def test_the_arrays_of_a_batch_are_on_the_heap_where_they_are_large():
    large, small = (
        array_entry.batch("f", [ArrayPort("x", (n,))], [ArrayPort("y", (3,)), ArrayPort("z", (n,))], 8)
        for n in (9000, 9)
    )
    assert large.count("@malloc") == large.count("@free") == 2
    assert "@malloc" not in small
    assert stack_array.stack_need(large) == 3 * 8 * 8


def test_the_workspace_does_not_grow_with_the_length(monkeypatch):
    monkeypatch.setattr(split, "LONGEST_FUNCTION", 100)
    sizes = []
    for times in (50, 500):
        routine = Routine(lambda x, times=times: long(x, times), [(N,)], "long")
        sizes.append(split.split(routine.graph, [], 1, ()).size)
    assert sizes[0] == sizes[1]


def test_inputs_that_are_one_for_all_lanes_stay_so(monkeypatch):
    def outputs(length):
        monkeypatch.setattr(split, "LONGEST_FUNCTION", length)
        called = Routine(lambda c: long(c, 1), [(2,)], "called")
        routine = Routine(lambda x, c: long(x) * called(c) + long(c), [(2,), (2,)], "grown", uniform=[1])
        out = np.empty((2, LANES))
        run(routine, LANES, random(2, LANES), random(2), out)
        return out

    same(outputs(30), outputs(ONE_FUNCTION))


def test_short_graphs_stay_whole(monkeypatch):
    f = compiled(monkeypatch, split.LONGEST_FUNCTION, lambda: lambda x: long(x, 5), [N], parts=False)
    assert f.routine.definition(1).count("define") == 1


def test_parts_are_cut_where_few_values_are_needed_on_both_sides(monkeypatch):
    """Sums of many products, one after the other: between two of them one value goes on."""
    monkeypatch.setattr(split, "LONGEST_FUNCTION", 150)

    def sums(x):
        y = x[0]
        for n in range(1, 21):
            y = ops.sum([ops.sqrt(y + (k + n / 32) * x[1]) for k in range(1, 15)])
        return y

    whole = split.split(Routine(sums, [(2,)], "sums").graph, [], 1, ())
    stored = [sum(task[0] == "STORE" for task in part.tasks) for part in whole.parts]
    assert len(stored) > 3
    assert set(stored) == {1}
