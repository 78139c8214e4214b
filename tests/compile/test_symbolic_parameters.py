"""Numbers that code takes from its caller: hidden arguments of the routines that use them, and of their callers."""

import numpy as np
import pytest

from cosim.core import ops
from cosim.core.compile.jacobian import Jacobian
from cosim.core.compile.routine import Routine, call_when
from cosim.core.compile.trace import SymbolicParameters
from cosim.core.compile.while_loop import WhileLoop
from tests.compile.calls import run


def native(routine, *arrays, lanes=1):
    """The outputs of a routine's machine code; arrays in the order of its pointers."""
    outputs = [np.empty(size if lanes == 1 else (size, lanes)) for size in routine.output_sizes]
    run(routine, lanes, *(np.ascontiguousarray(array, dtype=float) for array in arrays), *outputs)
    return outputs


@pytest.fixture
def numbers():
    return SymbolicParameters(3)


def test_a_routine_that_uses_one_has_them_as_its_last_argument(numbers):
    mass = numbers.symbols[1]
    routine = Routine(lambda x: x * mass + 1.0, [(2,)], "weighed")
    assert routine.shapes == ((2,),)
    assert routine.symbolic_parameters is numbers
    (found,) = native(routine, [1.0, 2.0], [9.0, 10.0, 11.0])
    assert found.tolist() == [11.0, 21.0]


def test_others_do_not(numbers):
    routine = Routine(lambda x: x + 1.0, [(2,)], "plain")
    assert routine.symbolic_parameters is None
    assert native(routine, [1.0, 2.0])[0].tolist() == [2.0, 3.0]


def test_callers_pass_them_on(numbers):
    first, _, last = numbers.symbols
    inner = Routine(lambda x: x * last, [(2,)], "inner")
    body = Routine(lambda x: (x + inner(x), ops.where(x[0] < first, 1.0, 0.0)), [(2,)], "body")
    loop = WhileLoop(body, 50)

    def outer(x):
        grown, count, _ = loop(x)
        kept = call_when(x[1] > 0.0, inner, (grown,), (grown,))
        return kept, count

    routine = Routine(outer, [(2,)], "outer")
    for limit, factor in ((10.0, 1.0), (300.0, 0.5)):
        kept, count = native(routine, [1.0, 2.0], [limit, 0.0, factor])
        x, steps = np.array([1.0, 2.0]), 0
        more = True
        while more:
            more = x[0] < limit
            x, steps = x + factor * x, steps + 1
        np.testing.assert_allclose(kept, factor * x, rtol=1e-15)
        assert count[0] == steps


def test_each_simd_lane_has_its_own(numbers):
    inner = Routine(lambda x: ops.sin(x) * numbers.symbols[0], [(2,)], "inner")
    routine = Routine(lambda x: inner(x) + numbers.symbols[2], [(2,)], "outer")
    rng = np.random.default_rng(0)
    x, values = rng.normal(size=(2, 4)), rng.normal(size=(3, 4))
    (found,) = native(routine, x, values, lanes=4)
    for k in range(4):
        np.testing.assert_array_equal(native(routine, x[:, k], values[:, k])[0], found[:, k])


def test_derivatives_contain_them(numbers):
    slope = Jacobian(lambda x: numbers.symbols[1] * x * x, [(2,)], "slope")
    routine = Routine(lambda x: slope(x), [(2,)], "outer")
    (found,) = native(routine, [3.0, 5.0], [0.0, 2.0, 0.0])
    assert found.reshape(2, 2).tolist() == [[12.0, 0.0], [0.0, 20.0]]


def test_a_function_of_constants_uses_none_of_them():
    symbolic = SymbolicParameters(1)
    routine = Routine(lambda x: np.array([1.0, 2.0]), [(2,)], "constant")
    assert routine.symbolic_parameters is None and symbolic.symbols.shape == (1,)
