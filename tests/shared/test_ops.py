"""Every operation gives numpy's values: on numbers, in machine code for one state and in SIMD lanes."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import casadi
import numpy as np
import pytest

from cosim.core import ops
from cosim.core.compile import ArrayPort, Compiled, compile, operations
from cosim.core.compile.jit import vector_lanes
from cosim.core.compile.mathlib import REDUCIBLE

LANES = vector_lanes()
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nan)


@pytest.fixture(autouse=True)
def machine_code(monkeypatch):
    """The environment has no say in these tests."""
    monkeypatch.delenv("COSIM_INTERPRET", raising=False)


def random(*shape):
    return np.random.default_rng(0).uniform(-3.0, 3.0, shape)


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
    tables = [operations.INSTRUCTIONS, operations.INTRINSICS, operations.SELECTIONS, operations.LIBM]
    tables += [operations.COMPARISONS, operations.LOGIC]
    written_out = {"NEG", "SIGN", "NOT", "IF_ELSE_ZERO", "SELECT", "SIN", "COS", *TAKEN_APART}
    assert set().union(*tables, written_out) == set(OPERATIONS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(name):
    """Single states and lanes, on random numbers and on every pair of special ones."""
    arity, symbolic, numeric = OPERATIONS[name]
    f = compile(lambda *xs: symbolic(*(x[()] for x in xs)), [ArrayPort(f"x{k}", ()) for k in range(arity)])
    assert isinstance(f, Compiled)
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
        f = compile(expression, [ArrayPort(name, ()) for name in "abcd"])
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
    multiples = [float(int(k) * right_angle) for k in [*range(1, 60), *generator.integers(60, 6 * 10**8, 120)]]
    sizes = 10.0 ** generator.uniform(-9.0, 9.0, 300)
    ranges = {
        "a turn or two": generator.uniform(-10.0, 10.0, 500),
        "all sizes": sizes * generator.choice([-1.0, 1.0], 300),
        "at right angles": np.concatenate([multiples, np.nextafter(multiples, 0.0), np.add(multiples, 1e-9)]),
        "closest to right angles": np.array([*nearest_to_right_angles(right_angle)]),
        "tiny": np.array([5e-324, -1e-310, 2.3e-308, 1e-200, 1e-20, 2.0**-27, -(2.0**-26), 1e-8]),
        "where the C library takes over": np.linspace(REDUCIBLE - 8.0, REDUCIBLE + 8.0, 33),
        "far": 10.0 ** generator.uniform(9.4, 20.0, 60),
    }
    f = compile(lambda x: (ops.sin(x), ops.cos(x)), [ArrayPort("x", ())])
    for name, x in ranges.items():
        assert x.size
        together = np.transpose(f(x))
        np.testing.assert_array_equal(together, [f(value) for value in x], name)
        for value, found in zip(x.tolist(), together.tolist(), strict=True):
            for one, wanted in zip(found, exact(value, right_angle), strict=True):
                ulp = Decimal(math.ulp(float(wanted)))
                assert abs(Decimal(one) - wanted) < Decimal("1.5") * ulp, (name, value)


def test_an_angle_that_is_far_or_not_finite_changes_no_bit_of_its_neighbours():
    x = np.linspace(-3.0, 3.0, 3 * LANES)
    f = compile(lambda x: (ops.sin(x), ops.cos(x)), [ArrayPort("x", ())])
    plain = np.transpose(f(x))
    for odd in (1e12, math.inf, -math.inf, math.nan):
        mixed = np.where(np.arange(x.size) % (LANES + 1) == 0, odd, x)
        found = np.transpose(f(mixed))
        expected = [math.sin(odd), math.cos(odd)] if math.isfinite(odd) else [math.nan, math.nan]
        for value, was, now in zip(mixed, plain, found, strict=True):
            np.testing.assert_array_equal(now, expected if value not in x else was)


# --- the functions that blocks use -----------------------------------------------------------------

A, B, MATRIX = np.array([1.0, -2.0, 0.5]), np.array([0.25, 3.0, -1.5]), np.diag([4.0, 5.0, 6.0]) + 0.5

# name -> (function of symbols or numbers, its value written in numpy)
FUNCTIONS = {
    "sin": (lambda a, b: ops.sin(a), np.sin(A)),
    "cos": (lambda a, b: ops.cos(a), np.cos(A)),
    "tan": (lambda a, b: ops.tan(a), np.tan(A)),
    "asin": (lambda a, b: ops.asin(a / 2), np.arcsin(A / 2)),
    "acos": (lambda a, b: ops.acos(a / 2), np.arccos(A / 2)),
    "atan": (lambda a, b: ops.atan(a), np.arctan(A)),
    "atan2": (ops.atan2, np.arctan2(A, B)),
    "sinh": (lambda a, b: ops.sinh(a), np.sinh(A)),
    "cosh": (lambda a, b: ops.cosh(a), np.cosh(A)),
    "tanh": (lambda a, b: ops.tanh(a), np.tanh(A)),
    "exp": (lambda a, b: ops.exp(a), np.exp(A)),
    "log": (lambda a, b: ops.log(a * a), np.log(A * A)),
    "sqrt": (lambda a, b: ops.sqrt(a * a), np.abs(A)),
    "power": (lambda a, b: ops.power(a * a, b), (A * A) ** B),
    "reciprocal": (lambda a, b: b * ops.reciprocal(a * a), B / (A * A)),
    "abs": (lambda a, b: ops.abs(a), np.abs(A)),
    "sign": (lambda a, b: ops.sign(a), np.sign(A)),
    "floor": (lambda a, b: ops.floor(a), np.floor(A)),
    "ceil": (lambda a, b: ops.ceil(a), np.ceil(A)),
    "quantised": (lambda a, b: ops.quantised(a, 0.25), 0.25 * np.floor(A / 0.25 + 0.5)),
    "remainder": (ops.remainder, np.fmod(A, B)),
    "minimum": (ops.minimum, np.minimum(A, B)),
    "maximum": (ops.maximum, np.maximum(A, B)),
    "minimum with a number": (lambda a, b: ops.minimum(a, 0.3), np.minimum(A, 0.3)),
    "repeat": (lambda a, b: ops.repeat(lambda x, y: 0.5 * x + y, 3, a, b), 0.125 * A + 1.75 * B),
    "clip": (lambda a, b: ops.clip(a, -1.0, b), np.minimum(np.maximum(A, -1.0), B)),
    "where": (lambda a, b: ops.where(a > b, a, 2.0 * b), np.where(A > B, A, 2.0 * B)),
    "where by a constant": (lambda a, b: ops.where(np.array([True, False, True]), a, b), [A[0], B[1], A[2]]),
    "smooth_sign": (lambda a, b: ops.smooth_sign(a, 0.1), A / np.sqrt(A * A + 0.01)),
    "logical_and": (lambda a, b: ops.logical_and(a > 0, b > 0), (A > 0) & (B > 0)),
    "logical_or": (lambda a, b: ops.logical_or(a > 0, b > 0), (A > 0) | (B > 0)),
    "logical_not": (lambda a, b: ops.logical_not(a > 0), A <= 0),
    "array": (lambda a, b: ops.array([[a[0], 1.0], [b[1], a[2]]]), [[A[0], 1.0], [B[1], A[2]]]),
    "array of rows": (lambda a, b: ops.array([a, [1, 2, 3], b]), [A, [1, 2, 3], B]),
    "concatenate": (lambda a, b: ops.concatenate([a, np.ones(2), b[0]]), [*A, 1.0, 1.0, B[0]]),
    "set_at": (lambda a, b: ops.set_at(a, [2, 0], b[:2]), [B[1], *A[1:2], B[0], *A[3:]]),
    "sum": (lambda a, b: ops.sum(x * y for x, y in zip(a, b, strict=True)), np.dot(A, B)),
    "sum of nothing": (lambda a, b: ops.sum([]) + a[0], A[0]),
    "dot": (ops.dot, np.dot(A, B)),
    "cross": (ops.cross, np.cross(A, B)),
    "skew": (lambda a, b: ops.skew(a) @ b, np.cross(A, B)),
    "solve": (lambda a, b: ops.solve(MATRIX + ops.skew(a), b), np.linalg.solve(MATRIX + ops.skew(A), B)),
    "solve for columns": (
        lambda a, b: ops.solve(MATRIX + ops.skew(a), ops.array([[x, 1.0] for x in b])),
        np.linalg.solve(MATRIX + ops.skew(A), np.column_stack([B, np.ones(3)])),
    ),
    "solve with a constant matrix": (lambda a, b: ops.solve(MATRIX, b), np.linalg.solve(MATRIX, B)),
    "operators": (lambda a, b: (1 - a) * b / 2 + 3 / (a - 5) - (-b) ** 2, (1 - A) * B / 2 + 3 / (A - 5) - B**2),
    "left operands of numpy": (lambda a, b: np.ones(3) * a - np.ones(3) / b, A - 1 / B),
    "comparisons": (
        lambda a, b: ops.array([a < b, a <= b, a > b, a >= b, a == a[0], a != a[0], a < 0.5]),
        [A < B, A <= B, A > B, A >= B, A[0] == A, A[0] != A, A < 0.5],
    ),
    "slices and products": (lambda a, b: MATRIX[:2, :2] @ a[1:] + b[None, :2].T[:, 0], MATRIX[:2, :2] @ A[1:] + B[:2]),
    "empty products": (
        lambda a, b: a + a[:, None][:, :0] @ b[:0] + a[:0] @ b[:0] + sum((a[:0, None] @ b[None, :1]).shape),
        A + 1.0,
    ),
    "in place": (lambda a, b: filled(a, b), [A[0] + 1.0, B[0] * 3.0, A[2] + 1.0]),
}


def filled(a, b):
    result = a + 0.0
    result += 1.0
    result[1] = b[0]
    result[1] *= 3.0
    return result


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    """On numbers, as machine code, and on a batch."""
    function, expected = FUNCTIONS[name]
    expected = np.asarray(expected, dtype=float)
    np.testing.assert_allclose(function(A, B), expected, rtol=1e-15)
    f = compile(function, [ArrayPort("a", (3,)), ArrayPort("b", (3,))], name)
    np.testing.assert_allclose(f(A, B), expected, rtol=1e-14)
    found = f(np.tile(A, (LANES + 1, 1)), B)
    np.testing.assert_array_equal(found, np.broadcast_to(f(A, B), found.shape))
    assert found.shape == (LANES + 1, *expected.shape)


def test_every_function_is_tested():
    public = {name for name, value in vars(ops).items() if callable(value) and value.__module__ == ops.__name__}
    others = {"Traced", "is_symbolic", "is_zero", "is_infinite", "zeros"}
    untested = {name for name in public if name[0] != "_"} - others - set(FUNCTIONS)
    assert untested == set()


@pytest.mark.parametrize(("old", "new"), {"absolute": "abs", "total": "sum", "with_elements": "set_at"}.items())
def test_a_function_that_was_renamed_is_refused_with_its_new_name(old, new):
    assert callable(getattr(ops, new))
    with pytest.raises(AttributeError, match=f"^ops.{old} is now ops.{new}$"):
        getattr(ops, old)


def test_infinite_constants_are_known_and_symbols_are_none():
    assert all(map(ops.is_infinite, (np.inf, -np.inf, np.float64("inf"))))
    assert not any(map(ops.is_infinite, (0.0, 1e308, np.nan, casadi.SX.sym("x"), ops.array([casadi.SX.sym("x")])[0])))


def test_zeros_are_known_among_numbers_and_symbols():
    x = casadi.SX.sym("x")
    assert all(map(ops.is_zero, (0, 0.0, np.zeros(()), np.float64(0.0), casadi.SX(0), ops.array([x - x])[0])))
    assert not any(map(ops.is_zero, (1.0, np.ones(()), x, ops.array([x])[0], casadi.SX(2))))


def test_numbers_stay_numbers():
    assert ops.zeros((2, 3)).tolist() == [[0.0] * 3] * 2
    assert ops.sum([]) == 0.0
    assert ops.concatenate([]).shape == (0,)
    for value in (1.0, np.ones(2), [1.0, 2.0], "text", None):
        assert not ops.is_symbolic(value)


def test_a_bad_pivot_is_not_hidden():
    """Elimination without row exchanges is for leading minors that do not vanish."""
    with np.errstate(all="ignore"):
        assert not np.isfinite(ops.solve(np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones(2))).all()


def test_parts_of_symbols_are_symbols():
    seen = []

    def look(x):
        seen.extend([x, x[0], x[:2], x > 0, x[0] > 0, -x, x @ x, 2.0 * x, np.ones(3) * x])
        return x

    compile(look, [ArrayPort("x", (3,))])
    assert all(map(ops.is_symbolic, seen))
    assert {type(value) for value in seen} == {ops.Traced}
    assert [value.shape for value in seen] == [(3,), (), (2,), (3,), (), (3,), (), (3,), (3,)]
    assert ops.is_symbolic(seen[1][()])
    with pytest.raises(TypeError, match="unhashable type: 'Traced'"):
        hash(seen[0])
