"""Faults at any point of a tick stop the drivers, and the run reports them."""

from itertools import count

import numpy as np
import pytest

from cosim.execution.python_pacer import ClockPacer, NoPacer
from cosim.execution.scheduler import SchedulerState
from cosim.simulation.loop.tick_ring import SharedWord
from tests.execution.scheduler_helpers import MS, NATIVE, PUSH, RIG, Ticks, failing
from tests.kit.processes import until
from tests.kit.rigs import rig_in


def on_call(owner, name, number, what, patch=setattr):
    """From here on call `number` (from 0) of a method does `what(original, *arguments)` instead."""
    original, calls = getattr(owner, name), count()
    patch(owner, name, lambda *a: what(original, *a) if next(calls) == number else original(*a))


class Faults:
    """Ways to go wrong in tick 3, of a bench that is ready; each notes when it happens."""

    def __init__(self, bench, monkeypatch):
        self.bench, self.monkeypatch = bench, monkeypatch
        self.tick_model = bench.rig.tick_model

    def note(self):
        self.bench.log.append("FAULT")

    def break_(self, *_):
        self.note()
        raise ZeroDivisionError("by nothing")

    def driver(self, number, name):
        on_call(self.bench.drivers[number], name, 3, self.break_)

    def drive(self, number):
        def faulty(original, out, deadline_ns):
            original(out, deadline_ns)
            self.note()
            out.fault[:] = 7

        on_call(self.bench.drivers[number], "read", 3, faulty)

    def measured(self, what, value):
        def wrong(original, out, deadline_ns):
            original(out, deadline_ns)
            self.note()
            getattr(out, what)[0] = value

        on_call(self.bench.drivers[0], "read", 3, wrong)

    def controller(self, number, how):
        def wrong(original, *arguments):
            x, y = original(*arguments)
            self.note()
            return x, y | {"effort": how(y["effort"])}

        block = self.tick_model.loops[number].block
        on_call(block, "update", 3, self.break_ if how is None else wrong, self.monkeypatch.setattr)

    def keeper(self, name):
        """Class-wide, as the loop makes its own."""
        for kind in (NoPacer, ClockPacer):
            original, calls = getattr(kind, name), count()

            def broken(*arguments, original=original, calls=calls):
                return self.break_() if next(calls) == 3 else original(*arguments)

            self.monkeypatch.setattr(kind, name, broken)

    def clock(self, jump):
        def jumping(original, due_ns):
            self.note()
            return original(due_ns) + jump

        on_call(self.bench.clock, "wait", 3, self.break_ if jump is None else jumping)

    def late(self):
        def slow(original, *arguments):
            self.bench.clock.time += 5 * MS
            return original(*arguments)

        def noted(original, *arguments):
            original(*arguments)
            self.note()

        for number in (2, 3):
            on_call(self.tick_model.loops[0].block, "update", number, slow, self.monkeypatch.setattr)
        on_call(self.bench.drivers[1], "write", 3, noted)


