"""The error bounds that `cosim.core.compile.mathlib` states for sine and cosine, against mpmath; both at once;
divisions."""

import math
import platform
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from cosim.core import ops
from cosim.core.compile import compile, emit, mathlib
from cosim.core.compile.jacobian import Jacobian
from cosim.core.compile.mathlib import MAX_ULP, MAX_ULP_REDUCED, REDUCIBLE, TOGETHER
from cosim.core.compile.object_code import object_code
from cosim.core.compile.operations import LEAVES
from cosim.core.compile.routine import Routine
from cosim.core.compile.split import LONGEST_FUNCTION
from cosim.core.compile.targets import targets
from tests.compile.calls import ports
from tests.kit.linked_code import linked

# arguments with the largest errors found: of sine and of cosine, without and with range reduction
WORST_REDUCED = "0x1.6ff63794cd228p-1", "0x1.89ba89b905429p-1"
WORST = {
    "sin": ("0x1.9de94547e613ap+19", "0x1.6664a118a08dcp+9"),
    "cos": ("0x1.2bcbff3c839a7p+20", "0x1.4f1cad14201c9p+9"),
}
QUARTER = math.pi / 4
LOOP = Path(__file__).with_name("sines.ll").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def error():
    """(n, 2): the errors of sine and cosine at n arguments, in units in the last place of the true value."""
    f = compile(lambda x: (ops.sin(x), ops.cos(x)), ports(x=()))

    def errors(x):
        found = []
        with mpmath.workprec(200):
            for value, *pair in zip(x.tolist(), *(part.tolist() for part in f(x)), strict=True):
                true: list[Any] = [fn(mpmath.mpf(value)) for fn in (mpmath.sin, mpmath.cos)]
                found.append([float(abs(a - b)) / math.ulp(float(b)) for a, b in zip(pair, true, strict=True)])
        return np.array(found)

    return errors


def test_the_worst_arguments_found_are_within_the_bounds_and_reach_them(error):
    reduced = error(np.array([float.fromhex(x) for x in WORST_REDUCED]))
    assert 0.95 * MAX_ULP_REDUCED < reduced.max() <= MAX_ULP_REDUCED
    for column, name in enumerate(("sin", "cos")):
        worst = error(np.array([float.fromhex(x) for x in WORST[name]]))[:, column]
        assert 0.98 * MAX_ULP < worst.max() <= MAX_ULP, name


def test_random_arguments_are_within_the_bounds(error):
    random = np.random.default_rng(0)
    assert error(random.uniform(-QUARTER, QUARTER, 1000)).max() <= MAX_ULP_REDUCED
    right_angles = random.integers(1, int(REDUCIBLE / 1.6), 1000)
    with mpmath.workprec(120):
        # what is left after the reduction, where its rounding error counts most, and close to none
        left = np.concatenate([random.uniform(0.5, 0.524, 500), random.uniform(-1e-9, 1e-9, 500)])
        near = np.array([float(int(k) * mpmath.pi / 2 + r) for k, r in zip(right_angles, left, strict=True)])
    ranges = {
        "a turn": random.uniform(-2 * math.pi, 2 * math.pi, 500),
        "all sizes": 10.0 ** random.uniform(-300.0, math.log10(REDUCIBLE), 500),
        "all of the range": random.uniform(-REDUCIBLE, REDUCIBLE, 500),
        "beside right angles": near,
        "subnormal": random.integers(1, 2**52, 200).view(np.float64),
    }
    for name, x in ranges.items():
        assert error(x).max() <= MAX_ULP, name


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is run on x86-64")
def test_the_bits_do_not_depend_on_fused_multiplications():
    fused = targets()["x86_64"]
    arguments = np.random.default_rng(1).uniform(-REDUCIBLE, REDUCIBLE, 100_000)
    arguments[1000:2000] /= REDUCIBLE
    found = []
    for target in (fused, fused._replace(cpu="x86-64-v2")):
        loop = linked([object_code(emit.declarations({1}) + mathlib.sincos(1) + LOOP, target)], "sines")
        pair = np.empty((2, len(arguments)))
        loop(arguments.ctypes.data, *(values.ctypes.data for values in pair), len(arguments))
        found.append(pair)
    assert (found[0].view(np.int64) == found[1].view(np.int64)).all()


# --- sine and cosine together ---

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


@pytest.mark.parametrize("length", [1, LONGEST_FUNCTION])
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


# --- divisions ---


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
