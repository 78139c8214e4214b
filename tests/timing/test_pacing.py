"""Ticks held to time: when they are due, and what becomes of those that are late, the same in every loop."""

import dataclasses
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from cosim.execution.engine import Snapshot
from cosim.simulation.loop.pacing import (
    JUMPED,
    OK,
    TOO_LATE,
    WENT_BACK,
    Pacing,
    Trigger,
    check_clock,
    due,
    schedule_next,
    settings,
)
from cosim.simulation.loop.tick_ring import LoopStatus

MS = 1_000_000  # ns; a tick at rate 1
HOUR = 3_600_000  # ticks
RATES = [Fraction(1), Fraction(3), Fraction(7, 10), Fraction(7, 9), Fraction(1, 2), Fraction(1000)]


def whole(k, rate):
    """k periods [ns], halves up, in whole numbers."""
    period = MS / rate
    return (2 * k * period.numerator + period.denominator) // (2 * period.denominator)


def ticks_of(k_ms):
    """Times in ns of times in ms."""
    return [round(t * MS) for t in k_ms]


# --- the policy itself ---


@pytest.mark.parametrize("rate", [Fraction(3), Fraction(7, 9)], ids=str)
def test_dues_of_an_hour_are_whole_periods_after_the_first(rate):
    k = np.arange(HOUR)
    np.testing.assert_array_equal(due(k, settings(Pacing(rate=float(rate)), MS)[0], 0.0), whole(k, rate))


def test_clock_slip_moves_all_that_follows():
    assert due(10.0, 1e6 / 3, 12345.0) == 3333333 + 12345


@pytest.mark.parametrize(
    ("overrun", "max_consecutive", "allowed", "limit"),
    [("skip", 10, 0, 0), ("catch_up", 10, 10, 0), ("catch_up", 1, 1, 0), ("stop", 3, 3, 3)],
)
def test_constants_of_the_policy(overrun, max_consecutive, allowed, limit):
    found = settings(Pacing(overrun=overrun, max_consecutive=max_consecutive, rate=0.5, warm_up=0.25), MS)
    assert found.tolist() == [2e6, 250e6, allowed, limit]


@pytest.mark.parametrize(
    ("woke", "before", "result"),
    [
        (5000.0, 0.0, OK),
        (5000.0, 5000.0, OK),
        (4999.0, 0.0, WENT_BACK),  # before it was due
        (6999.0, 7000.0, WENT_BACK),  # before what the clock said last
        (5000.0 + 1e9, 0.0, OK),
        (5001.0 + 1e9, 0.0, JUMPED),
        (5001.0 + 1e9, 5001.0, OK),  # the tick before took long: the wait did not
        (5002.0 + 1e9, 5001.0, JUMPED),
    ],
)
def test_what_became_of_the_clock(woke, before, result):
    found, slip = check_clock(5000.0, before, woke, np.array([7.0, 0.0]), 3.0)
    assert (found, slip) == (result, 3.0 if result else 7.0)


def test_late_ticks_in_a_row_are_counted_from_the_end_of_the_grace():
    p = settings(Pacing(overrun="stop", max_consecutive=2, warm_up=0.002), MS)
    state, results, rows = np.zeros(2), [], []
    for k, late in enumerate([1, 1, 1, 0, 1, 1]):
        state, _, result = schedule_next(float(k), p, state, k * 1e6, late, 0.0)
        results.append(int(result))
        rows.append(int(state[1]))
    assert rows == [0, 0, 1, 0, 1, 2]
    assert results == [OK] * 5 + [TOO_LATE]


# --- both loops ---


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(7, 9), Fraction(1000)], ids=str)
def test_ticks_are_due_at_whole_periods_however_late_they_wake(loops, rate):
    late = [(37 * k) % 101 for k in range(120)]
    found = loops(120, Pacing(rate=float(rate)), late=late)
    expected = [whole(k, rate) for k in range(120)]
    assert found.status is LoopStatus.FINISHED
    assert found.due == expected and found.waits == [loops.start + t for t in expected]
    assert found.woke == [t + d for t, d in zip(expected, late, strict=True)]
    assert found.slip == 0


def test_rows_are_those_of_the_ticks_without_a_clock(loops):
    found = loops(200, Pacing(overrun="skip", warm_up=0.0), late=[0, 900_000, 0, 7 * MS], took=[[MS]] * 9)
    assert found.slip == 8 * MS and found.numbers == [*range(200)]
    engine = loops.engines()["native"]
    engine.restore(Snapshot(0, engine.tick_model.memory()))
    rows, _ = engine.run(200)
    np.testing.assert_array_equal(found.rows, rows)
    assert rows[-1, 1] != rows[0, 1]


