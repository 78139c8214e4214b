"""While loops: machine code and Python give the same results, for one state and for each lane of a batch."""

import numpy as np
import pytest

from cosim.core import ops
from cosim.core.compile import Routine, compile, mathlib
from cosim.core.compile.jacobian import Jacobian
from cosim.core.compile.jit import vector_lanes
from cosim.core.compile.routine import call_when, with_callees
from cosim.core.compile.trace import RoutineBase
from cosim.core.compile.while_loop import WhileLoop
from cosim.core.errors import CompileError
from cosim.simulation.loop.native_loop import NativeLoop
from cosim.simulation.loop.tick_ring import LoopStatus, LoopTask, RoutineCall, SharedWord, TickProgram, TickRing
from tests.compile.calls import ports, run

LANES = vector_lanes()
ROWS = 3 * LANES + 1


def newton(x, a):
    """Heron's step towards √a; more while it still moves down, as it does from above."""
    following = 0.5 * (x + a / x)
    return following, following[0] < x[0]


def collatz(x):
    """(number, greatest so far): whole numbers, so that nothing is rounded."""
    half = 0.5 * x[0]
    following = ops.where(ops.floor(half) < half, 3.0 * x[0] + 1.0, half)
    return ops.array([following, ops.maximum(x[1], following)]), following > 1.0


def collatz_by_hand(start, max_iterations=1000):
    x, greatest, count = start, 0.0, 0
    while True:
        x = 3 * x + 1 if x % 2 else x // 2
        greatest, count = max(greatest, x), count + 1
        if x <= 1 or count == max_iterations:
            return [float(x), float(greatest)], float(count), float(x > 1)


ROOT = WhileLoop(Routine(newton, [(1,), (1,)], "newton"), 100)
COLLATZ = WhileLoop(Routine(collatz, [(2,)], "collatz"), 1000)
STARTS = np.array([[float(k), 0.0] for k in range(2, 2 + ROWS)])


def same(found, expected):
    """Equal to the bit, in each output."""
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def by_rows(f, *batches):
    """What single calls give, stacked."""
    return [np.stack(column) for column in zip(*(f(*row) for row in zip(*batches, strict=True)), strict=True)]


# --- the loop ---------------------------------------------------------------------------------------


def test_a_root_is_found_to_machine_precision():
    f = compile(ROOT, ports(x=(1,), a=(1,)))
    for a in (2.0, 3.0, 1e-3, 12345.678):
        x, count, more = f([max(a, 1.0)], [a])
        assert abs(x[0] - np.sqrt(a)) <= np.spacing(np.sqrt(a))
        assert 3 < count < 30
        assert more == 0.0


@pytest.mark.parametrize(
    ("start", "limit"), [*((start, 1000) for start in (2, 3, 6, 27)), *((27, limit) for limit in (1, 2, 110, 111, 112))]
)
def test_it_is_done_as_often_as_the_values_ask_for_and_not_more_often_than_allowed(start, limit):
    limited, expected = WhileLoop(COLLATZ.body, limit), [*map(np.array, collatz_by_hand(start, limit))]
    same(compile(limited, ports(x=(2,)))([start, 0.0]), expected)
    same(map(np.array, limited.fn(np.array([float(start), 0.0]))), expected)


@pytest.mark.parametrize("interpret", [False, True])
def test_more_is_any_number_but_zero(interpret):
    """-0.0 ends the loop; NaN and negative numbers do not."""
    said = Routine(lambda x, words: ([*(1.0 * x[1:]), x[0]], words[0] * x[0]), [(3,), (1,)], "said")
    f = compile(WhileLoop(said, 3), ports(x=(3,), words=(1,)), interpret=interpret)
    for x, count in (([-1.0, np.nan, 0.0], 3), ([0.0, 1.0, 1.0], 1), ([-2.0, 0.0, 1.0], 2), ([np.nan, 1.0, 1.0], 3)):
        assert f(x, [-1.0])[1] == count


def test_x_may_have_no_elements():
    f = compile(WhileLoop(Routine(lambda x, go: (x, go), [(0,), ()], "idle"), 5), ports(x=(0,), go=()))
    same(f(np.zeros(0), 1.0), [np.zeros(0), np.array(5.0), np.array(1.0)])


