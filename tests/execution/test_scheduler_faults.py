"""Faults at any point of a tick stop the drivers, and the run reports them."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

from cosim.execution.python_pacer import ClockPacer, NoPacer
from cosim.execution.scheduler import SchedulerState
from cosim.timing.tick_ring import SharedWord
from tests.execution.scheduler_helpers import MS, Ticks, failing


def on_call(owner, name, number, what):
    """From here on call `number` (from 0) of a method does `what(original, *arguments)` instead."""
    original, calls = getattr(owner, name), iter(range(10**9))
    setattr(owner, name, lambda *a: what(original, *a) if next(calls) == number else original(*a))


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

        on_call(self.tick_model.loops[number].block, "update", 3, self.break_ if how is None else wrong)

    def keeper(self, name):
        """Class-wide, as the loop makes its own."""
        for kind in (NoPacer, ClockPacer):
            original, calls = getattr(kind, name), iter(range(10**9))

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
            on_call(self.tick_model.loops[0].block, "update", number, slow)
        on_call(self.bench.drivers[1], "write", 3, noted)


AT = "stopped at tick 3 (t = 0.003 s): "


BY_NOTHING = f"ZeroDivisionError: by nothing ({__file__}:LINE)"


# name -> (what to do, what is said, rows that are left)
POINTS = {
    "read of the first driver": (lambda f: f.driver(0, "read"), f"the driver of a failed: {BY_NOTHING}", 3),
    "read of the last driver": (lambda f: f.driver(1, "read"), f"the driver of b, c failed: {BY_NOTHING}", 3),
    "fault of a drive": (lambda f: f.drive(1), "the drive of joint 'b' reports fault 7; clear it first", 3),
    "first controller raises": (lambda f: f.controller(0, None), f"controller 'first' failed: {BY_NOTHING}", 3),
    "last controller raises": (lambda f: f.controller(1, None), f"controller 'second' failed: {BY_NOTHING}", 3),
    "shape": (
        lambda f: f.controller(1, lambda effort: np.zeros(2)),
        "controller 'second' failed: the output 'effort' has shape (2,); it must be (1,) (USER)",
        3,
    ),
    "no numbers": (
        lambda f: f.controller(0, lambda effort: np.array(["1"])),
        "controller 'first' failed: the output 'effort' must be real numbers of shape (1,), is"
        " array(['1'], dtype='<U1') (str) (USER)",
        3,
    ),
    "command that is not finite": (
        lambda f: f.controller(1, lambda effort: effort * np.nan),
        "joint 'b' is commanded an effort that is not finite (at MEASURED); check its controller",
        4,
    ),
    "measurement that is not finite": (
        lambda f: f.measured("position", np.nan),
        "joint 'a' is not finite (position nan rad, velocity NUMBER rad/s); try a smaller schedule.step, more"
        " schedule.substeps or schedule.integrator: rosenbrock",
        4,
    ),
    "limit": (
        lambda f: f.measured("velocity", -20.5),
        "joint 'a' moves at -20.5 rad/s, above its limit of 20 rad/s; slow the trajectory down, lower the controller"
        " gains or change joints.a.limits",
        4,
    ),
    "write of the first driver": (lambda f: f.driver(0, "write"), f"the driver of a failed: {BY_NOTHING}", 3),
    "write of the last driver": (lambda f: f.driver(1, "write"), f"the driver of b, c failed: {BY_NOTHING}", 3),
    "row and stamps": (lambda f: f.keeper("stamp"), BY_NOTHING, 3),
    "policy": (lambda f: f.keeper("schedule_next"), BY_NOTHING, 4),
    "wait": (lambda f: f.keeper("wait"), BY_NOTHING, 3),
}


ON_TIME = {
    "clock": (lambda f: f.clock(None), BY_NOTHING, 3),
    "clock jumps": (
        lambda f: f.clock(1000 * MS + 1),
        "the clock jumped ahead by more than 1 s: the machine was suspended or the program was stopped; run it"
        " again without that",
        3,
    ),
    "clock goes back": (
        lambda f: f.clock(-1),
        "the clock went back; real time needs a steady clock: see 'cosim doctor'",
        3,
    ),
    "budget": (
        lambda f: f.late(),
        "2 ticks in a row missed a deadline, the last one (CAUSE); make schedule.step longer, the rig smaller, or allow"
        " more with schedule.realtime.max_consecutive",
        4,
    ),
}


ALL = [(name, paced) for name in POINTS for paced in (False, True)] + [(name, True) for name in ON_TIME]


BLANKS = {
    "LINE": r"\d+",
    "PRODUCT": r"\S+\.py:\d+",
    "USER": r"\S+\.py:\d+ \S+",
    "NUMBER": r"\S+",
    "MEASURED": r"\S+ rad, \S+ rad/s",
    "CAUSE": r"[\w' ]+",
}


def says(text, expected):
    """Equal but for figures that are none of the test's business."""
    pattern = re.escape(expected)
    for word, blank in BLANKS.items():
        pattern = pattern.replace(word, blank)
    assert re.fullmatch(pattern, text), (text, expected)