# (what to do, rows that are left)
POINTS = {
    "read of the first driver": (lambda f: f.driver(0, "read"), 3),
    "read of the last driver": (lambda f: f.driver(1, "read"), 3),
    "fault of a drive": (lambda f: f.drive(1), 3),
    "first controller raises": (lambda f: f.controller(0, None), 3),
    "last controller raises": (lambda f: f.controller(1, None), 3),
    "shape": (lambda f: f.controller(1, lambda effort: np.zeros(2)), 3),
    "no numbers": (lambda f: f.controller(0, lambda effort: np.array(["1"])), 3),
    "command that is not finite": (lambda f: f.controller(1, lambda effort: effort * np.nan), 4),
    "measurement that is not finite": (lambda f: f.measured("position", np.nan), 4),
    "limit": (lambda f: f.measured("velocity", -20.5), 4),
    "write of the first driver": (lambda f: f.driver(0, "write"), 3),
    "write of the last driver": (lambda f: f.driver(1, "write"), 3),
    "row and stamps": (lambda f: f.keeper("stamp"), 3),
    "policy": (lambda f: f.keeper("schedule_next"), 4),
    "wait": (lambda f: f.keeper("wait"), 3),
}
ON_TIME = {
    "clock": (lambda f: f.clock(None), 3),
    "clock jumps": (lambda f: f.clock(1000 * MS + 1), 3),
    "clock goes back": (lambda f: f.clock(-1), 3),
    "budget": (lambda f: f.late(), 4),
}
# what the keepers of the time do differs in real time
TIMED = ("read of the first driver", "last controller raises", "row and stamps", "policy", "wait", *ON_TIME)
ALL = [*((name, False) for name in POINTS), *((name, True) for name in TIMED)]
# figures and places that are none of the test's business, and the word for what the thread waits for
MEASURED = r"\S+\.py:\d+( \S+)?(?=\))", r"(?<=velocity )\S+", r"(?<=finite \(at ).*?(?=\))", r"(?<=last one \()[\w' ]+"


def motors_are_off(bench):
    """Nothing was written after the fault, and every driver was stopped."""
    after = bench.log[bench.log.index("FAULT") :]
    assert not any(what.startswith("write") for what in after), after
    assert {"stop a", "stop b+c"} <= set(after)
    assert not any(driver.inner._enabled for driver in bench.drivers)
    assert bench.scheduler.engine.view("request").tolist() == [0.0] * 3


@pytest.mark.parametrize(("point", "paced"), ALL)
def test_a_fault_anywhere_in_a_tick_stops_the_drivers_before_anything_is_written(
    bench_of, monkeypatch, said, point, paced
):
    inject, rows = (POINTS | ON_TIME)[point]
    bench = bench_of(paced=paced, overrun="stop", max_consecutive=2, warm_up=0.0)
    bench.scheduler.prepare()
    with monkeypatch.context() as patched:
        inject(Faults(bench, patched))
        ticks = Ticks(bench.start(20))
    assert bench.scheduler.state is SchedulerState.FAULT
    said(bench.scheduler.fault, *MEASURED)
    assert ticks.numbers == list(range(rows))
    motors_are_off(bench)
    # it can go on after that
    bench.scheduler.reset()
    assert (bench.scheduler.state, bench.scheduler.fault) == (SchedulerState.STOPPED, "")
    again = Ticks(bench.start(5))
    assert len(again.numbers) == 5 and bench.scheduler.state is SchedulerState.STOPPED


PARTS = {"known_acceleration": "read", "check_command": "guard", "advance": "step", "measure": "read"}


@pytest.mark.parametrize("part", PARTS)
def test_a_failing_part_of_the_tick_is_a_fault(bench_of, tmp_path, said, part):
    bench = bench_of(rig=rig_in(tmp_path, RIG, interpret=True, push=PUSH), paced=part == "measure")
    tick_model, ready = bench.rig.tick_model, []
    original = getattr(tick_model, part)

    def broken(t, *arguments):
        if ready and float(t) > 0.0025:
            bench.log.append("FAULT")
            raise ZeroDivisionError("by nothing")
        return original(t, *arguments)

    setattr(tick_model, part, broken)
    vars(tick_model).pop("tasks")  # built again, with the broken function
    bench.scheduler.prepare()
    ready.append(True)
    ticks = Ticks(bench.start(20))
    said(bench.scheduler.fault, *MEASURED)
    assert ticks.numbers == [0, 1, 2]
    motors_are_off(bench)


