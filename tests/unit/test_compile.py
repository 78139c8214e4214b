"""Machine code computes what Python computes, takes and refuses the same arrays, and is kept on disk."""

import gc
import itertools
import math
import sys
import weakref
from decimal import Decimal, localcontext
from fractions import Fraction

import casadi
import numpy as np
import pytest

from cosim import ops
from cosim.compile import Compiled, Interpreted, Port, Routine, compile, emit, operations
from cosim.compile.jit import vector_lanes
from cosim.compile.mathlib import REDUCIBLE
from cosim.errors import CompileError

LANES = vector_lanes()
LENGTHS = sorted({0, 1, 2, LANES - 1, LANES, LANES + 1, 3 * LANES + 2})
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nan)


@pytest.fixture(autouse=True)
def machine_code(monkeypatch):
    """The environment has no say in these tests."""
    monkeypatch.delenv("COSIM_INTERPRET", raising=False)


def pair(x, y):
    return x + y, x * y


def pair_code(interpret=False):
    return compile(pair, [Port("x", (3,)), Port("y", (3,))], interpret=interpret)


def random(*shape):
    return np.random.default_rng(0).uniform(-3.0, 3.0, shape)


def line(function, offset=0):
    """file:line of a line of a function, as messages have it."""
    return f"{__file__}:{function.__code__.co_firstlineno + offset}"


# --- operations -----------------------------------------------------------------------------------


def by_element(function):
    """A function of Python's math on arrays; nan where it raises for arguments outside its domain."""

    def safe(*arguments):
        try:
            return function(*arguments)
        except ValueError:
            return math.nan

    return np.vectorize(safe, otypes=[float])


# operation -> (arguments, what makes it in casadi, the same in numpy)
OPERATIONS = {
    "ADD": (2, lambda x, y: x + y, np.add),
    "SUB": (2, lambda x, y: x - y, np.subtract),
    "MUL": (2, lambda x, y: x * y, np.multiply),
    "DIV": (2, lambda x, y: x / y, np.divide),
    "SQRT": (1, casadi.sqrt, np.sqrt),
    "FABS": (1, casadi.fabs, np.abs),
    "FLOOR": (1, casadi.floor, np.floor),
    "CEIL": (1, casadi.ceil, np.ceil),
    "COPYSIGN": (2, casadi.copysign, np.copysign),
    "FMIN": (2, casadi.fmin, np.fmin),
    "FMAX": (2, casadi.fmax, np.fmax),
    "EXP": (1, casadi.exp, np.exp),
    "LOG": (1, casadi.log, np.log),
    "POW": (2, lambda x, y: x**y, np.power),
    "CONSTPOW": (1, lambda x: x**3.5, lambda x: np.power(x, 3.5)),
    "TAN": (1, casadi.tan, np.tan),
    "ASIN": (1, casadi.asin, np.arcsin),
    "ACOS": (1, casadi.acos, np.arccos),
    "ATAN": (1, casadi.atan, np.arctan),
    "ATAN2": (2, casadi.atan2, np.arctan2),
    "SINH": (1, casadi.sinh, np.sinh),
    "COSH": (1, casadi.cosh, np.cosh),
    "TANH": (1, casadi.tanh, np.tanh),
    "ASINH": (1, casadi.asinh, np.arcsinh),
    "ACOSH": (1, casadi.acosh, np.arccosh),
    "ATANH": (1, casadi.atanh, np.arctanh),
    "ERF": (1, casadi.erf, by_element(math.erf)),
    "LOG1P": (1, casadi.log1p, np.log1p),
    "EXPM1": (1, casadi.expm1, np.expm1),
    "HYPOT": (2, casadi.hypot, np.hypot),
    "FMOD": (2, casadi.fmod, np.fmod),
    "REMAINDER": (2, casadi.remainder, by_element(math.remainder)),
    "LT": (2, lambda x, y: x < y, np.less),
    "LE": (2, lambda x, y: x <= y, np.less_equal),
    "EQ": (2, lambda x, y: x == y, np.equal),
    "NE": (2, lambda x, y: x != y, np.not_equal),
    "AND": (2, casadi.logic_and, np.logical_and),
    "OR": (2, casadi.logic_or, np.logical_or),
    "NOT": (1, casadi.logic_not, np.logical_not),
    "NEG": (1, lambda x: -x, np.negative),
    "SIGN": (1, casadi.sign, np.sign),
    "SIN": (1, casadi.sin, np.sin),
    "COS": (1, casadi.cos, np.cos),
    "SELECT": (2, lambda x, y: casadi.if_else(x, y, y + 1), lambda x, y: np.where(x, y, y + 1)),
    "IF_ELSE_ZERO": (2, lambda x, y: casadi.if_else(x, y, 0), lambda x, y: np.where(x, y, 0.0)),
    "SQ": (1, lambda x: x**2, np.square),
    "TWICE": (1, lambda x: x + x, lambda x: 2 * x),
    "INV": (1, lambda x: 1 / x, np.reciprocal),
}
TAKEN_APART = {"SQ": "MUL", "TWICE": "ADD", "INV": "DIV"}  # casadi's shorthands