def motors_are_off(bench):
    """Nothing was written after the fault, and every driver was stopped."""
    after = bench.log[bench.log.index("FAULT") :]
    assert not any(what.startswith("write") for what in after), after
    assert {"stop a", "stop b+c"} <= set(after)
    assert not any(driver.inner._enabled for driver in bench.drivers)
    assert bench.scheduler.engine.view("request").tolist() == [0.0] * 3


@pytest.mark.parametrize(("point", "paced"), ALL)
def test_a_fault_anywhere_in_a_tick_stops_the_drivers_before_anything_is_written(bench_of, monkeypatch, point, paced):
    inject, said, rows = (POINTS | ON_TIME)[point]
    bench = bench_of(paced=paced, overrun="stop", max_consecutive=2, warm_up=0.0)
    bench.scheduler.prepare()
    with monkeypatch.context() as patched:
        inject(Faults(bench, patched))
        ticks = Ticks(bench.start(20))
    assert bench.scheduler.state is SchedulerState.FAULT
    tick = 4 if point == "policy" else 3
    says(bench.scheduler.fault, AT.replace("3", str(tick)) + said)
    assert ticks.numbers == list(range(rows))
    motors_are_off(bench)
    # it can go on after that
    bench.scheduler.reset()
    assert (bench.scheduler.state, bench.scheduler.fault) == (SchedulerState.STOPPED, "")
    again = Ticks(bench.start(5))
    assert len(again.numbers) == 5 and bench.scheduler.state is SchedulerState.STOPPED


PARTS = {"known_acceleration": "read", "check_command": "guard", "advance": "step", "measure": "read"}


@pytest.mark.parametrize("paced", [False, True])
@pytest.mark.parametrize("part", PARTS)
def test_a_failing_part_of_the_tick_is_a_fault(bench_of, part, paced):
    bench = bench_of(paced=paced, interpret=True)
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
    who = "the driver of a failed: " if part == "measure" else ""
    says(bench.scheduler.fault, AT + who + BY_NOTHING)
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


NATIVE = """
mechanism:
  bodies: [{name: a, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}]
joints: {a: {limits: {upper: 0.3}, encoder: {cpr: 10000}}}
controllers:
  - {name: hold, type: pid, kp: 40, ki: 20, kd: 4, period: 3 ms,
     trajectory: {type: sine, amplitude: 20 deg, frequency: 3 Hz}}
"""


@pytest.mark.parametrize("paced", [False, True])
def test_machine_code_that_meets_a_limit_stops(bench_of, paced):
    bench = bench_of(text=NATIVE, native=True, paced=paced)
    scheduler = bench.start(1000)
    ticks = Ticks(scheduler)
    tick = ticks.numbers[-1]
    assert ticks.numbers == list(range(tick + 1)) and 10 < tick < 500
    begun = rf"stopped at tick {tick} \(t = 0\.\d+ s\): joint 'a' is at 0\.30\d+ rad, outside its limits -inf to 0\.3 "
    assert re.match(begun, scheduler.fault) and scheduler.state is SchedulerState.FAULT
    assert scheduler.engine.view("request").tolist() == [0.0]


@pytest.mark.parametrize(("jump", "said"), [(1000 * MS + 1, "clock jumps"), (-1, "clock goes back")])
def test_machine_code_with_a_broken_clock_stops(bench_of, jump, said):
    bench = bench_of(text=NATIVE, native=True, paced=True)
    bench.scheduler.prepare()
    waits = iter(range(10**9))
    wait = bench.clock.wait
    bench.clock.wait = lambda due: wait(due) + (jump if next(waits) == 3 else 0)
    ticks = Ticks(bench.start(1000))
    says(bench.scheduler.fault, AT + ON_TIME[said][1])
    assert ticks.numbers == [0, 1, 2]
    assert bench.scheduler.engine.view("request").tolist() == [0.0]


@pytest.mark.parametrize("native", [False, True])
def test_a_real_time_run_can_be_stopped_between_two_ticks(bench_of, native):
    bench = bench_of(text=NATIVE, native=native, paced=True, groups=((0,),))
    bench.clock.block(7, lambda: bench.scheduler.mode.ring.words[SharedWord.STOP])
    scheduler = bench.start(1000)
    while len(bench.clock.waits) < 7:
        time.sleep(1e-3)
    scheduler.stop()
    assert (scheduler.state, scheduler.fault) == (SchedulerState.STOPPED, "")
    assert Ticks(scheduler).numbers == list(range(7))
    assert scheduler.engine.view("request").tolist() == [0.0]


def test_a_fault_without_room_for_its_row_is_reported(bench_of, monkeypatch):
    monkeypatch.setattr("cosim.execution.paced.MIN_PLACES", 1 << 4)
    monkeypatch.setattr("cosim.execution.paced.RING_TIME", 0.0)
    found = []
    for slow in (False, True):
        bench = bench_of(text=NATIVE, native=True, paced=True)
        scheduler = bench.start(1000)
        if slow:
            scheduler.mode.future.result()
        Ticks(scheduler)
        found.append(scheduler.fault)
    assert found[1] == found[0] and "outside its limits" in found[1]
    assert scheduler.timing.lost_rows > 0
