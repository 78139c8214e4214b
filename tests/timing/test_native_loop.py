"""The loops that take ticks: what they leave in the ring while somebody reads it, and everything that can end them."""

import threading
import time
from fractions import Fraction

import numpy as np
import pytest

from cosim.control.limits import CODES
from cosim.core.compile.jit import Library
from cosim.core.compile.routine import Routine
from cosim.execution.engine import Snapshot
from cosim.execution.python_pacer import ClockPacer
from cosim.simulation.loop.clocks import NativeClock
from cosim.simulation.loop.native_loop import NativeLoop
from cosim.simulation.loop.pacing import Pacing, settings
from cosim.simulation.loop.tick_ring import (
    LoopStatus,
    LoopTask,
    PacingMemory,
    RoutineCall,
    SharedWord,
    TickProgram,
    TickRing,
)
from tests.kit.clock import FakeClock

MS = 1_000_000
HOUR = 3_600_000  # ticks at 1 kHz
SECOND = 1_000_000_000

# --- a program that counts its ticks ---

WIDE = 64
# the memory: time, the count as the tick begins, the count as it ends, again and again; and behind the row the fault
COUNT, COPIES, FAULT, SIZE = 1, slice(2, WIDE), WIDE, WIDE + 1


def counting(limit=1e9):
    """Ticks that count; the one that finds the count at `limit` is cut short."""

    def count(n):
        return n[0] + 1.0, np.ones(WIDE - 2) * (n[0] + 1.0)

    here, fault = slice(COUNT, COUNT + 1), slice(FAULT, FAULT + 1)
    judged = RoutineCall(Routine(lambda n: (n >= limit) * 1.0, [(1,)], "judge"), (here,), (fault,))
    counted = RoutineCall(Routine(count, [(1,)], "count"), (here,), (here, COPIES))
    tasks = LoopTask((judged,)), LoopTask((counted,))
    return NativeLoop(TickProgram(tasks, step=1e-3, time=0, fault=FAULT, judge=0, early=2, row=WIDE))


@pytest.fixture(scope="module")
def ticks():
    return counting()


def ring(ticks, count, places, paced=False, start=0):
    rings = TickRing(ticks.program, places, stamped=paced)
    rings.words[SharedWord.COUNT], rings.words[SharedWord.START] = count, start
    return rings


def pace(clock, rate=1.0, **how):
    return PacingMemory(clock, settings(Pacing(rate=rate, **how), MS), np.full(2, 1 << 60))


def check_rows(rows, expected):
    """Whole rows of these ticks."""
    expected = np.asarray(expected)
    np.testing.assert_array_equal(rows[:, 0], expected * 1e-3)
    np.testing.assert_array_equal(rows[:, COUNT], expected)
    np.testing.assert_array_equal(rows[:, COPIES], np.repeat(expected[:, None] + 1.0, WIDE - 2, axis=1))


# a clock in machine code that is always on time and notes when ticks were due
OBEDIENT = """
@time = internal global i64 0
define i64 @obedient.now() nounwind {
  %now = load i64, ptr @time
  ret i64 %now
}
define i64 @obedient.wait(i64 %due, ptr %notes) nounwind {
  %count = load i64, ptr %notes
  %next = add i64 %count, 1
  store i64 %next, ptr %notes
  %place = getelementptr inbounds i64, ptr %notes, i64 %next
  store i64 %due, ptr %place
  store i64 %due, ptr @time
  ret i64 %due
}
"""


class Obedient:
    def __init__(self, most):
        self._library = Library(OBEDIENT, ["obedient.now", "obedient.wait"], {})
        now, wait = (self._library[f"obedient.{name}"] for name in ("now", "wait"))
        self._notes = np.zeros(1 + most, dtype=np.int64)
        self.functions = (now, now, wait, self._notes.ctypes.data)

    @property
    def dues(self):
        return self._notes[1 : 1 + self._notes[0]]


# --- numbers and times ---


