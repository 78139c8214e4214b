"""Compiled functions: arguments and results as in Python, errors for wrong arrays, the cache on disk."""

import ctypes
import gc
import math
import sys
import weakref
from functools import partial

import casadi
import numpy as np
import pytest

from cosim.core import ops
from cosim.core.compile import ArrayPort, Compiled, Interpreted, Routine, compile
from cosim.core.compile.jit import vector_lanes
from cosim.core.compile.python_call import LONGEST_LIST, layout_is_known
from cosim.core.errors import CompileError
from tests.compile.calls import ports

LANES = vector_lanes()
LENGTHS = sorted({0, 1, 2, LANES - 1, LANES, LANES + 1, 3 * LANES + 2})


def pair(x, y):
    return x + y, x * y


def pair_code(interpret=False):
    return compile(pair, ports(x=(3,), y=(3,)), interpret=interpret)


def random(*shape):
    return np.random.default_rng(0).uniform(-3.0, 3.0, shape)


def line(function, offset=0):
    """file:line of a line of a function, as messages have it."""
    return f"{__file__}:{function.__code__.co_firstlineno + offset}"


# --- what cannot be compiled ----------------------------------------------------------------------


def compile_error(function, *shapes):
    with pytest.raises(CompileError) as caught:
        compile(function, [ArrayPort(f"x{k}", shape) for k, shape in enumerate(shapes or [(2,)])])
    return str(caught.value)


def test_an_operation_without_machine_code_is_reported_with_its_location():
    def inverse_error(x):
        return casadi.erfinv(x[0][()])

    assert compile_error(inverse_error) == (
        f"{line(inverse_error)} {inverse_error.__qualname__}: 'inverse_error' uses the operation erfinv,"
        " which has no machine code here; write it with the functions of cosim.plugin.ops"
    )


IFS = {
    "if": lambda x: x if x[0] > 0 else -x,
    "and": lambda x: x[0] > 0 and x[1] > 0,
    "max": lambda x: max(x[0], x[1]),
    "chain": lambda x: 0 < x[0] < 1,
}


@pytest.mark.parametrize("what", IFS)
def test_a_python_if_on_a_traced_value_is_an_error_that_suggests_where(what):
    message = compile_error(IFS[what])
    assert message.startswith(f"{line(IFS[what])}: a Python `if`, `and`, `min` or comparison chain on a traced value")


def test_other_errors_of_the_function_are_reported_with_their_location():
    def wrong(x):
        return x @ np.ones(3)

    message = compile_error(wrong)
    assert message.startswith(f"{line(wrong, 1)}: cannot be traced: ValueError: ")


def test_symbols_that_are_not_inputs_are_reported():
    foreign = casadi.SX.sym("foreign")

    def borrowing(x):
        return x[0] + foreign

    where = f"{line(borrowing)} {borrowing.__qualname__}"
    assert compile_error(borrowing) == (f"{where}: 'borrowing' uses symbols that are not among its inputs: ['foreign']")


def into_float_elements(x):
    result = np.zeros(2)
    result[0] = x[0]
    return result


NUMBERS = [lambda x: math.sin(x[0]), into_float_elements, lambda x: np.array(x, dtype=float)]


@pytest.mark.parametrize("function", NUMBERS, ids=["a float", "elements", "an array"])
def test_a_symbol_never_becomes_a_number(function):
    assert compile_error(function).startswith(f"{__file__}:")


@pytest.mark.parametrize("function", [lambda x: None, lambda x: "text", lambda x: casadi.vertcat(x[0][()], x[1][()])])
def test_results_must_be_arrays(function):
    compile_error(function)


def test_declared_outputs_must_be_the_traced_ones():
    with pytest.raises(CompileError, match="'pair' returns arrays of shapes"):
        compile(pair, ports(x=(3,), y=(3,)), outputs=ports(sum=(3,), product=(2,)))


# --- arrays in ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "späte Kraft", "a-b c/d", "1st", ""])
def test_a_function_may_have_any_name(name):
    assert compile(lambda x: x + 1.0, ports(x=()), name)(1.0) == 2.0


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