@pytest.mark.parametrize("paced", [False, True])
def test_a_driver_that_cannot_even_stop_does_not_keep_the_others_from_it(bench_of, monkeypatch, paced):
    bench = bench_of(paced=paced)
    bench.scheduler.prepare()
    first, last = bench.drivers
    first.stop = failing(OSError("unplugged"))
    Faults(bench, monkeypatch).driver(0, "read")
    Ticks(bench.start(20))
    assert bench.scheduler.state is SchedulerState.FAULT
    assert "stop b+c" in bench.log[bench.log.index("FAULT") :] and not last.inner._enabled
    first.close = failing(OSError("unplugged"))
    bench.scheduler.close()
    assert bench.log[-1] == "close b+c"


@pytest.mark.parametrize("paced", [False, True])
def test_an_interrupt_in_the_loop_keeps_what_there_is_and_stops_the_drivers(bench_of, paced):
    bench = bench_of(paced=paced)
    bench.scheduler.prepare()

    def interrupt(*_):
        bench.log.append("FAULT")
        raise KeyboardInterrupt

    on_call(bench.drivers[1], "read", 3, interrupt)
    scheduler, numbers = bench.start(20), []
    with pytest.raises(KeyboardInterrupt):
        for block in iter(scheduler.read, None):
            numbers += block.numbers.tolist()
    scheduler.stop()
    motors_are_off(bench)
    assert numbers + Ticks(scheduler).numbers == [0, 1, 2]
    scheduler.close()
    assert bench.log[-1] == "close b+c"


@pytest.mark.parametrize("paced", [False, True])
def test_machine_code_that_meets_a_limit_stops(bench_of, said, paced):
    bench = bench_of(NATIVE, native=True, paced=paced)
    scheduler = bench.start(1000)
    numbers = Ticks(scheduler).numbers
    assert numbers == list(range(numbers[-1] + 1)) and 10 < numbers[-1] < 500
    assert scheduler.fault.startswith(f"stopped at tick {numbers[-1]} (t = ")
    said(scheduler.fault, r"\d+ \(t = \S+", r"(?<=is at 0\.30)\d+", r"(?<=at )[\d.]+ rad at t = \S+")
    assert scheduler.state is SchedulerState.FAULT
    assert scheduler.engine.view("request").tolist() == [0.0]


@pytest.mark.parametrize("jump", [1000 * MS + 1, -1], ids=["jumps", "goes back"])
def test_machine_code_with_a_broken_clock_stops(bench_of, said, jump):
    bench = bench_of(NATIVE, native=True, paced=True)
    bench.scheduler.prepare()
    on_call(bench.clock, "wait", 3, lambda wait, due: wait(due) + jump)
    ticks = Ticks(bench.start(1000))
    said(bench.scheduler.fault)
    assert ticks.numbers == [0, 1, 2]
    assert bench.scheduler.engine.view("request").tolist() == [0.0]


@pytest.mark.parametrize("native", [False, True])
def test_a_real_time_run_can_be_stopped_between_two_ticks(bench_of, native):
    bench = bench_of(NATIVE, native=native, paced=True, groups=((0,),))
    bench.clock.block(7, lambda: bench.scheduler.mode.ring.words[SharedWord.STOP])
    scheduler = bench.start(1000)
    until(lambda: len(bench.clock.waits) >= 7)
    scheduler.stop()
    assert (scheduler.state, scheduler.fault) == (SchedulerState.STOPPED, "")
    assert Ticks(scheduler).numbers == list(range(7))
    assert scheduler.engine.view("request").tolist() == [0.0]


def test_a_fault_without_room_for_its_row_is_reported(bench_of, monkeypatch):
    monkeypatch.setattr("cosim.execution.paced.MIN_PLACES", 1 << 4)
    monkeypatch.setattr("cosim.execution.paced.RING_TIME", 0.0)
    found = []
    for slow in (False, True):
        scheduler = bench_of(NATIVE, native=True, paced=True).start(1000)
        if slow:
            scheduler.mode.future.result()
        Ticks(scheduler)
        found.append(scheduler.fault)
    assert found[1] == found[0] and "outside its limits" in found[1]
    assert scheduler.timing.lost_rows > 0