@pytest.mark.parametrize("rate", [Fraction(7, 10), Fraction(7, 9)], ids=str)
def test_an_hour_of_ticks_ends_where_it_should_to_the_nanosecond(ticks, rate):
    start, clock, memory = 123_456_789_012_345, Obedient(HOUR), np.zeros(SIZE)
    rings, held = ring(ticks, HOUR, 10, paced=True, start=start), pace(clock, float(rate))
    ticks.run(memory, rings, held)
    period, k = MS / rate, np.arange(HOUR)
    exact = start + (2 * k * period.numerator + period.denominator) // (2 * period.denominator)
    np.testing.assert_array_equal(clock.dues, exact)
    assert (rings.status, held.slip_ns) == (LoopStatus.FINISHED, 0)
    assert [int(rings.words[word]) for word in (SharedWord.NUMBER, SharedWord.TAKEN, SharedWord.LOST)] == [
        HOUR,
        10,
        HOUR - 10,
    ]
    assert memory[COUNT] == HOUR
    rows, stamps = rings.read(10)
    check_rows(rows, range(10))
    np.testing.assert_array_equal(stamps[:, 0], exact[:10])


def test_numbers_go_on_where_they_were_left(ticks):
    memory = np.zeros(SIZE)
    rings = ring(ticks, 4, 100)
    for expected in ([0, 1, 2, 3], [4, 5, 6, 7]):
        ticks.run(memory, rings)
        check_rows(rings.read(100)[0], expected)
    rings.words[SharedWord.COUNT] = 0
    ticks.run(memory, rings)
    assert rings.status is LoopStatus.FINISHED and rings.waiting == 0
    assert rings.words[SharedWord.NUMBER] == memory[COUNT] == 8


def test_the_first_tick_may_have_any_number(loops):
    found = loops(5, first=1_000_001, took=[[1]] * 5)
    assert found.numbers == [*range(1_000_001, 1_000_006)]
    assert found.words[SharedWord.NUMBER] == 1_000_006
    assert found.due == [k * MS for k in range(5)]  # from the start on, whatever the number is


# --- the ring ---


def test_a_ring_goes_round(ticks):
    memory, rings, first = np.zeros(SIZE), ring(ticks, 0, 7), 0
    for count in (7, 1, 3, 7, 5, 6, 7):
        rings.words[SharedWord.COUNT] = count
        ticks.run(memory, rings)
        assert rings.waiting == count
        rows = np.concatenate([rings.read(4)[0], rings.read(99)[0]])
        check_rows(rows, range(first, first + count))
        first += count
    assert rings.words[SharedWord.LOST] == 0
    assert rings.read(9)[0].shape == (0, WIDE)


def test_ticks_that_find_no_place_are_counted_and_those_in_the_ring_stay(loops):
    found = loops(12, places=5, took=[[1]] * 12)
    assert found.status is LoopStatus.FINISHED
    assert found.numbers == [0, 1, 2, 3, 4] and found.due == [k * MS for k in range(5)]
    assert [int(found.words[word]) for word in (SharedWord.NUMBER, SharedWord.TAKEN, SharedWord.LOST)] == [12, 5, 7]
    np.testing.assert_array_equal(found.memory, loops(12, took=[[1]] * 12).memory)


def test_places_that_were_read_are_taken_again(loops):
    early = []
    found = loops(12, places=5, then={6: lambda rings: early.append(rings.read(3))})
    for rows, stamps in early:
        assert np.rint(rows[:, 0] * 1000).tolist() == [0, 1, 2]
        assert (stamps[:, 0] - loops.start).tolist() == [0, MS, 2 * MS]
    assert found.numbers == [3, 4, 6, 7, 8]
    assert found.due == [k * MS for k in found.numbers]
    whole = loops(12)
    np.testing.assert_array_equal(found.rows, whole.rows[found.numbers])
    assert [int(found.words[word]) for word in (SharedWord.TAKEN, SharedWord.LOST)] == [8, 4]


YIELD = 2e-5  # s that a thread which waits for another leaves to it


