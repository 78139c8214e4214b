"""Mistakes in a rig with VESCs, and what drives refuse or are refused for."""

import math

import numpy as np
import pytest

from tests.conformance.families import Bench, Case
from tests.drivers.bench import refused
from tests.drivers.loading import mistakes_of

CAN, PORT = Case("vesc", "virtual", stepped=True), Case("vesc", "pty", stepped=True)
MOTOR = {"pole_pairs": 7, "torque_constant": 0.01}


def test_mistakes_of_the_connection(tmp_path, said):
    a, b = {"id": 1, **MOTOR}, {"id": 2, **MOTOR}
    said(mistakes_of(tmp_path, PORT, a, b))
    said(mistakes_of(tmp_path, CAN, a, b, port={"port": "/dev/ttyACM0"}))


# --- drives ------------------------------------------------------------------------------------------


@pytest.fixture
def made(tmp_path):
    """made(case, …) -> a bench, entered; left afterwards."""
    benches = []

    def make(case=CAN, **keys):
        benches.append(Bench(case, tmp_path, **keys).__enter__())
        return benches[-1]

    yield make
    for bench in benches:
        bench.__exit__()


def drive(bench: Bench, id: int = 2):
    return bench.line.drives.drives[id]


def why_not(bench: Bench) -> str:
    """Why it cannot be opened; the motors are off."""
    what = refused(bench.driver.open).partition("rig.yaml:1 ")[2]
    bench.off(0.01)
    return what


@pytest.mark.parametrize("timeout", [1000, 301, 0])
def test_a_timeout_longer_than_the_watchdog_is_refused_and_changes_no_drive(made, timeout, said):
    bench = made(watchdog=0.3)
    drive(bench).timeout_ms = timeout
    said(why_not(bench))
    assert drive(bench, 1).limits[:2] == (1.0, 1.0)


def test_another_motor_is_refused(made, said):
    said(why_not(made(host=lambda rig: rig["drivers"][0]["joints"]["b"].update(pole_pairs=21))))


def test_an_old_firmware_is_refused(made, said):
    bench = made()
    drive(bench, 1).firmware = (5, 3)
    said(why_not(bench))


def test_a_drive_with_another_id_on_the_port_is_refused(made, said):
    bench = made(PORT)
    drive(bench, 1).own = type(drive(bench, 1).own)(id=9, **MOTOR)
    said(why_not(bench), r"(?<= on )\S+")


def test_a_joint_that_turns_too_far_in_a_step_is_refused(tmp_path, said):
    def fast(rig):
        rig["joints"]["b"]["limits"]["velocity"] = 150.0

    said(refused(lambda: Bench(CAN, tmp_path, host=fast)))


def test_current_limits_are_lowered_to_those_of_the_guard_and_restored(made):
    bench = made()
    bench.open()
    assert drive(bench).limits[:2] == (1.0, 1.0)
    bench.driver.enable("position")
    np.testing.assert_allclose(drive(bench).limits[:2], 0.2 / 0.3, rtol=1e-6)
    np.testing.assert_allclose(drive(bench).limits[2:4], [-drive(bench).limits[3], drive(bench).limits[3]])
    bench.driver.close()
    np.testing.assert_allclose(drive(bench).limits[:2], 1.0)


# --- the angle ---------------------------------------------------------------------------------------


def test_turns_are_counted_from_the_one_next_to_the_middle_of_the_limits(made):
    def far(rig):
        """The drive of joint b is at 5 turns less 0.2 rad."""
        rig["drivers"][0]["joints"]["b"]["zero"] = -10 * math.pi

    bench = made(host=far, device=far)
    bench.open()
    assert bench.out.position[1] == pytest.approx(-0.2, abs=1e-6)


def test_several_turns_are_followed(made):
    def endless(rig):
        for name in ("lower", "upper"):
            del rig["joints"]["b"]["limits"][name]

    bench = made(host=endless, device=endless)
    bench.open("effort")
    bench.motors[1].max_velocity = 40.0
    bench.drive(lambda: bench.out.position[1] > 8.0, effort=[0.0, 0.05])
    assert bench.truth[0][1] == pytest.approx(bench.out.position[1], abs=0.3)


def test_a_far_target_is_approached_within_a_turn(made):
    """The drive would take the shorter way round to a target more than half a turn away."""
    bench = made()
    bench.open("position")
    bench.write(position=[bench.out.position[0], bench.out.position[1] + 5.0])
    degrees = bench.driver.interpreted.sent[1][0] / 1e6
    assert degrees == pytest.approx(math.degrees(-0.2 + 0.9 * math.pi), abs=0.1)


# --- restarts ----------------------------------------------------------------------------------------


def test_a_fault_that_clears_itself_stays_until_it_is_cleared(made):
    """As of a drive with a Fault Stop Time of 500 ms."""
    bench = made()
    bench.open("effort")
    bench.motors[1].fault_cause = "overcurrent"
    for _ in bench.until(lambda: bench.out.fault[1]):
        bench.write(effort=0.02)
        bench.read()
    bench.motors[1].fault_cause = ""
    bench.there(lambda: drive(bench).clear())
    steps = bench.emulation.steps + 50
    for _ in bench.until(lambda: bench.emulation.steps > steps):
        bench.write(effort=0.02)
        assert bench.read().fault[1] == 4 and bench.motors[1].requested == 0.0
    fault = "joint 'b': fault: absolute overcurrent (drive error 4)"
    assert refused(bench.driver.enable, "effort").startswith(fault)
    bench.driver.clear()
    bench.driver.enable("effort")
    bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=0.02)
