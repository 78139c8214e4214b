"""Every driver from opening to closing: motors off, modes, stop."""

import threading

import numpy as np
import pytest

from cosim.core.errors import RunError
from cosim.plugins.drivers.transport import CanBus, CanFrame, CanParams, now
from tests.conformance.marks import ENGINES, EVERY, PUSH, drivers, engines, every, in_turn, on_lines, with_each
from tests.kit.clock import MS

from .families import JOINTS, SCALES, START, Bench, cases, folders, lacking
from .rules import rule

QUANTUM = 2e-3  # rad, the coarsest resolution of an encoder
LIMIT = 0.2  # N·m of the guard, at either drive
MODES = ("effort", "velocity", "position")
STOPPING = 1000  # ms of the drives' time within which a stopped drive is off, also with a ramp


@pytest.mark.parametrize("name", folders())
def test_a_folder_with_a_codec_or_a_driver_is_a_family(name):
    assert lacking(name) == ""
    assert any(case.family == name for case in cases())


@pytest.mark.real_time
def test_two_buses_of_one_machine_are_separate():
    channels = ("239.255.7.1", "239.255.7.2", "239.255.7.1")
    buses = [CanBus(CanParams("udp_multicast", channel), lambda *keys: None) for channel in channels]
    try:
        for bus in buses:
            bus.open()
        buses[0].send(CanFrame(1, b"here"), now() + 1000 * MS)
        heard = buses[2].receive(now() + 5000 * MS)
        assert heard is not None and heard.data == b"here"
        assert buses[1].receive(now() + 50 * MS) is None
    finally:
        for bus in buses:
            bus.close()


@on_lines
@rule(1)
def test_open_leaves_the_motors_off_and_measures_their_positions(bench):
    driver = bench.open()
    assert driver.joints == JOINTS
    assert driver.modes == bench.case.module.MODES
    np.testing.assert_allclose(bench.out.position, START, atol=QUANTUM)
    np.testing.assert_allclose(bench.out.velocity, 0.0, atol=1e-3)
    assert not bench.out.fault.any()
    bench.off()
    np.testing.assert_allclose(bench.truth[0], START, atol=1e-9)


@drivers
@rule(2)
def test_nothing_is_written_before_the_motors_are_on(bench):
    with pytest.raises(RunError):
        bench.write(effort=PUSH)
    bench.open()
    with pytest.raises(RunError, match="are off; enable"):
        bench.write(effort=PUSH)
    bench.off()


@with_each("mode", MODES, ENGINES)
@rule(3)
def test_a_mode_switches_on_and_holds_still_and_stop_switches_off(case, mode, tmp_path):
    with Bench(case, tmp_path, mode=mode) as bench:
        bench.open(mode)
        steps = bench.emulation.steps + 100
        bench.drive(lambda: bench.emulation.steps > steps)
        np.testing.assert_allclose(bench.truth[0], START, atol=2 * QUANTUM)
        bench.driver.stop()
        bench.off()
        with pytest.raises(RunError, match="are off; enable"):
            bench.write()


@drivers
@rule(3)
def test_an_unknown_mode_is_refused(bench):
    driver = bench.open()
    with pytest.raises(RunError, match=f"mode 'fast'.*{', '.join(sorted(driver.modes))}"):
        driver.enable("fast")
    bench.off()


@every
@rule(5)
def test_an_effort_arrives_with_sign_ratio_and_size_and_its_motion_is_measured(bench):
    driver = bench.open("effort")
    quantum = np.array([row["resolution"] for row in driver.report()])
    scale = np.array([SCALES[name] for name in JOINTS])
    efforts = np.array([PUSH, -PUSH])
    bench.drive(lambda: abs(bench.out.velocity[0]) > 0.3, effort=efforts)
    asked = np.array(bench.asked) * scale
    np.testing.assert_allclose(asked, efforts, atol=0.51 * quantum.max() + 1e-6)
    before = bench.truth
    bench.write(effort=efforts)
    state, after = bench.fresh(), bench.truth
    assert before[0][0] - QUANTUM <= state.position[0] <= after[0][0] + QUANTUM
    assert before[0][1] + QUANTUM >= state.position[1] >= after[0][1] - QUANTUM
    np.testing.assert_allclose(state.velocity, after[1], rtol=0.3, atol=0.03)
    np.testing.assert_allclose(state.effort, asked, atol=quantum.max() + 1e-4)


@drivers
@rule(6)
def test_a_position_is_reached(case, tmp_path):
    with Bench(case, tmp_path, mode="position") as bench:
        bench.open("position")
        goal = np.array([0.2, 0.1])
        bench.drive(lambda: np.abs(bench.out.position - goal).max() < 0.02, position=goal)
        np.testing.assert_allclose(bench.truth[0], goal, atol=0.05)


@drivers
@rule(6)
def test_a_velocity_is_held(case, tmp_path):
    with Bench(case, tmp_path, mode="velocity") as bench:
        bench.open("velocity")
        goal = np.array([0.3, -0.4])
        bench.drive(lambda: np.abs(bench.out.velocity - goal).max() < 0.06, velocity=goal)
        np.testing.assert_allclose(bench.truth[1], goal, atol=0.15)


@engines
@rule(4)
def test_stop_from_any_state_twice(case, tmp_path):
    with Bench(case, tmp_path) as bench:
        driver = bench.driver
        for prepare in (lambda: None, driver.open, lambda: driver.enable("effort"), driver.close):
            prepare()
            driver.stop()
            driver.stop()
            bench.off(0.01)
        driver.close()
        driver.open()
        driver.enable("effort")
        driver.close()
        bench.off(0.01)
        bench.open("effort")
        bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=PUSH)


@in_turn("mode", MODES, EVERY)
@rule(4)
def test_moving_motors_switch_off_in_time_when_another_thread_stops_them_twice(case, tmp_path, mode):
    with Bench(case, tmp_path, mode=mode) as bench:
        driver = bench.open(mode)
        fields = {mode: {"effort": [PUSH, PUSH], "velocity": [0.3, 0.4], "position": [0.6, 0.3]}[mode]}
        bench.drive(lambda: bench.out.velocity.min() > 0.1, **fields)
        rows, begun = bench.asking(), bench.emulation.steps
        threads = [threading.Thread(target=driver.stop) for _ in range(2)]
        for thread in threads:
            thread.start()
            if case.stepped:  # one thread at a time has the line
                thread.join()
        with pytest.raises(RunError):  # commands do not switch them on again
            for _ in bench.until(lambda: False):
                bench.write(**fields)
        for thread in threads:
            thread.join()
        bench.off()
        assert max((step for step, effort in rows if effort), default=0) <= begun + STOPPING
        assert max(abs(effort) for _, effort in rows) <= 1.01 * LIMIT
        driver.stop()
        bench.off()
        assert not bench.fresh().fault.any()