class Reader:
    """Reads a ring while a loop fills it in its own thread."""

    def __init__(self, rings, run):
        self.rings, thread = rings, threading.Thread(target=run)
        found = []
        thread.start()
        while thread.is_alive():
            found.append(rings.read(50))
            time.sleep(YIELD)
        thread.join()
        found.append(rings.read(rings.places))
        self.rows, self.stamps = map(np.concatenate, zip(*found, strict=True))


class Patient:
    """Mixed into a clock: no tick begins before the ring has a place for it."""

    rings: TickRing

    def wait(self, due_ns):
        while self.rings.waiting == self.rings.places:
            time.sleep(YIELD)
        return super().wait(due_ns)  # type: ignore[misc]


def test_what_is_read_from_a_full_ring_is_whole(ticks):
    count = 100_000
    rings = ring(ticks, count, 100)
    memory = np.zeros(SIZE)
    read = Reader(rings, lambda: ticks.run(memory, rings))
    numbers = read.rows[:, COUNT]
    check_rows(read.rows, numbers)
    assert np.all(np.diff(numbers) > 0)
    assert len(numbers) + rings.words[SharedWord.LOST] == count == rings.words[SharedWord.NUMBER]
    assert numbers[:100].tolist() == [*range(100)]


@pytest.mark.parametrize("clock", [lambda: NativeClock(), lambda: Obedient(20_000)], ids=["real", "obedient"])
def test_a_ring_with_places_for_all_loses_nothing(ticks, clock):
    count, clock = 20_000, clock()
    start = clock.now() if isinstance(clock, NativeClock) else 0
    rings = ring(ticks, count, count, paced=True, start=start)
    memory, held = np.zeros(SIZE), pace(clock, rate=100.0, max_consecutive=1_000_000, warm_up=0.0)
    read = Reader(rings, lambda: ticks.run(memory, rings, held))
    assert rings.status is LoopStatus.FINISHED
    check_rows(read.rows, range(count))
    np.testing.assert_array_equal(read.stamps[:, 0], start + np.arange(count) * 10_000)
    assert np.all(np.diff(read.stamps[:, :4], axis=1) >= 0)  # due, woke, ends
    assert np.all(read.stamps[1:, 1] >= read.stamps[:-1, 3])


@pytest.mark.parametrize("engine_kind", ["native", "Python"])
def test_a_small_ring_that_is_read_in_time_loses_nothing(loops, engine_kind):
    engine, count = loops.engines()[engine_kind], 1500
    engine.restore(Snapshot(0, engine.tick_model.memory()))
    engine.arm()
    expected, _ = engine.run(count)
    engine.restore(Snapshot(0, engine.tick_model.memory()))
    clock = type("PatientClock", (Patient, FakeClock), {})(durations=[[1] * loops.tasks] * count)
    clock.rings = rings = TickRing(engine.program, 16, stamped=True)
    rings.words[SharedWord.START] = loops.start
    held = PacingMemory(clock, settings(Pacing(), MS), np.full(loops.tasks, MS))
    read = Reader(rings, lambda: engine.run_ticks(rings, count, held))
    assert (rings.status, rings.words[SharedWord.LOST]) == (LoopStatus.FINISHED, 0)
    np.testing.assert_array_equal(read.rows, expected)
    np.testing.assert_array_equal(read.stamps[:, 0], loops.start + np.arange(count) * MS)
    np.testing.assert_array_equal(read.stamps[:, -1], 1000 * np.arange(1, count + 1))


# --- what ends a loop ---


def ended(found, loops, ticks):
    """How it ended, after so many whole ticks and nothing of the next."""
    assert found.numbers == [*range(ticks)] and found.words[SharedWord.NUMBER] == ticks
    np.testing.assert_array_equal(found.memory, loops(ticks).memory)
    return found.status


def stop(rings):
    rings.words[SharedWord.STOP] = 1


@pytest.mark.parametrize("k", [0, 1, 5])
def test_the_word_to_stop_is_seen_before_the_next_tick(loops, k):
    assert ended(loops(9, then={k: stop}), loops, k) is LoopStatus.STOPPED


