"""Every driver keeps deadlines; its feedback and its commands have times."""

import math
from collections import deque

import numpy as np
import pytest

from cosim.core.errors import RunError
from cosim.plugins.drivers.transport import CanFrame
from tests.conformance.marks import (
    EVERY,
    IN_PYTHON,
    PUSH,
    assert_has_fix,
    drivers,
    engines,
    every,
    over,
    with_each,
    without_b,
)
from tests.kit.clock import MS

from .families import Bench, stepped_cases
from .rules import enforced, rule
from .wires import Desk


@with_each("on", [True, False], EVERY)
@rule(8)
def test_read_waits_no_longer_than_its_deadline_and_keeps_the_last_values(bench, on):
    bench.open("effort" if on else "")
    if on:
        bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)
    bench.disturb("drop")
    bench.there(lambda: None)
    bench.read()  # feedback in transit
    bench.read()
    kept = bench.out.t_ns, bench.out.position.copy(), bench.out.velocity.copy(), bench.out.effort.copy()
    for within in (0.0, 0.005, -1.0):
        if on:
            bench.write()
        begun = bench.now()
        with enforced(7):
            bench.read(within)
            assert bench.now() - begun < 500 * MS
        assert bench.out.t_ns == kept[0]
        for seen, known in zip((bench.out.position, bench.out.velocity, bench.out.effort), kept[1:], strict=True):
            np.testing.assert_array_equal(seen, known)


@every
@rule(7)
def test_read_returns_as_soon_as_all_have_answered(bench):
    bench.open("effort")
    for _ in range(3):
        bench.write()
        begun = bench.now()
        bench.read(10.0)
        assert bench.now() - begun < 5000 * MS
        with enforced(8):
            assert begun - 1000 * MS < bench.out.t_ns <= bench.now()
            bench.write()
            bench.fresh()  # later than this
            assert bench.out.t_ns <= bench.now()


@over(*(case for case in (*stepped_cases(), *IN_PYTHON[:1]) if case.line != "pty"))
@rule(8)
def test_the_time_is_that_of_the_oldest_feedback(case, tmp_path):
    """On these connections every frame is of one drive; the frames of one are missing."""
    (tmp_path / "alone").mkdir()
    with Bench(case, tmp_path / "alone", host=without_b, device=without_b) as alone:
        of_a = {item.id for item in spoken(alone)}
    with Bench(case, tmp_path) as bench:
        assert {item.id for item in spoken(bench)} > of_a
        through = bench.line.faulty_connection.through
        bench.line.faulty_connection.through = lambda items, t_ns, inward: through(
            items if inward else [item for item in items if item.id in of_a], t_ns, inward
        )
        bench.there(lambda: None)
        bench.write()
        bench.read()
        heard, position = bench.out.t_ns, bench.out.position.copy()
        for _ in range(5):
            bench.write(effort=PUSH)
            bench.read(0.02)
        assert bench.out.t_ns == heard
        assert bench.out.position[1] == position[1]
        assert bench.out.position[0] != position[0]


def spoken(bench: Bench) -> list[CanFrame]:
    """The drives' frames of some cycles."""
    answered: list[CanFrame] = []
    send = bench.line.link.send
    bench.line.link.send = lambda item, deadline: (answered.append(item), send(item, deadline))
    bench.open("effort")
    begun = bench.emulation.steps
    bench.drive(lambda: bench.emulation.steps > begun + 150, effort=0.5 * PUSH)
    return answered


@engines
@rule(9)
def test_without_commands_the_drives_stop_by_themselves_however_often_they_are_read(case, tmp_path):
    watchdog = 0.3
    with Bench(case, tmp_path, watchdog=watchdog) as bench:
        bench.open("effort")
        assert bench.driver.watchdog == watchdog
        begun = bench.now()
        bench.drive(lambda: bench.now() - begun > 2 * watchdog * 1e9, effort=[PUSH, -PUSH])
        written = bench.now()
        for _ in bench.until(lambda: bench.out.fault.all()):
            bench.read()
        assert bench.now() - written > 0.5 * watchdog * 1e9
        assert bench.out.fault.all()
        for words in bench.words():
            assert_has_fix(words)
        bench.off()


@engines
@rule(10)
def test_a_command_that_is_no_longer_valid_is_not_sent(bench):
    bench.open("effort")
    bench.drive(lambda: all(bench.asked), effort=PUSH)
    asked = bench.asked
    with pytest.raises(RunError):
        bench.write(effort=-PUSH, valid=-1e-6)
    steps = bench.emulation.steps + 5
    for _ in bench.until(lambda: bench.emulation.steps > steps):
        assert bench.asked == asked


@drivers
@pytest.mark.parametrize("mode", ["effort", "velocity", "position"])
@rule(10)
def test_a_command_that_is_not_finite_is_not_sent(case, tmp_path, mode):
    with Bench(case, tmp_path, mode=mode) as bench:
        bench.open(mode)
        for value in (math.nan, math.inf, -math.inf):
            with pytest.raises(RunError, match="is not finite and was not sent"):
                bench.write(**{mode: [0.0, value]})


@drivers
@rule(7)
def test_read_waits_for_the_slowest_answer_of_the_slowest_drive(case, tmp_path, monkeypatch):
    """The answers to a command come late, from each of them on."""
    desk = Desk(case, tmp_path, monkeypatch)
    desk.driver.open()
    desk.driver.enable("effort")
    desk.cycle(3, effort=0.01)
    with desk.recorded() as (_, answers):
        desk.cycle(1, effort=0.01)
    wire, handle, receive = desk.wire, desk.emulator.handle, desk.wire.receive
    for k in range(len(answers)):
        early, late = k, deque()
        due_ns = wire.t_ns + 3 * MS

        def held(item, t_ns, late=late):
            nonlocal early
            found = handle(item, t_ns)
            in_time, early = found[:early], max(0, early - len(found))
            late.extend(found[len(in_time) :])
            return in_time

        def receiving(deadline_ns, late=late, due_ns=due_ns):
            item = receive(min(deadline_ns, due_ns) if wire.t_ns < due_ns else wire.t_ns)
            return late.popleft() if item is None and late and wire.t_ns >= due_ns else item

        with monkeypatch.context() as patch:
            patch.setattr(desk.emulator, "handle", held)
            patch.setattr(wire, "receive", receiving)
            desk.driver.write(desk.command(effort=0.01), wire.t_ns + 20 * MS)
            desk.driver.read(desk.out, wire.t_ns + 20 * MS)
        assert not late and due_ns <= wire.t_ns < due_ns + 10 * MS, f"from answer {k} of {len(answers)} on"
        wire.step()