NUMBERS_OF_PYTHON = {
    "floats": lambda x: x.tolist(),
    "a tuple": lambda x: tuple(x.tolist()),
    "whole numbers": lambda x: [int(n) for n in x],
    "numbers of numpy": list,
    "narrow numbers of numpy": lambda x: list(x.astype(np.float32)),
    "truth values too": lambda x: [bool(n) if n in (0.0, 1.0) else n for n in x],
    "arrays without dimension": lambda x: [np.array(n) for n in x],
}


@pytest.mark.parametrize("form", NUMBERS_OF_PYTHON)
@pytest.mark.parametrize("interpret", [False, True])
def test_one_state_may_be_a_list_of_numbers(form, interpret):
    f, given = pair_code(interpret), NUMBERS_OF_PYTHON[form]
    x, y, out = np.array([1.0, -2.0, 0.0]), np.array([3.0, 1.0, 5.0]), (np.empty(3), np.empty(3))
    for found in (f.native(given(x), y), f.native(x, given(y)), f.native(given(x), given(y)), f(given(x), given(y))):
        np.testing.assert_array_equal(found, pair(x, y))
    assert f.native(given(x), given(y), out=out) is out
    np.testing.assert_array_equal(out, pair(x, y))
    np.testing.assert_array_equal(f.native(given(x), np.ones((2, 3)))[0], np.stack([x, x]) + 1.0)


@pytest.mark.parametrize(
    "wrong", [[1.0, 2.0, 10**400], [1.0, 2.0], [1.0, 2.0, "x"], [1.0, [2.0], 3.0], 1.0, None, "abc"]
)
def test_a_list_that_is_not_the_numbers_of_a_state_is_reported(wrong, said):
    f, found = pair_code(), []
    for call in (f, f.native):
        with pytest.raises((TypeError, ValueError)) as caught:
            call(np.ones(3), wrong)
        found.append(f"{type(caught.value).__name__}: {caught.value}")
    assert found[0] == found[1]
    said(found[0])


@pytest.mark.parametrize("n", [1, LONGEST_LIST, LONGEST_LIST + 1])
def test_a_list_may_be_long(n):
    f, x = compile(lambda x: 2.0 * x, ports(x=(n,))), random(n)
    np.testing.assert_array_equal(f.native(x.tolist()), 2.0 * x)


def test_new_arrays_are_those_of_numpy():
    shapes = [(), (3,), (2, 4), (0,)]
    f = compile(
        lambda x: tuple(np.full(s, 1.0) * x[0] for s in shapes),
        ports(x=(2,)),
        outputs=ports(a=(), b=(3,), c=(2, 4), d=(0,)),
    )
    f(np.ones((2, 2)))
    for lead in ((), (5,)):
        made = f.native(np.full((*lead, 2), 7.0))
        assert type(made) is tuple
        for array, shape in zip(made, shapes, strict=True):
            assert type(array) is np.ndarray and array.flags.carray and array.flags.owndata and array.base is None
            np.testing.assert_array_equal(array, np.full(lead + shape, 7.0))


def test_none_is_no_output():
    f = pair_code()
    for found in (f.native(np.ones(3), [2.0] * 3, out=None), f.native(np.ones(3), [2.0] * 3, None)):
        np.testing.assert_array_equal(found, ([3.0] * 3, [2.0] * 3))


def test_truth_values_come_as_booleans_or_whatever_stands_for_them():
    f = compile(lambda x, on: ops.where(on, x, -1.0), [ArrayPort("x", (2,)), ArrayPort("on", (2,), boolean=True)])
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
    f = compile(lambda x, y: x * y + 1.0, ports(x=(), y=()), interpret=interpret)
    assert (f(2.0, 3.0).shape, float(f(2.0, 3.0))) == ((), 7.0)
    np.testing.assert_array_equal(f([1.0, 2.0], 3.0), [4.0, 7.0])