@pytest.mark.parametrize("late", [None, 2 * SECOND, -1], ids=["no trigger", "jumped", "went back"])
def test_the_word_to_stop_comes_first(loops, late):
    assert ended(loops(9, late=[0, 0, late], then={2: stop}), loops, 2) is LoopStatus.STOPPED


# how late waits 0 to 3 end, what tick 2 takes → how it ends, after how many ticks
CLOCKS = {
    "ahead by 1 s": ([0, 0, 0, SECOND], 0, LoopStatus.FINISHED, 9),
    "ahead by more": ([0, 0, 0, SECOND + 1], 0, LoopStatus.JUMPED, 3),
    "ahead by more at first": ([SECOND + 1], 0, LoopStatus.JUMPED, 0),
    "ahead by 1 s after a long tick": ([0, 0, 0, SECOND], 3 * SECOND, LoopStatus.FINISHED, 9),
    "ahead by more after a long tick": ([0, 0, 0, SECOND + 1], 3 * SECOND, LoopStatus.JUMPED, 3),
    "a long tick": ([], 3 * SECOND, LoopStatus.FINISHED, 9),
    "a wait that is over too soon": ([0, 0, 0, -1], 0, LoopStatus.WENT_BACK, 3),
    "far too soon": ([-MS], 0, LoopStatus.WENT_BACK, 0),
    "back, though the tick is due": ([0, 0, 0, -1], 3 * MS, LoopStatus.WENT_BACK, 3),
    "as it was": ([0, 0, 0, 0], 3 * MS, LoopStatus.FINISHED, 9),
}


@pytest.mark.parametrize(("late", "took", "status", "taken"), CLOCKS.values(), ids=CLOCKS)
def test_a_clock_that_leaps_ends_the_run_before_the_tick(loops, late, took, status, taken):
    found = loops(9, Pacing(warm_up=0.0), late=late, took=[[0], [0], [took]])
    assert ended(found, loops, taken) is status


def test_a_clock_jump_causes_no_clock_slip(loops):
    """Tick 1 misses 4 ticks, whose time was given up before tick 2; what tick 2 misses is found no more."""
    pacing = Pacing(overrun="skip", warm_up=0.0)
    found = loops(9, pacing, late=[0, 0, 0, 2 * SECOND], took=[[0], [5 * MS], [8 * MS]])
    assert (found.status, found.slip) == (LoopStatus.JUMPED, 4 * MS)


@pytest.mark.parametrize("kind", ["fast", "on time"])
@pytest.mark.parametrize("n", [0, 6])
def test_a_fault_leaves_its_row_and_nothing_after_it(kind, n):
    ticks, memory = counting(limit=n), np.zeros(SIZE)
    rings = ring(ticks, 20, 20, paced=kind == "on time")
    ticks.run(memory, rings, pace(Obedient(20)) if kind == "on time" else None)
    rows, _ = rings.read(20)
    assert (rings.status, len(rows), rings.words[SharedWord.NUMBER]) == (LoopStatus.FAULT, n + 1, n + 1)
    check_rows(rows[:-1], range(n))
    np.testing.assert_array_equal(rows[-1, : COUNT + 1], [n * 1e-3, n])
    np.testing.assert_array_equal(rows[-1, COPIES], n)  # as they were
    assert memory[COUNT] == n and memory[FAULT] == 1.0


LEAVING = ("joints.a.limits={upper: 0.0065}",)  # rad, at 1 rad/s


@pytest.mark.parametrize("first", [0, 1, 2])
def test_the_guard_cuts_a_tick_short(loops, first):
    """Neither commands nor the plant go on; the tasks left out end with the guard."""
    took = [10, 20, 30, 40, 50, 60, 70]
    found = loops(20, rig=LEAVING, took=[took] * 20, first=first)
    assert found.status is LoopStatus.FAULT
    assert found.numbers == [*range(first, first + 7)] and found.words[SharedWord.NUMBER] == first + 7
    tick_model = loops.engines(*LEAVING)["native"].tick_model
    row = tick_model.row.unpack(found.rows[-1])
    assert row["guard_fault"].tolist() == [CODES["position"], 0.0]
    plant = tick_model.layout.place("plant").where
    np.testing.assert_array_equal(found.memory[plant], found.rows[-1][plant])
    assert np.any(found.rows[-1][plant] != found.rows[-2][plant])
    ran = 4 if found.numbers[-1] % 3 == 1 else 3  # the second controller, too
    ends = [found.woke[-1] + sum(took[: k + 1]) for k in range(ran)]
    ends[2:2] = [ends[1]] * (4 - ran)
    assert found.ends[-1] == [*ends, *[ends[-1]] * 3]


