"""Adjoints of routines equal central differences: nested calls, calls under a condition, symbolic parameters."""

import numpy as np
import pytest

from cosim.core import ops
from cosim.core.compile import ArrayPort, Routine, compile
from cosim.core.compile.adjoint import Differentiation, tape_sizes
from cosim.core.compile.routine import call_when
from cosim.core.compile.row_lookup import RowLookup
from cosim.core.compile.trace import SymbolicParameters
from cosim.core.compile.while_loop import repeated_while
from cosim.core.errors import CompileError


def compiled(routine):
    return compile(routine, [ArrayPort(f"a{k}", shape) for k, shape in enumerate(routine.shapes)])


def as_tuple(result):
    return result if isinstance(result, tuple) else (result,)


def assert_equal_to_differences(routine, points, wrt, seeded, numbers=()):
    """Of all elements of the inputs `wrt`, for random seeds."""
    derive, rng = Differentiation(), np.random.default_rng(3)
    taped, adjoint = compiled(derive.taped(routine)), compiled(derive.adjoint(routine, wrt, seeded))
    flat = [np.reshape(p, -1).astype(float) for p in points]
    extra = [np.asarray(numbers, dtype=float)] if len(numbers) else []
    results = as_tuple(taped(*flat, *extra))
    count = len(routine.output_shapes)
    outputs, tape = results[:count], results[count:]
    assert [len(part) for part in tape] == tape_sizes(routine)
    seeds = [rng.normal(size=outputs[k].shape) for k in seeded]
    found = as_tuple(adjoint(*flat, *extra, *tape, *seeds))

    def goal(arguments):
        values = as_tuple(taped(*arguments))
        return sum(seed @ values[k] for seed, k in zip(seeds, seeded, strict=True))

    everything = [*flat, *extra]
    for which, derivative in zip(wrt, found, strict=True):
        for i in range(len(derivative)):
            values = []
            for step in (1e-5, -1e-5):
                moved = [a.copy() for a in everything]
                moved[which][i] += step
                values.append(goal(moved))
            assert derivative[i] == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-7, abs=1e-8)


def inner(x, y):
    return ops.array([x[0] * y[1] + ops.sin(x[1]), ops.sqrt(1.0 + x[0] ** 2) / (2.0 + y[0])]), x[0] * y[0] * y[1]


INNER = Routine(inner, [(2,), (2,)], "inner")


def outer(x, y, z):
    a, b = INNER(x, y * z)
    c, d = INNER(ops.array([b, a[0]]), a)
    return c * d, ops.array([a[1] * z + x[1]])


def test_calls_in_calls():
    routine = Routine(outer, [(2,), (2,), ()], "outer")
    assert tape_sizes(routine) == [2, 1, 2, 1]
    assert_equal_to_differences(routine, [[0.3, -0.7], [1.1, 0.4], 0.8], [0, 1, 2], [0, 1])


def test_a_subset_of_inputs_and_outputs():
    routine = Routine(outer, [(2,), (2,), ()], "outer")
    assert_equal_to_differences(routine, [[0.3, -0.7], [1.1, 0.4], 0.8], [2], [1])


def test_deeper_calls_are_on_the_tape():
    middle = Routine(outer, [(2,), (2,), ()], "middle")

    def top(x, z):
        first, second = middle(x, x + z, z)
        return first * second[0]

    routine = Routine(top, [(2,), ()], "top")
    assert tape_sizes(routine) == [2, 1, 2, 1, 2, 1]
    assert_equal_to_differences(routine, [[0.3, -0.7], 0.8], [0, 1], [0])


@pytest.mark.parametrize("switch", [1.0, -1.0])
def test_a_call_under_a_condition(switch):
    def conditional(s, x, y):
        a, b = call_when(s > 0.0, INNER, (x, y), (ops.array([x[0] ** 2, y[0]]), x[1] * 3.0))
        return a * b

    routine = Routine(conditional, [(), (2,), (2,)], "conditional")
    assert_equal_to_differences(routine, [switch, [0.3, -0.7], [1.1, 0.4]], [1, 2], [0])


def test_symbolic_parameters_are_the_last_input():
    numbers = SymbolicParameters(2)

    def with_numbers(x):
        return INNER(x * numbers.symbols[0], ops.array([x[1], numbers.symbols[1]]))[0]

    routine = Routine(with_numbers, [(2,)], "with_numbers")
    assert_equal_to_differences(routine, [[0.3, -0.7]], [0, 1], [0], numbers=[1.3, -0.4])


def test_adjoints_are_derived_once():
    derive, routine = Differentiation(), Routine(outer, [(2,), (2,), ()], "outer")
    assert derive.adjoint(routine, [0], [0]) is derive.adjoint(routine, [0], [0])
    assert derive.taped(routine) is derive.taped(routine)


def newton(z, a, b):
    """One iteration for z³ + a z = b, with its own routine."""
    value, slope = CUBIC(z[1:], a), 3.0 * z[1] * z[1] + a[0]
    change = (b[0] - value[0]) / slope
    return ops.array([z[0] + 1.0, z[1] + change]), ops.where(ops.abs(change) > 1e-7, 1.0, 0.0)


CUBIC = Routine(lambda z, a: ops.array([z[0] ** 3 + a[0] * z[0]]), [(1,), (1,)], "cubic")


@pytest.mark.parametrize("parametrised", [False, True])
def test_a_loop_that_converges_has_the_derivative_of_its_solution(parametrised):
    """dz/db = 1 / (3 z² + a), dz/da = −z dz/db, and 0 by the first guess."""
    numbers = SymbolicParameters(1)

    def body(z, a, b):
        return newton(z, a * (numbers.symbols[0] if parametrised else 1.0), b)

    loop = repeated_while(body, [(2,), (1,), (1,)], "root", 50, True, converges=True)
    routine = Routine(lambda z, a, b: ops.sin(loop(z, a * 1.5, b)[0][1:]), [(2,), (1,), (1,)], "sine_of_root")
    wrt, extra = ([0, 1, 2, 3], [1.2]) if parametrised else ([0, 1, 2], [])
    points = [[0.0, 1.0], [0.7], [2.0]]
    assert_equal_to_differences(routine, points, wrt, [0], numbers=extra)
    derive, slope = Differentiation(), 1.5 * 0.7 * (extra or [1.0])[0]
    z = np.roots([1.0, 0.0, slope, -2.0])
    z = float(z[np.isreal(z)][0].real)
    tape = as_tuple(compiled(derive.taped(routine))(*map(np.array, points), *map(np.atleast_1d, extra)))[1:]
    adjoint = compiled(derive.adjoint(routine, [2], [0]))
    found = adjoint(*map(np.array, points), *map(np.atleast_1d, extra), *tape, np.ones(1))
    assert np.ravel(found)[0] == pytest.approx(np.cos(z) / (3.0 * z * z + slope), rel=1e-9)


def test_a_loop_has_no_derivative():
    loop = repeated_while(lambda x: (x * 0.5, ops.where(x[0] > 1.0, 1.0, 0.0)), [(1,)], "halve", 50, True)
    routine = Routine(lambda x: loop(x)[0], [(1,)], "halved")
    with pytest.raises(CompileError, match="'halve_repeated' is a loop and has no expression"):
        Differentiation().adjoint(routine, [0], [0])


def test_a_search_in_a_table_is_constant_between_its_rows():
    table = RowLookup(np.array([0.0, 1.0]), np.array([[2.0], [3.0]]))
    routine = Routine(lambda t, x: table(t)[0] * x, [(), ()], "looked_up")
    assert_equal_to_differences(routine, [1.5, 0.2], [0, 1], [0])