def test_every_operation_of_the_table_is_tested():
    tables = [operations.INSTRUCTIONS, operations.INTRINSICS, operations.LIBM]
    tables += [operations.COMPARISONS, operations.LOGIC]
    written_out = {"NEG", "SIGN", "NOT", "IF_ELSE_ZERO", "SELECT", "SIN", "COS", *TAKEN_APART}
    assert set().union(*tables, written_out) == set(OPERATIONS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(name):
    """Single states and lanes, on random numbers and on every pair of special ones."""
    arity, symbolic, numeric = OPERATIONS[name]
    f = compile(lambda *xs: symbolic(*(x[()] for x in xs)), [Port(f"x{k}", ()) for k in range(arity)])
    assert TAKEN_APART.get(name, name) in [node[0] for node in f.routine.graph.nodes]
    values = np.column_stack([np.transpose([*itertools.product(SPECIAL, repeat=arity)]), random(arity, 40)])
    with np.errstate(all="ignore"):
        expected = np.asarray(numeric(*values), dtype=float)
    together = f(*values)
    np.testing.assert_allclose(together, expected, rtol=2e-15, atol=0)
    np.testing.assert_array_equal([f(*column) for column in values.T], together)


def test_sums_and_products_are_the_same_alone_and_in_lanes():
    """Where the code fuses a product with a sum, it does so for single states and for batches."""
    expressions = {
        "a*b + c": lambda a, b, c, d: a * b + c,
        "a*b - c*d": lambda a, b, c, d: a * b - c * d,
        "a*b + (c > 0 ? d : 0)": lambda a, b, c, d: a * b + ops.where(c > 0, d, 0.0),
        "a*b - (c > 0 ? d : 0)": lambda a, b, c, d: a * b - ops.where(c > 0, d, 0.0),
        "a - b*(c > 0 ? d : 1)": lambda a, b, c, d: a - b * ops.where(c > 0, d, 1.0),
    }
    values = random(4, 200)
    for text, expression in expressions.items():
        f = compile(expression, [Port(name, ()) for name in "abcd"])
        np.testing.assert_array_equal(f(*values), [f(*column) for column in values.T], text)


# --- sine and cosine ------------------------------------------------------------------------------


def half_pi():
    """π/2 to 70 digits by Machin's formula: π/4 = 4 atan(1/5) − atan(1/239)."""

    def atan_of_one_over(n):
        return sum(Decimal(-1) ** k / ((2 * k + 1) * Decimal(n) ** (2 * k + 1)) for k in range(60))

    with localcontext(prec=80):
        return 8 * atan_of_one_over(5) - 2 * atan_of_one_over(239)


def exact(x, right_angle):
    """(sin x, cos x) by their series, after taking away right angles."""
    with localcontext(prec=80):
        turns = int((Decimal(x) / right_angle).to_integral_value())
        r = Decimal(x) - turns * right_angle
        sine = sum((-1) ** k * r ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(15))
        cosine = sum((-1) ** k * r ** (2 * k) / math.factorial(2 * k) for k in range(15))
        return [(sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine)][turns % 4]


def nearest_to_right_angles(right_angle):
    """Numbers m 2^e < 2³¹ that come close to multiples of π/2: convergents of 2^e / (π/2)."""
    for exponent in range(-52, -21):
        rest, (p, q), (p_old, q_old) = Fraction(2) ** exponent / Fraction(right_angle), (1, 0), (0, 1)
        while q < 2**53 and rest:
            x = q * 2.0**exponent
            if 1.0 < x < REDUCIBLE:
                yield x
            whole = math.floor(rest)
            (p, q), (p_old, q_old) = (whole * p + p_old, whole * q + q_old), (p, q)
            rest = 1 / (rest - whole) if rest != whole else 0


def test_sine_and_cosine_are_exact_to_the_last_digit():
    generator, right_angle = np.random.default_rng(0), half_pi()
    multiples = [float(int(k) * right_angle) for k in [*range(1, 60), *generator.integers(60, 6 * 10**8, 400)]]
    sizes = 10.0 ** generator.uniform(-9.0, 9.0, 1000)
    ranges = {
        "a turn or two": generator.uniform(-10.0, 10.0, 2000),
        "all sizes": sizes * generator.choice([-1.0, 1.0], 1000),
        "at right angles": np.concatenate([multiples, np.nextafter(multiples, 0.0), np.add(multiples, 1e-9)]),
        "closest to right angles": np.array([*nearest_to_right_angles(right_angle)]),
        "tiny": np.array([5e-324, -1e-310, 2.3e-308, 1e-200, 1e-20, 2.0**-27, -(2.0**-26), 1e-8]),
        "where the C library takes over": np.linspace(REDUCIBLE - 8.0, REDUCIBLE + 8.0, 33),
        "far": 10.0 ** generator.uniform(9.4, 20.0, 200),
    }
    f = compile(lambda x: (ops.sin(x), ops.cos(x)), [Port("x", ())])
    for name, x in ranges.items():
        assert x.size
        together = np.transpose(f(x))
        np.testing.assert_array_equal(together, [f(value) for value in x], name)
        for value, found in zip(x.tolist(), together.tolist(), strict=True):
            for one, wanted in zip(found, exact(value, right_angle), strict=True):
                ulp = Decimal(math.ulp(float(wanted)))
                assert abs(Decimal(one) - wanted) < Decimal("1.5") * ulp, (name, value)


def test_one_angle_that_is_far_or_not_finite_does_not_disturb_its_neighbours():
    x = np.linspace(-3.0, 3.0, 3 * LANES)
    f = compile(lambda x: (ops.sin(x), ops.cos(x)), [Port("x", ())])
    plain = np.transpose(f(x))
    for odd in (1e12, math.inf, -math.inf, math.nan):
        mixed = x.copy()
        mixed[:: LANES + 1] = odd
        found = np.transpose(f(mixed))
        others = mixed == x
        np.testing.assert_allclose(found[others], plain[others], rtol=2e-16)
        expected = [math.sin(odd), math.cos(odd)] if math.isfinite(odd) else [math.nan, math.nan]
        np.testing.assert_allclose(found[~others], np.tile(expected, ((~others).sum(), 1)), rtol=2e-16)


# --- what cannot be compiled ----------------------------------------------------------------------


def compile_error(function, *shapes):
    with pytest.raises(CompileError) as caught:
        compile(function, [Port(f"x{k}", shape) for k, shape in enumerate(shapes or [(2,)])])
    return str(caught.value)


def test_an_operation_without_machine_code_is_named_with_its_place():
    def inverse_error(x):
        return casadi.erfinv(x[0][()])

    assert compile_error(inverse_error) == (
        f"{line(inverse_error)} {inverse_error.__qualname__}: 'inverse_error' uses the operation erfinv, which has"
        " no machine code here; write it with the functions of cosim.ops"
    )


def by_if(x):
    return x if x[0] > 0 else -x


def by_and(x):
    return x[0] > 0 and x[1] > 0


def by_max(x):
    return max(x[0], x[1])


def by_chain(x):
    return 0 < x[0] < 1


@pytest.mark.parametrize("function", [by_if, by_and, by_max, by_chain])
def test_a_choice_by_python_is_told_to_use_where(function):
    assert compile_error(function) == (
        f"{line(function, 1)}: a Python `if`, `and`, `min` or comparison chain on a traced value; use cosim.ops.where"
    )


def test_any_other_error_of_the_function_is_told_with_its_place():
    def wrong(x):
        return x @ np.ones(3)

    message = compile_error(wrong)
    assert message.startswith(f"{line(wrong, 1)}: cannot be traced: ValueError: ")


def test_symbols_from_elsewhere_are_named():
    foreign = casadi.SX.sym("foreign")

    def borrowing(x):
        return x[0] + foreign

    where = f"{line(borrowing)} {borrowing.__qualname__}"
    assert compile_error(borrowing) == (
        f"{where}: 'borrowing' uses symbols that are not among its inputs: ['foreign']"
    )


def into_a_float(x):
    return math.sin(x[0])


def into_float_elements(x):
    result = np.zeros(2)
    result[0] = x[0]
    return result


def into_a_float_array(x):
    return np.array(x, dtype=float)


@pytest.mark.parametrize("function", [into_a_float, into_float_elements, into_a_float_array])
def test_a_symbol_never_becomes_a_number(function):
    assert compile_error(function).startswith(line(function)[: -len(line(function).rsplit(":")[-1])])


@pytest.mark.parametrize(
    "function", [lambda x: None, lambda x: "text", lambda x: casadi.vertcat(x[0][()], x[1][()])]
)
def test_what_is_no_array_is_not_returned(function):
    compile_error(function)


def test_declared_outputs_must_be_the_traced_ones():
    with pytest.raises(CompileError) as caught:
        compile(pair, [Port("x", (3,)), Port("y", (3,))], outputs=[Port("sum", (3,)), Port("product", (2,))])
    assert str(caught.value) == "'pair' returns arrays of shapes ((3,), (3,)), declared are ((3,), (2,))"


# --- arrays in ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "späte Kraft", "a-b c/d", "1st", ""])
def test_a_function_may_have_any_name(name):
    assert compile(lambda x: x + 1.0, [Port("x", ())], name)(1.0) == 2.0


def strided(x):
    return np.repeat(x, 2, axis=-1)[..., ::2]


def misaligned(x):
    raw = np.zeros(x.nbytes + 1, dtype=np.uint8)
    view = raw[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    return view


FORMS = {
    "list": np.ndarray.tolist,
    "float32": lambda x: x.astype(np.float32),
    "integers": lambda x: x.astype(np.int32),
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "strided": strided,
    "misaligned": misaligned,
    "Fortran order": np.asfortranarray,
    "of a subclass": lambda x: x.view(np.recarray),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(3,), (5, 3)])
@pytest.mark.parametrize("interpret", [False, True])
def test_arrays_of_every_form_are_converted(form, shape, interpret):
    f = pair_code(interpret)
    x, y = np.round(random(2, *shape))
    expected, out = pair(x, y), (np.empty(shape), np.empty(shape))
    for found in (f(FORMS[form](x), y), f.native(x, FORMS[form](y)), f.native(FORMS[form](x), y, out=out)):
        np.testing.assert_array_equal(found, expected)


def test_truth_values_come_as_booleans_or_whatever_stands_for_them():
    f = compile(lambda x, on: ops.where(on, x, -1.0), [Port("x", (2,)), Port("on", (2,), boolean=True)])
    x, out = np.array([3.0, 4.0]), np.empty(2)
    for on in (np.array([True, False]), [True, False], [1, 0], np.array([2.0, 0.0])):
        np.testing.assert_array_equal(f.native(x, on, out=out), [3.0, -1.0])
    many = np.arange(2 * LENGTHS[-1]).reshape(-1, 2) % 3 == 0
    np.testing.assert_array_equal(f(x, many), np.where(many, x, -1.0))


@pytest.mark.parametrize("k", LENGTHS)
@pytest.mark.parametrize("interpret", [False, True])
def test_batches_of_any_length(k, interpret):
    f = pair_code(interpret)
    x, y = random(2, k, 3)
    out = (np.full((k, 3), np.nan), np.full((k, 3), np.nan))
    assert f.native(x, y, out=out) is out
    for found in (out, f(x, y)):
        np.testing.assert_array_equal(found, pair(x, y))
    one = random(3)
    np.testing.assert_array_equal(f(one, y), pair(one, y))
    np.testing.assert_array_equal(f.native(x, one, out), pair(x, one))


@pytest.mark.parametrize("interpret", [False, True])
def test_numbers_are_arrays_without_dimension(interpret):
    f = compile(lambda x, y: x * y + 1.0, [Port("x", ()), Port("y", ())], interpret=interpret)
    assert (f(2.0, 3.0).shape, float(f(2.0, 3.0))) == ((), 7.0)
    np.testing.assert_array_equal(f([1.0, 2.0], 3.0), [4.0, 7.0])


def test_arrays_of_no_elements():
    f = compile(lambda x: x, [Port("x", (0,))])
    assert f.native(np.zeros(0), np.zeros(0)).shape == (0,)
    assert f.native(np.zeros((3, 0)), np.zeros((3, 0))).shape == (3, 0)


EMPTY = np.empty(3)
MISFITS = [
    ((), {}, TypeError, "pair(x, y) takes 2 arrays, got 0"),
    ((EMPTY,), {}, TypeError, "pair(x, y) takes 2 arrays, got 1"),
    ((EMPTY,) * 4, {}, TypeError, "pair(x, y) takes 2 arrays, got 4"),
    ((EMPTY, ["a"] * 3), {}, TypeError, "pair: y is not an array of numbers: could not convert string to float: 'a'"),
    ((np.empty(2), EMPTY), {}, ValueError, "pair: x has shape (2,); it must be (3,), or (k, 3) for a batch of k"),
    ((EMPTY, 1.0), {}, ValueError, "pair: y has shape (); it must be (3,), or (k, 3) for a batch of k"),
    ((EMPTY, np.empty((1, 1, 3))), {}, ValueError, "pair: y has shape (1, 1, 3); it must be (3,), or (k, 3) for a batch of k"),
    ((np.empty((2, 3)), np.empty((4, 3))), {}, ValueError, "pair: batches of different lengths [2, 4]"),
    ((EMPTY, EMPTY), {"out": (EMPTY,)}, ValueError, "pair: out must be a tuple of 2 arrays"),
]
