"""Programs over arrays: machine code, Python and numpy give the same, in one state and in each lane of a batch."""

import numpy as np
import pytest

from cosim.core import ops
from cosim.core.compile import Routine, compile
from cosim.core.compile.array_program import ArrayProgram
from cosim.core.compile.dense import add_product, invert
from cosim.core.compile.jacobian import Jacobian
from cosim.core.compile.jit import vector_lanes
from cosim.core.errors import CompileError
from tests.compile.calls import ports

LANES = vector_lanes()
ROWS = 2 * LANES + 3
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 12, 13]  # around those of a vector and of what is written out


def inverse(n):
    def program(machine, inputs, outputs):
        machine.copy(outputs[0], inputs[0])
        invert(machine, outputs[0], n)

    return ArrayProgram(program, [(n, n)], [(n, n)], "inverse")


def product(n):
    def program(machine, inputs, outputs):
        machine.fill(outputs[0], 0.0)
        add_product(machine, outputs[0], *inputs)

    return ArrayProgram(program, [(n, n), (n,)], [(n,)], "product")


def sums(n):
    """a·b, x + a·b y − 2 x and Σ i over i < n, of spans that begin at any place."""

    def program(machine, inputs, outputs):
        a, b, x, y = inputs
        dot, combined, total = outputs
        two, step = machine.space(1), machine.space(1)
        machine.fill(two, 2.0)
        machine.fill(step, 1.0)
        machine.dot(dot, a, b)
        machine.copy(combined, x)
        machine.add(combined, [(dot, y)])
        machine.add(combined, [(two, x)], minus=True)
        machine.fill(total, 0.0)
        for i in machine.loop(n):
            for _ in machine.loop(i):
                machine.add(total, [(step, step)])
            for _ in machine.loop(n, i + 1):  # the other way round, and nothing below the start
                machine.add(total, [(step, step)])

    return ArrayProgram(program, [(n,)] * 4, [(), (n,), ()], "sums")


def halvings(most):
    """x is halved while it is above 1, at most so often; then, where it is still above, it becomes −x."""
    halved = Routine(lambda x, high: (x * (1.0 - 0.5 * high), 1.0 * (x * 0.5 > 1.0) * high), [(), ()], "halved")
    above = Routine(lambda x: ops.where(x > 1.0, 1.0, 0.0), [()], "above")
    negative = Routine(lambda x: -x, [()], "negative")

    def program(machine, inputs, outputs):
        (x,), (result, count) = inputs, outputs
        high, other = machine.space(1), machine.space(1)
        machine.copy(result, x)
        machine.fill(count, 0.0)
        machine.call(above, [result], [high])
        for _ in machine.repeat(high, most):
            machine.add(count, [(high, high)])
            machine.call(halved, [result, high], [result, high])
        for _ in machine.when(high):
            machine.call(negative, [result], [other])
            machine.choose(high, result, other)

    return ArrayProgram(program, [()], [(), ()], "halvings")


def both(routine):
    names = ports(**{f"x{k}": shape for k, shape in enumerate(routine.shapes)})
    return [compile(routine, names, interpret=interpret) for interpret in (False, True)]


@pytest.mark.parametrize("n", LENGTHS)
def test_an_inverse_and_a_product(n):
    rng = np.random.default_rng(n)
    J = rng.normal(size=(ROWS, n, n + 2))
    matrices, vectors = J @ np.swapaxes(J, 1, 2), rng.normal(size=(ROWS, n))
    for f in both(inverse(n)):
        found = f(matrices)
        np.testing.assert_allclose(found @ matrices, np.broadcast_to(np.eye(n), found.shape), atol=1e-9)
        np.testing.assert_array_equal(found, [f(matrix) for matrix in matrices])
    for f in both(product(n)):
        np.testing.assert_allclose(f(matrices, vectors), np.einsum("kij,kj->ki", matrices, vectors), atol=1e-12)


@pytest.mark.parametrize("n", LENGTHS)
def test_sums_of_rows_and_nested_loops(n):
    a, b, x, y = np.random.default_rng(n).normal(size=(4, ROWS, n))
    for f in both(sums(n)):
        found = f(a, b, x, y)
        dots = np.einsum("ki,ki->k", a, b)
        for value, expected in zip(found, (dots, dots[:, None] * y - x, np.full(ROWS, n * (n - 1.0))), strict=True):
            np.testing.assert_allclose(value, expected, atol=1e-13)
        for row in range(ROWS):
            for value, single in zip(found, f(a[row], b[row], x[row], y[row]), strict=True):
                np.testing.assert_array_equal(value[row], single)


@pytest.mark.parametrize("most", [0, 1, 5, 100])
def test_each_lane_repeats_as_often_as_it_needs(most):
    starts = 1.5 ** np.arange(ROWS) - 1.0

    def by_hand(x):
        count = 0
        while x > 1.0 and count < most:
            x, count = 0.5 * x, count + 1
        return (-x if x > 1.0 else x), float(count)

    for f in both(halvings(most)):
        for found in (f(starts), map(np.array, zip(*map(f, starts), strict=True))):
            for value, expected in zip(found, zip(*map(by_hand, starts), strict=True), strict=True):
                np.testing.assert_array_equal(value, expected)


def test_an_output_may_lie_on_an_input():
    f, _ = both(inverse(5))
    given = np.eye(5) * 4.0
    np.testing.assert_array_equal(f(given, out=given), np.eye(5) / 4.0)


def test_the_code_does_not_grow_with_the_arrays():
    for program in (inverse, product, sums):
        assert len({program(n).definition(1).count("\n") for n in (16, 32, 64)}) == 1


def test_its_symbol_tells_programs_apart():
    assert inverse(4).symbol == inverse(4).symbol != inverse(5).symbol
    assert [routine.name for routine in halvings(3).callees] == ["above", "halved", "negative"]


def test_it_has_no_expression(said):
    with pytest.raises(CompileError) as caught:
        Jacobian(inverse(2), [(2, 2)], "slope")
    said(str(caught.value).split(": ", 1)[1])