# what a tick of 1 ms takes [ms] → (dues [ms], time given up [ms]); ticks without a number take 0
OVERRUNS = {
    "skip, to the next due": ("skip", 10, [0, 1], [0, 1, 2, 3], 0),
    "skip, a little over": ("skip", 10, [0, 1.2], [0, 1, 3, 4], 1),
    "skip, by exactly one period": ("skip", 10, [0, 2], [0, 1, 3, 4], 1),
    "skip, by one period and 1 ns": ("skip", 10, [0, 2 + 1e-6], [0, 1, 4, 5], 2),
    "skip, many": ("skip", 10, [0, 4.5, 0, 2.5], [0, 1, 6, 7, 10], 6),
    "catch up": ("catch_up", 10, [0, 4.5], [0, 1, 2, 3, 4, 5, 6, 7], 0),
    "catch up, as many as allowed": ("catch_up", 3, [0, 3.5, 0], [0, 1, 2, 3, 4, 5, 6], 0),
    "catch up, exactly as many as allowed": ("catch_up", 3, [0, 4, 0], [0, 1, 2, 3, 4, 5, 6], 0),
    "catch up, more than allowed": ("catch_up", 3, [0, 4 + 1e-6], [0, 1, 3, 4, 5, 6], 1),
    "catch up, far more": ("catch_up", 3, [0, 7.5], [0, 1, 6, 7, 8, 9], 4),
    "catch up, one at most": ("catch_up", 1, [0, 1.5, 0, 3.5], [0, 1, 2, 3, 6, 7], 2),
    "catch up, never done": ("catch_up", 2, [2] * 6, [0, 1, 2, 4, 6, 8], 3),
    "stop, far behind": ("stop", 3, [0, 7.5], [0, 1, 6, 7, 8, 9], 4),
}


@pytest.mark.parametrize(("overrun", "max_consecutive", "took", "dues", "slip"), OVERRUNS.values(), ids=OVERRUNS)
def test_late_ticks(loops, overrun, max_consecutive, took, dues, slip):
    took = [[t] for t in ticks_of(took)]
    found = loops(len(dues), Pacing(overrun=overrun, max_consecutive=max_consecutive, warm_up=0.0), took=took)
    assert found.due == ticks_of(dues)
    assert found.slip == slip * MS
    assert found.status is LoopStatus.FINISHED
    ends = [0, *(ends[-1] for ends in found.ends)]
    assert found.woke == [max(due, end) for due, end in zip(found.due, ends, strict=False)]  # back to back


def test_clock_slip_after_the_last_tick_does_not_count(loops):
    pacing, took = Pacing(overrun="skip", warm_up=0.0), [[0], [0], [9 * MS]]
    assert loops(3, pacing, took=took).slip == 0
    assert loops(4, pacing, took=took).slip == 8 * MS


def test_waking_late_counts_as_the_tick_does(loops):
    found = loops(5, Pacing(overrun="skip", warm_up=0.0), late=[0, 2_300_000, 0, 0])
    assert found.due == ticks_of([0, 1, 4, 5, 6])
    assert found.woke == ticks_of([0, 3.3, 4, 5, 6])


def test_a_start_that_is_past_is_caught_up_with(loops):
    found = loops(14, Pacing(warm_up=0.0), time=loops.start + 5_000_000_000)
    assert found.status is LoopStatus.FINISHED
    assert found.due == ticks_of([0, *range(4990, 5003)])
    assert found.woke == ticks_of([5000] * 12 + [5001, 5002])


@pytest.mark.parametrize("rate", [Fraction(3), Fraction(7, 10), Fraction(7, 9)], ids=str)
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_a_tick_that_is_due_at_this_very_time_is_not_late(loops, rate, over):
    """Where periods are no whole numbers of ns, the time between two dues may be longer than one."""
    for n in (3, 7, 11):
        took = [[whole(n, rate) + over]]
        found = loops(2, Pacing(overrun="skip", warm_up=0.0, rate=float(rate)), took=took)
        missed = n - 1 + (over > 0)
        assert found.slip == whole(missed, rate)
        assert found.due == [0, whole(1, rate) + whole(missed, rate)]


def test_in_the_warm_up_late_ticks_are_neither_caught_up_nor_counted(loops):
    """Ticks 0, 1, 2 begin before 2.5 ms; the time they miss is given up. From tick 3 on they are caught up with."""
    took = [[t] for t in ticks_of([1.5, 0, 3.5, 2.5, 0, 0, 0])]
    found = loops(7, Pacing(warm_up=0.0025), took=took)
    assert found.due == ticks_of([0, 2, 3, 7, 8, 9, 10])
    assert found.slip == 4 * MS
    assert found.woke == ticks_of([0, 2, 3, 7, 9.5, 9.5, 10])