@pytest.mark.parametrize("engine_kind", ["native", "Python"])
def test_a_first_task_that_does_not_run_ends_as_the_tick_begins(loops, engine_kind):
    tasks = LoopTask((), ticks=2), LoopTask(()), LoopTask((), ticks=3, phase=1)
    program = TickProgram(tasks, step=1e-3, time=0, fault=1, judge=1, early=1, row=1)
    clock = FakeClock(late=[5, 6, 7, 8], durations=[[10, 20, 30]] * 4)
    rings = TickRing(program, 4, stamped=True)
    rings.words[SharedWord.START], rings.words[SharedWord.COUNT] = loops.start, 4
    held = PacingMemory(clock, settings(Pacing(), MS), np.full(3, MS))
    if engine_kind == "native":
        NativeLoop(program).run(np.zeros(2), rings, held)
    else:
        keeper = ClockPacer(held, program, rings.words, interpret=True)
        for k in range(4):
            assert keeper.wait(rings.words) is LoopStatus.RUNNING
            for i, task in enumerate(tasks):
                if k % task.ticks == task.phase:
                    assert keeper.deadline(i, 0) == loops.start + k * MS + MS
                    keeper.ended(i)
            keeper.stamp(rings, k)
            assert keeper.schedule_next(k, k) is LoopStatus.RUNNING
    found = rings.stamps[:4, 1:-1] - loops.start - MS * np.arange(4)[:, None]
    assert found.tolist() == [[5, 15, 35, 35], [6, 6, 16, 36], [7, 17, 37, 37], [8, 8, 18, 18]]


def test_a_fault_ends_a_run_whose_row_finds_no_place(loops):
    found = loops(20, rig=LEAVING, places=3)
    assert found.status is LoopStatus.FAULT and found.numbers == [0, 1, 2]
    assert found.words[SharedWord.LOST] == found.words[SharedWord.NUMBER] - 3 > 2


def test_a_fault_ends_a_run_before_lateness_does(loops):
    n = loops(20, rig=LEAVING).words[SharedWord.NUMBER] - 1
    took = [[0]] * n + [[2 * MS]]
    found = loops(20, Pacing(overrun="stop", max_consecutive=1, warm_up=0.0), MS, rig=LEAVING, took=took)
    assert (found.status, len(found.rows)) == (LoopStatus.FAULT, n + 1)


# --- the loop in Python alone ---


def test_drivers_receive_deadlines_on_the_clock(loops, monkeypatch):
    """due + the deadline of their task; a task takes the time that goes by while it runs."""
    engine = loops.engines()["Python"]
    ((driver, _),) = engine.drivers
    clock, reported, read, write = FakeClock(late=[7] * 4), [], driver.read, driver.write

    def slow(out, until):
        clock.time += 900
        reported.append(until - loops.start)
        read(out, until)

    def written(command, until):
        reported.append((until - loops.start, command.valid_until_ns - until))
        write(command, until)

    monkeypatch.setattr(driver, "read", slow)
    monkeypatch.setattr(driver, "write", written)
    found = loops.take(engine, 3, clock, Pacing(rate=2.0), [1000 * (k + 1) for k in range(7)])
    assert reported == [1000, (5000, 20 * MS), 501_000, (505_000, 20 * MS), 1_001_000, (1_005_000, 20 * MS)]
    assert found.due == [0, 500_000, 1_000_000]
    assert found.ends == [[due + 907] * 7 for due in found.due]