def test_arrays_of_no_elements():
    f = compile(lambda x: x, ports(x=(0,)))
    assert f.native(np.zeros(0), np.zeros(0)).shape == (0,)
    assert f.native(np.zeros((3, 0)), np.zeros((3, 0))).shape == (3, 0)


EMPTY = np.empty(3)
MISFITS = [
    (),
    (EMPTY,),
    (EMPTY,) * 4,
    (EMPTY, ["a"] * 3),
    (np.empty(2), EMPTY),
    (EMPTY, 1.0),
    (EMPTY, np.empty((1, 1, 3))),
]
MISFITS += [(np.empty((2, 3)), np.empty((4, 3))), (EMPTY, np.empty((5, 3)), (EMPTY, EMPTY)), (EMPTY, EMPTY, (EMPTY,))]
OUTPUTS = [np.empty(2), [0.0, 0.0, 0.0], np.empty(3, np.float32), np.empty(6)[::2], np.frombuffer(bytes(24))]
MISFITS += [(EMPTY, EMPTY, (EMPTY, out)) for out in OUTPUTS]


@pytest.mark.parametrize("interpret", [False, True])
def test_arrays_of_wrong_shape_or_type_are_reported(interpret, said):
    f = pair_code(interpret)
    for arguments in MISFITS:
        found = []
        for call in (f, f.native):
            with pytest.raises((TypeError, ValueError)) as caught:
                call(*arguments)
            found.append(str(caught.value))
        assert found[0] == found[1]
        said(found[0])


# --- arrays out -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3,), (LANES + 1, 3)])
def test_an_output_may_be_an_input(shape):
    f = pair_code()
    x, y = random(2, *shape)
    expected = pair(x.copy(), y.copy())
    f.native(x, y, out=(y, x))
    np.testing.assert_array_equal((y, x), expected)


def test_the_array_that_is_given_is_filled_and_returned():
    f = compile(lambda x: x + 1.0, ports(x=(3,)))
    for shape in ((3,), (5, 3)):
        x, out = random(*shape), np.empty(shape)
        for call in (f, f.native):
            for arguments, named in (((x, out), {}), ((x,), {"out": out})):
                out[...] = np.nan
                assert call(*arguments, **named) is out
                np.testing.assert_array_equal(out, x + 1.0)
    assert f(x) is not f(x)


def test_calls_keep_no_references():
    """The short path, the long one, and refusals."""
    f = pair_code()
    x, y, out = random(3), random(3), (np.empty(3), np.empty(3))
    wrong, numbers, item = np.empty(2), [1, 2.5, np.float64(3.0)], 10**400
    things = [x, y, out, *out, wrong, numbers, *numbers, item, None, np.ndarray, np.dtype(float), f, f.native]

    def counts():
        return [sys.getrefcount(thing) for thing in things]

    before = counts()
    for _ in range(200):
        f.native(x, y, out=out)
        f.native(x, y, out)
        f.native(x, y)
        f.native(numbers, y, out=None)
        with pytest.raises(ValueError, match="has shape"):
            f.native(x, wrong, out=out)
        with pytest.raises(TypeError, match="too large"):
            f.native(x, [1.0, 2.0, item])
    assert counts() == before


def test_code_that_nobody_holds_is_given_back():
    f = pair_code()
    gone = weakref.ref(f)
    native = f.native
    del f
    gc.collect()
    np.testing.assert_array_equal(native(np.ones(3), np.ones(3))[0], np.full(3, 2.0))
    del native
    gc.collect()
    assert gone() is None


# --- the reference --------------------------------------------------------------------------------