@pytest.mark.parametrize(("warm_up", "last"), [(0.0, 1), (0.001, 2), (0.0010001, 3), (0.005, 6)])
def test_the_warm_up_is_measured_in_time_of_ticks(loops, warm_up, last):
    """Tick k is judged from k ms on; every tick is late."""
    found = loops(
        20, Pacing(overrun="stop", max_consecutive=2, warm_up=warm_up), deadlines=MS // 4, took=[[MS // 2]] * 20
    )
    assert (found.status, len(found.due) - 1) == (LoopStatus.LATE, last)


@pytest.mark.parametrize("max_consecutive", [1, 2, 5])
def test_late_ticks_in_a_row_end_the_run(loops, max_consecutive):
    """One tick on time breaks the first row of them just before it is long enough."""
    took = [[2000]] * (max_consecutive - 1) + [[1000]] + [[2000]] * 9
    found = loops(50, Pacing(overrun="stop", max_consecutive=max_consecutive, warm_up=0.0), deadlines=1999, took=took)
    assert found.status is LoopStatus.LATE
    assert found.due == [k * MS for k in range(2 * max_consecutive)]


@pytest.mark.parametrize(("took", "status"), [(700_000, LoopStatus.FINISHED), (700_001, LoopStatus.LATE)])
def test_a_task_that_ends_at_its_deadline_is_not_late(loops, took, status):
    pacing = Pacing(overrun="stop", max_consecutive=1, warm_up=0.0)
    found = loops(3, pacing, deadlines=700_000, took=[[0], [took]])
    assert (found.status, len(found.rows)) == (status, 3 if status is LoopStatus.FINISHED else 2)


@pytest.mark.parametrize("task", range(7))
def test_every_task_has_a_deadline_of_its_own_from_when_the_tick_is_due(loops, task):
    """In tick 1 all tasks are due; each takes 10 us, after a wait that ends 5 us late."""
    deadlines = [5_000 + 10_000 * (k + 1) for k in range(7)]
    clock: dict[str, Any] = {"late": [0, 5_000], "took": [[], [10_000] * 7]}
    pacing = Pacing(overrun="stop", max_consecutive=1, warm_up=0.0)
    assert loops(3, pacing, deadlines, **clock).status is LoopStatus.FINISHED
    deadlines[task] -= 1
    found = loops(3, pacing, deadlines, **clock)
    assert (found.status, len(found.rows)) == (LoopStatus.LATE, 2)


def test_a_deadline_counts_in_ticks_in_which_its_task_is_due(loops):
    """Controller b runs in ticks 1, 4, 7: what takes long elsewhere is none of its lateness."""
    deadlines = [MS, MS, 1000, *[MS] * 4]
    pacing = Pacing(overrun="stop", max_consecutive=1, warm_up=0.0)
    long = [[5000, *[0] * 6]]
    on_time = [*long, [], *long * 2, [], *long * 2]
    assert loops(7, pacing, deadlines, took=on_time).status is LoopStatus.FINISHED
    found = loops(9, pacing, deadlines, took=[*on_time, *long])
    assert (found.status, len(found.rows)) == (LoopStatus.LATE, 8)
    # from another tick on, other ticks are its own
    found = loops(9, pacing, deadlines, first=3, took=on_time)
    assert found.status is LoopStatus.FINISHED
    found = loops(9, pacing, deadlines, first=2, took=on_time)
    assert (found.status, len(found.rows)) == (LoopStatus.LATE, 3)


def test_a_task_that_does_not_run_ends_with_the_one_before(loops):
    took = [[1, 20, 300, 4000, 50_000, 600_000]] * 3
    took[1] = [1, 20, 7, 300, 4000, 50_000, 600_000]
    found = loops(3, Pacing(), late=[9, 8, 7], took=took)
    for k, (late, run, tasks) in enumerate(zip([9, 8, 7], took, found.ends, strict=True)):
        expected = list(accumulate(run, initial=k * MS + late))[1:]
        if k != 1:
            expected.insert(2, expected[1])
        assert tasks == expected
    assert found.stamps[:, -1].tolist() == [1000, 2000, 3000]


# --- triggers: a tick is due when one comes ---

TRIGGERED = Pacing(trigger=Trigger(file="none"), overrun="stop", max_consecutive=1, warm_up=0.0)