# --- batches ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_iterations", [1000, 9])
@pytest.mark.parametrize("rows", [1, LANES, ROWS])
def test_finished_lanes_keep_their_values(rows, max_iterations):
    f = compile(WhileLoop(COLLATZ.body, max_iterations), ports(x=(2,)))
    found = f(STARTS[:rows])
    same(found, by_rows(f, STARTS[:rows]))
    by_hand = (collatz_by_hand(int(start), max_iterations) for start in STARTS[:rows, 0])
    same(found, map(np.array, zip(*by_hand, strict=True)))
    assert rows == 1 or len(set(found[1])) > 2


def test_rounded_values_of_lanes_are_those_of_single_calls():
    f = compile(ROOT, ports(x=(1,), a=(1,)))
    a = np.geomspace(1.0, 1e6, ROWS)[:, None]
    found = f(a, a)
    same(found, by_rows(f, a, a))
    assert len(set(found[1])) > 3


def test_inputs_that_are_one_for_all_lanes_stay_so_and_outputs_may_lie_on_inputs():
    grown = WhileLoop(Routine(lambda x, c: (x * c, (x * c)[0] < 100.0), [(2,), (2,)], "grown", uniform=[1]), 50)
    start = np.arange(1.0, 2 * LANES + 1.0).reshape(2, LANES)
    x, c, count, more = start.copy(), np.array([2.0, 3.0]), np.empty(LANES), np.empty(LANES)
    run(grown, LANES, x, c, x, count, more)
    same((x.T, count, more), map(np.array, zip(*(grown.fn(row, c) for row in start.T), strict=True)))
    assert grown.uniform == (1,)


class Countdown(RoutineBase):
    """A body that counts x down to 0, and counts its runs in the memory of its second argument."""

    name, symbol, shapes, output_shapes, callees, operations = "down", "down", ((), (1,)), ((), ()), (), 1

    def fn(self, x, times):
        return x - 1.0, x - 1.0

    def _text(self, symbol, lanes):
        t = mathlib.real(lanes)
        return f"""
define internal void @{symbol}.{lanes}(ptr %x, ptr %times, ptr %next, ptr %more) {{
  %before = load double, ptr %times
  %after = fadd double %before, 1.0
  store double %after, ptr %times
  %value = load {t}, ptr %x, align 8
  %less = fsub {t} %value, {mathlib.constant(1.0, lanes)}
  store {t} %less, ptr %next, align 8
  store {t} %less, ptr %more, align 8
  ret void
}}
"""


@pytest.mark.parametrize("lanes", [1, LANES])
def test_the_body_runs_as_often_as_the_slowest_lane_needs(lanes):
    x, times, count, more = np.arange(2.0, lanes + 2.0), np.zeros(1), np.empty(lanes), np.empty(lanes)
    run(WhileLoop(Countdown(), 100), lanes, x, times, x, count, more)
    assert (times[0], count.tolist()) == (lanes + 1.0, list(range(2, lanes + 2)))


@pytest.mark.parametrize("lead", [(), (ROWS,)])
def test_outputs_may_be_any_of_the_inputs(lead):
    body = Routine(lambda x, c, d: (x * c + d, x[0] < 100.0), [(2,), (2,), ()], "affine")
    f = compile(WhileLoop(body, 50), ports(x=(2,), c=(2,), d=()))
    x, c, d = np.full((*lead, 2), 2.0), np.full((*lead, 2), 3.0), np.full(lead, 1.0)
    expected = f(x, c, d)
    for first in (0, 1):
        given = [x.copy(), c.copy(), d.copy()]
        out = (given[first], given[2], np.empty(lead))
        f.native(*given, out=out)
        same(out, expected)


# --- calls ------------------------------------------------------------------------------------------


def outer(x, limit):
    """Numbers from x up until the sum of their counts passes the limit: (number, sum)."""
    _, count, _ = COLLATZ(ops.array([x[0], 0.0]))
    total = x[1] + count
    return ops.array([x[0] + 1.0, total]), total < limit