@pytest.mark.skipif(not layout_is_known(), reason="compiled functions are no builtins here")
def test_what_the_builtin_is_made_of_outlives_it_when_all_are_garbage():
    """CPython reads the definition of a builtin as it frees it; garbage is freed in any order."""
    code = pair_code()
    address = ctypes.c_int64.from_address(id(code.native) + 16).value
    flags = ctypes.c_int32.from_address(address + 16)
    before, after, kept = flags.value, [], []

    def fill_what_is_free(_):
        kept.extend(bytearray(b"\xff" * 32) for _ in range(5000))
        after.append(flags.value)
        flags.value = before

    code.first = np.zeros(3)
    code.last = partial(code.native, np.zeros(3))
    freed = weakref.ref(code.first, fill_what_is_free)
    del code
    gc.collect()
    assert freed() is None and after == [before]


@pytest.mark.parametrize(("word", "expected"), [("1", Interpreted), ("0", Compiled), ("", Compiled)])
def test_the_environment_selects_python(word, expected, monkeypatch):
    monkeypatch.setenv("COSIM_INTERPRET", word)
    f = compile(pair, ports(x=(3,), y=(3,)))
    assert type(f) is expected
    assert type(pair_code(interpret=False)) is Compiled
    np.testing.assert_array_equal(f(np.ones(3), np.ones(3))[0], np.full(3, 2.0))


def test_python_runs_the_function_itself():
    seen = []

    def spy(x):
        seen.append(x)
        return x + 1.0

    f = compile(spy, ports(x=(2,)), outputs=ports(y=(2,)), interpret=True)
    f(np.ones((3, 2)))
    assert [type(x) for x in seen] == [np.ndarray] * 3
    assert f.native is f


# --- routines -------------------------------------------------------------------------------------


def polynomial(x, c):
    return c[0] + x * (c[1] + x * c[2]), x - c[0]


def test_a_routine_that_is_called_gives_what_it_gives_inlined():
    """Whole numbers: nothing is rounded, so the values must be the same to the bit."""
    inner = Routine(polynomial, [(2,), (3,)], "polynomial")

    def twice(x, c, called):
        value, rest = called(x, c)
        again, _ = called(value[::-1], 2.0 * c)
        return again + rest, called(rest, ops.array([1.0, c[0], value[1]]))[0]

    arguments = ports(x=(2,), c=(3,))
    outer = Routine(lambda x, c: twice(x, c, inner), [(2,), (3,)], "outer")
    calls = compile(lambda x, c: outer(x, c), arguments)
    inlined = compile(lambda x, c: twice(x, c, polynomial), arguments)
    assert [callee.name for callee in calls.routine.callees] == ["outer"]
    assert [callee.name for callee in outer.callees] == ["polynomial"] * 3
    assert outer.operations > inlined.routine.operations - 3
    for k in (None, *LENGTHS):
        x, c = np.round(random(*([k] if k is not None else []), 2)), np.round(random(3))
        for found, expected in zip(calls(x, c), inlined(x, c), strict=True):
            np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(compile(outer, arguments)(x, c), inlined(x, c))
    expected = polynomial(x[0], c)
    np.testing.assert_array_equal(inner(x[0], c), expected)


def test_the_same_code_has_the_same_symbol():
    routines = [Routine(lambda x, k=k: x * k, [(2,)], "scaled") for k in (2.0, 2.0, 3.0)]
    symbols = [routine.symbol for routine in routines]
    assert symbols[0] == symbols[1] != symbols[2]
    f = compile(lambda x: ops.sum(routine(x) for routine in routines), ports(x=(2,)))
    np.testing.assert_array_equal(f(np.ones(2)), [7.0, 7.0])


def test_a_routine_needs_a_trace_for_symbols():
    routine = Routine(lambda x: x, [()], "alone")
    with pytest.raises(CompileError, match="routine 'alone' was called with symbols outside of a trace"):
        routine(casadi.SX.sym("x"))


@pytest.mark.parametrize("arguments", [lambda x: (x,), lambda x: (x[:2], x), lambda x: (x[:2], x, x)])
def test_a_routine_is_called_with_the_arrays_it_was_made_for(arguments):
    routine = Routine(polynomial, [(3,), (3,)], "polynomial")
    with pytest.raises((CompileError, TypeError)):
        compile(lambda x: routine(*arguments(x))[0], ports(x=(3,)))
