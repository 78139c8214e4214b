"""The loop forwards with a tape and backwards along it, on a small program with tasks of several rates."""

import numpy as np
import pytest

from cosim.core import ops
from cosim.core.compile.adjoint import Differentiation, tape_sizes
from cosim.core.compile.routine import Routine
from cosim.simulation.loop.reverse_loop import ReverseCall, ReverseLoop, ReverseProgram, ReverseTask

STEP = 0.1
# memory: t, x (2), y, gain (2), fault; then row (t, x, y), accumulator, faulty
T, X, Y, GAIN, FAULT = slice(0, 1), slice(1, 3), slice(3, 4), slice(4, 6), slice(6, 7)
ROW, SUM = slice(7, 11), slice(11, 12)
RATE = Routine(lambda x, gain: ops.array([x[1], -gain[0] * ops.sin(x[0])]), [(2,), (2,)], "rate")


def advance(t, x, y, gain):
    middle = x + 0.5 * STEP * RATE(x, gain)
    return x + STEP * RATE(middle, gain) + ops.array([0.0, STEP * y[0]]), 0.01 * t + 0.0 * x[0]


def control(x, gain):
    return ops.array([-gain[1] * x[1]])


def guard(x):
    return ops.where(ops.abs(x[0]) > 3.0, 1.0, 0.0)


def accumulate(total, row):
    return total + row[1] * row[1] + 0.1 * row[3] * row[3]


def call(fn, shapes, inputs, outputs, wrt=(), seeded=()):
    derive, routine = Differentiation(), Routine(fn, shapes, fn.__name__)
    adjoint = derive.adjoint(routine, wrt, seeded) if seeded else None
    return ReverseCall(derive.taped(routine), inputs, outputs, tuple(tape_sizes(routine)), adjoint, wrt, seeded)


@pytest.fixture(scope="module")
def program():
    scalar, pair = (1,), (2,)
    advances = call(
        lambda t, x, y, gain: advance(t[0], x, y, gain)[0], [scalar, pair, scalar, pair], (T, X, Y, GAIN), (X,),
        (1, 2, 3), (0,),
    )  # fmt: skip
    return ReverseProgram(
        tasks=(
            ReverseTask((call(control, [pair, pair], (X, GAIN), (Y,), (0, 1), (0,)),), ticks=3, phase=1),
            ReverseTask((call(guard, [pair], (X,), (FAULT,)),)),
            ReverseTask((advances,)),
        ),
        metrics=call(accumulate, [scalar, (4,)], (SUM, ROW), (SUM,), (0, 1), (0,)),
        step=STEP,
        time=0,
        fault=FAULT.start,
        judge=1,
        early=3,  # t and x as at the beginning of the tick
        row=ROW,
        accumulators=SUM,
        faulty=12,
    )


def start(gains, lanes):
    memory = np.zeros((13, lanes))
    memory[X] = np.array([[1.0], [0.3]])
    memory[GAIN] = np.resize(np.atleast_2d(gains), (lanes, 2)).T
    return memory


def total(gains, ticks):
    """In plain Python."""
    x, y, found = np.array([1.0, 0.3]), 0.0, 0.0
    for number in range(ticks):
        before = x
        if number % 3 == 1:
            y = -gains[1] * x[1]
        x = np.asarray(advance(number * STEP, x, [y], gains)[0], dtype=float)
        found += before[0] ** 2 + 0.1 * y**2
    return found


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("cut", [20, 7])
def test_derivatives_are_differences(program, lanes, cut):
    loop, ticks = ReverseLoop(program, lanes), 20
    gains = np.array([[2.0, 0.5], [1.0, 0.0], [3.0, 1.0], [2.5, -0.2]])[:lanes]
    memory, kept, tapes = start(gains, lanes), [], []
    for first in range(0, ticks, cut):
        count = min(cut, ticks - first)
        tape = np.empty((count, program.tape, lanes))
        kept.append(memory.copy())
        loop.forward(memory, tape, first, count)
        tapes.append((first, count, tape))
    expected = [total(g, ticks) for g in gains]
    np.testing.assert_allclose(memory[SUM][0], expected, rtol=1e-12)
    adjoint = np.zeros_like(memory)
    adjoint[SUM] = 1.0
    for (first, count, tape), before in zip(reversed(tapes), reversed(kept), strict=True):
        loop.backward(memory, adjoint, tape, first, count)
        # everything but the time and what only copies is as it was
        np.testing.assert_array_equal(memory[1:7], before[1:7])
    for lane, g in enumerate(gains):
        for k, unit in enumerate(1e-5 * np.eye(2)):
            difference = (total(g + unit, ticks) - total(g - unit, ticks)) / 2e-5
            assert adjoint[GAIN.start + k, lane] == pytest.approx(difference, rel=1e-8, abs=1e-9)


def test_without_a_tape_the_run_is_the_same(program):
    loop = ReverseLoop(program, 1)
    kept, lost = start([2.0, 0.5], 1), start([2.0, 0.5], 1)
    loop.forward(kept, np.empty((20, program.tape, 1)), 0, 20)
    loop.forward(lost, np.empty((1, program.tape, 1)), 0, 20)
    np.testing.assert_array_equal(kept, lost)


def test_a_fault_is_kept(program):
    """Also when it does not last; the other SIMD lanes have none."""
    loop = ReverseLoop(program, 4)
    memory = start([[2.0, 0.5]] * 4, 4)
    memory[X, 2] = [2.9, 4.0]  # over the top
    loop.forward(memory, np.empty((1, program.tape, 4)), 0, 60)
    np.testing.assert_array_equal(memory[program.faulty], [0.0, 0.0, 1.0, 0.0])