def outer_by_hand(start, limit):
    number, total, count = start, 0.0, 0
    while count == 0 or total < limit:
        total += collatz_by_hand(number)[1]
        number, count = number + 1, count + 1
    return [float(number), total], float(count), 0.0


@pytest.mark.parametrize("interpret", [False, True])
def test_a_loop_in_a_loop(interpret):
    nested = WhileLoop(Routine(outer, [(2,), ()], "outer"), 200)
    f = compile(lambda x, limit: nested(x, limit), ports(x=(2,), limit=()), "nested", interpret=interpret)
    found = f(STARTS, 300.0)
    same(found, map(np.array, zip(*(outer_by_hand(int(s), 300.0) for s in STARTS[:, 0]), strict=True)))
    same(found, by_rows(lambda x: f(x, 300.0), STARTS))
    assert len(set(found[1])) > 1


@pytest.mark.parametrize("interpret", [False, True])
def test_a_loop_that_is_only_carried_out_on_a_condition(interpret):
    def maybe(x, due):
        return call_when(due > 0.0, COLLATZ, (x,), (x, -1.0, 0.5))

    f = compile(maybe, ports(x=(2,), due=()), interpret=interpret)
    same(f([27.0, 0.0], 1.0), map(np.array, collatz_by_hand(27)))
    same(f([27.0, 5.0], 0.0), map(np.array, ([27.0, 5.0], -1.0, 0.5)))
    same(f(STARTS, 1.0), map(np.array, zip(*(collatz_by_hand(int(s)) for s in STARTS[:, 0]), strict=True)))
    same(f(STARTS, 0.0), (STARTS, np.full(ROWS, -1.0), np.full(ROWS, 0.5)))
    mixed = np.where(np.arange(ROWS) % 3, 1.0, 0.0)  # each row of a batch decides for itself
    same(f(STARTS, mixed), by_rows(f, STARTS, mixed))


def user(x, a):
    """Something before, between and after two loops."""
    root, count, _ = ROOT(a + 1.0, a)
    (last, greatest), steps, more = COLLATZ(x)
    return root * greatest + last, count + steps - more


@pytest.mark.parametrize("k", [None, ROWS])
def test_python_and_machine_code_agree(k):
    a = np.geomspace(2.0, 50.0, ROWS)[:, None]
    arguments = (STARTS, a) if k else (STARTS[5], a[5])
    found, expected = (
        compile(user, ports(x=(2,), a=(1,)), interpret=interpret)(*arguments) for interpret in (False, True)
    )
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-15)
    np.testing.assert_allclose(found[1], expected[1], atol=1.0)  # a last step of newton may hang on one rounding
    for interpret in (False, True):
        same(compile(COLLATZ, ports(x=(2,)), interpret=interpret)(STARTS), by_rows(COLLATZ, STARTS))


def test_the_native_run_loop_takes_it():
    def step(t, x):
        x_next, count, _ = COLLATZ(x + ops.array([t + 6.0, 0.0]))
        return x_next, count

    t, count, fault, x = slice(0, 1), slice(1, 2), slice(2, 3), slice(3, 5)
    task = LoopTask((RoutineCall(Routine(step, [(), (2,)], "step"), (t, x), (x, count)),))
    rings = TickRing(TickProgram((task,), step=1.0, time=0, fault=fault.start, judge=0, early=1, row=2), 3)
    rings.words[SharedWord.COUNT], memory = 3, np.zeros(5)
    NativeLoop(rings.program).run(memory, rings)
    counts = [collatz_by_hand(start)[1] for start in (6, 8, 9)]
    assert rings.read(3)[0].tolist() == [[0.0, counts[0]], [1.0, counts[1]], [2.0, counts[2]]]
    assert (rings.status, memory[x].tolist()) == (LoopStatus.FINISHED, [1.0, 52.0])


# --- what it says of itself -------------------------------------------------------------------------