def test_a_tick_is_due_at_its_trigger(loops):
    """They come when they like: before a period has passed, or long after it."""
    pacing = dataclasses.replace(TRIGGERED, overrun="catch_up")
    found = loops(6, pacing, deadlines=1000, late=[0, 250_000, -900_000, 30 * MS, 5_000_000_000], took=[[1000]] * 6)
    assert found.status is LoopStatus.FINISHED and found.slip == 0
    assert found.due == found.woke == ticks_of([0, 1.25, 1.35, 32.35, 5033.35, 5034.35])
    assert [ends[-1] - due for ends, due in zip(found.ends, found.due, strict=True)] == [1000] * 6


def test_triggers_that_have_gathered_are_taken_back_to_back(loops):
    """The clock gives the next trigger at once, while the time that a long tick misses becomes clock slip."""
    pacing = dataclasses.replace(TRIGGERED, overrun="skip")
    found = loops(4, pacing, late=[0, 0, -MS], took=[[4 * MS]])
    assert found.due == found.woke == ticks_of([0, 4, 4, 5])
    assert found.slip == 3 * MS


@pytest.mark.parametrize(("took", "status"), [(1000, LoopStatus.FINISHED), (1001, LoopStatus.LATE)])
def test_deadlines_count_from_the_trigger(loops, took, status):
    found = loops(3, TRIGGERED, deadlines=1000, late=[0, 400_000, 300_000], took=[[], [], [took]])
    assert found.status is status


@pytest.mark.parametrize(("late", "status"), [(MS // 2, LoopStatus.FINISHED), (MS // 2 + 1, LoopStatus.LATE)])
def test_a_trigger_may_come_half_a_period_late(loops, late, status):
    found = loops(3, TRIGGERED, late=[MS, late])  # the first one has none before it
    assert (found.status, len(found.rows)) == (status, 3 if status is LoopStatus.FINISHED else 2)


def test_without_a_trigger_the_run_ends(loops):
    found = loops(9, TRIGGERED, late=[0, 10, None])
    assert (found.status, len(found.rows)) == (LoopStatus.NO_TRIGGER, 2)


# --- anything that may happen, against the policy in plain whole numbers ---


def plain(late, took, pacing, rate, deadlines):
    """(dues, wokes, time given up, status), ns after the first due; took: of the first task and of the second."""
    previous_slip, slip, row, now, dues, wokes = 0, 0, 0, -MS, [], []
    max_consecutive = pacing.max_consecutive
    for k, (delay, times) in enumerate(zip(late, took, strict=True)):
        dues.append(whole(k, rate) + slip)
        wokes.append(max(dues[-1], now) + delay)
        previous_slip, now = slip, wokes[-1] + sum(times)
        ends = wokes[-1] + times[0], now
        starting = k * Fraction(MS) / rate < round(pacing.warm_up * 1e9)
        is_late = any(end - dues[-1] > deadline for end, deadline in zip(ends, deadlines, strict=True))
        row = row + 1 if is_late and not starting else 0
        missed = 0
        while whole(k + 1 + missed, rate) + slip < now:
            missed += 1
        slip += whole(max(missed - (0 if starting or pacing.overrun == "skip" else max_consecutive), 0), rate)
        if pacing.overrun == "stop" and row >= max_consecutive:
            return dues, wokes, previous_slip, LoopStatus.LATE
    return dues, wokes, previous_slip, LoopStatus.FINISHED


@st.composite
def times(draw, rate):
    """Some ns, or to within 1 ns of some dues, so that edges are met."""
    if draw(st.booleans()):
        return draw(st.integers(0, 3 * MS))
    return max(whole(draw(st.integers(0, 15)), rate) + draw(st.integers(-1, 1)), 0)


@st.composite
def runs(draw):
    rate = draw(st.sampled_from(RATES[:5]))
    pacing = Pacing(
        overrun=draw(st.sampled_from(["skip", "catch_up", "stop"])),
        max_consecutive=draw(st.integers(1, 4)),
        warm_up=draw(st.sampled_from([0.0, 0.002, 0.0035])),
        rate=float(rate),
    )
    n = draw(st.integers(1, 15))
    some = st.one_of(st.just(0), times(rate))
    late = draw(st.lists(some, min_size=n, max_size=n))
    took = draw(st.lists(st.tuples(some, some), min_size=n, max_size=n))
    return rate, pacing, late, took, draw(st.tuples(times(rate), times(rate)))


@hypothesis(max_examples=20)
@given(run=runs())
def test_every_loop_follows_the_policy(loops, run):
    rate, pacing, late, took, deadlines = run
    found = loops(len(late), pacing, [*deadlines, *[loops.never] * (loops.tasks - 2)], late=late, took=took)
    assert (found.due, found.woke, found.slip, found.status) == plain(late, took, pacing, rate, deadlines)