def test_the_symbol_is_that_of_the_code():
    def routine(factor):
        return Routine(lambda x: (x * factor, x[0] < 9.0), [(2,)], "scaled")

    one, same_code, other_body, other_count = (
        WhileLoop(routine(factor), max_iterations)
        for factor, max_iterations in ((2.0, 5), (2.0, 5), (3.0, 5), (2.0, 6))
    )
    assert one.symbol == same_code.symbol
    assert len({one.symbol, other_body.symbol, other_count.symbol}) == 3
    loops = (one, same_code, other_body, other_count)
    f = compile(lambda x: ops.sum(loop(x)[1] for loop in loops), ports(x=(2,)))
    assert f([1.0, 0.0]) == 5 + 5 + 3 + 5


def test_it_describes_itself_as_routines_do():
    assert (ROOT.name, ROOT.shapes, ROOT.output_shapes) == ("newton_repeated", ((1,), (1,)), ((1,), (), ()))
    assert ROOT.output_sizes == (1, 1, 1)
    assert (ROOT.callees, ROOT.operations, ROOT.uniform) == ([ROOT.body], ROOT.body.operations, ())
    assert [item.name for item in with_callees(Routine(user, [(2,), (1,)], "user"))] == [
        "newton", "newton_repeated", "collatz", "collatz_repeated", "user",
    ]  # fmt: skip


# --- what it refuses --------------------------------------------------------------------------------


def refused(function, make):
    """The message, without the place, which is the function's."""
    with pytest.raises(CompileError) as caught:
        make()
    place = f"{__file__}:{function.__code__.co_firstlineno} {function.__qualname__}: "
    assert str(caught.value).startswith(place)
    return str(caught.value).removeprefix(place)


@pytest.mark.parametrize(
    "fn",
    [lambda a: ROOT(a, a)[0], lambda a: call_when(a[0] > 0.0, ROOT, (a, a), (a, 0.0, 0.0))[0]],
    ids=["plain", "conditional"],
)
def test_no_derivative_goes_through_it(fn, said):
    said(refused(newton, lambda: Jacobian(fn, [(1,)], "slope")))


def test_a_conditional_call_without_loop_has_a_derivative():
    square = Routine(lambda x: x * x, [(1,)], "square")
    slope = Jacobian(lambda x: call_when(x[0] > 1.0, square, (x,), (3.0 * x,)), [(1,)], "slope")
    assert [slope(np.array([x])).item() for x in (5.0, -5.0)] == [10.0, 3.0]


def test_what_cannot_be_a_loop_is_refused(said):
    for fn, shapes in (
        (lambda x: (x, x[0], x[0]), [(2,)]),
        (lambda x: (ops.concatenate([x, x]), x[0]), [(2,)]),
        (lambda: (np.zeros(1), 0.0), []),
    ):
        said(refused(fn, lambda fn=fn, shapes=shapes: WhileLoop(Routine(fn, shapes, "body"), 5)))
    for limit in (0, -1):
        said(refused(collatz, lambda limit=limit: WhileLoop(COLLATZ.body, limit)))
    said(refused(collatz, lambda: WhileLoop(Routine(collatz, [(2,)], "collatz", uniform=[0]), 5)))


def test_arguments_of_wrong_shape_are_reported():
    with pytest.raises(CompileError, match="'collatz_repeated' takes arrays of shapes"):
        compile(lambda x: COLLATZ(x)[0], ports(x=(3,)))


def test_repeat_is_a_loop_whose_code_does_not_grow_with_the_count():
    def step(x, a):
        return 0.5 * (x + a / x)

    def root(count):
        return compile(lambda a: ops.repeat(step, count, a, a), ports(a=(3,)), "root")

    a = np.array([2.0, 9.0, 1e4])
    np.testing.assert_allclose(root(30)(a), np.sqrt(a), rtol=1e-15)
    np.testing.assert_allclose(root(4)(a), ops.repeat(step, 4, a, a), rtol=1e-15)
    assert root(30).routine.operations == root(4).routine.operations


def test_a_derivative_through_repeat_unrolls_it():
    square = Jacobian(lambda x: ops.repeat(lambda y, x: y * x, 3, x, x), [(2,)], "fourth_power")
    np.testing.assert_allclose(square(np.array([2.0, 3.0])), np.diag([32.0, 108.0]))
