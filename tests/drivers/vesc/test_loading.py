"""Mistakes in a rig with VESCs, and what drives refuse or are refused for; exact messages."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cosim.errors import InputError, InputErrors, RunError
from cosim.rig.rig import Rig
from cosim.rig.sections.rig_spec import read_rig
from tests.conformance.families import Bench, Case, section, write_rig
from tests.conformance.families import rig as rig_of

CAN, PORT = Case("vesc", "virtual"), Case("vesc", "pty")
MOTOR = {"pole_pairs": 7, "torque_constant": 0.01}


def said(error: BaseException) -> str:
    return str(error).partition("rig.yaml:1 ")[2]


def loaded(folder, case: Case, a: dict, b: dict, **keys) -> None:
    spec = read_rig(write_rig(folder / "rig.yaml", rig_of(section(case, folder, **keys), (a, b))))
    context = Rig(spec, interpret=True).contexts["vesc"]
    spec.drivers[0].plugin.module.load(spec.drivers[0].plugin.params, context)


WRONG = {
    "drivers[0].joints.a: missing key 'pole_pairs'": {"pole_pairs": None},
    "drivers[0].joints.a: missing key 'torque_constant'": {"torque_constant": None},
    "drivers[0].joints.a.pole_pairs: must be at least 1, is 0": {"pole_pairs": 0},
    "drivers[0].joints.a.pole_pairs: expected a whole number, got 3.5": {"pole_pairs": 3.5},
    "drivers[0].joints.a.torque_constant: must be above 0 N*m/A, is 0 N*m/A": {"torque_constant": 0},
    "drivers[0].joints.a.id: must be at most 126, is 200": {"id": 200},
    "drivers[0].joints.a: unknown key 'poles'; did you mean 'pole_pairs'?": {"poles": 14},
    "drivers[0].joints.a.forward: 'forward' is for drives behind a 'port'; leave it out": {"forward": True},
}


@pytest.mark.parametrize(("message", "keys"), WRONG.items(), ids=range(len(WRONG)))
def test_a_mistake_of_a_joint_is_one_line_at_its_place(tmp_path, message, keys):
    a = {key: value for key, value in {"id": 1, **MOTOR, **keys}.items() if value is not None}
    with pytest.raises((InputError, InputErrors)) as caught:
        loaded(tmp_path, CAN, a, {"id": 2, **MOTOR})
    error = caught.value
    assert [said(each).partition("; known")[0] for each in getattr(error, "errors", [error])] == [message]


def test_only_one_drive_has_the_port(tmp_path):
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, PORT, {"id": 1, **MOTOR}, {"id": 2, **MOTOR})
    what = "the drive of joint 'a' has the port; give 'forward: true' for those on its CAN bus"
    assert said(caught.value) == f"drivers[0].joints.b.id: {what}"


def test_a_bus_and_a_port_are_refused(tmp_path):
    with pytest.raises((InputError, InputErrors), match=r"drivers\[0\]: give either 'bus' or 'port'"):
        loaded(tmp_path, CAN, {"id": 1, **MOTOR}, {"id": 2, **MOTOR}, port={"port": "/dev/ttyACM0"})


# --- drives ------------------------------------------------------------------------------------------


def refused(bench: Bench) -> str:
    with pytest.raises(InputError) as caught:
        bench.driver.open()
    bench.off(0.01)
    return said(caught.value)


def drive(bench: Bench, id: int = 2):
    return bench.line.drives.drives[id]


@pytest.mark.parametrize(
    ("timeout", "late"),
    [(1000, "1 s after the last command"), (301, "0.301 s after the last command"), (0, "never by itself")],
)
def test_a_timeout_longer_than_the_watchdog_is_refused(tmp_path, timeout, late):
    with Bench(CAN, tmp_path, watchdog=0.3) as bench:
        drive(bench).timeout_ms = timeout
        assert refused(bench) == (
            f"drivers[0].joints.b.id: node 2 stops {late}, the 'watchdog' is 0.3 s; set its Timeout in App Settings of"
            " VESC Tool, or 'watchdog' to it"
        )


def test_another_motor_is_refused(tmp_path):
    def other(rig):
        rig["drivers"][0]["joints"]["b"]["pole_pairs"] = 21

    with Bench(CAN, tmp_path, host=other) as bench:
        assert refused(bench) == (
            "drivers[0].joints.b.id: node 2 is set up for a motor with 14 poles, the rig gives 21 pole pairs; correct"
            " 'pole_pairs', or Motor Poles in VESC Tool"
        )


def test_an_old_firmware_is_refused(tmp_path):
    with Bench(CAN, tmp_path) as bench:
        drive(bench, 1).firmware = (5, 3)
        assert refused(bench) == (
            "drivers[0].joints.a.id: node 1 runs firmware 5.03; this driver is for 6 and 7, update it with VESC Tool"
        )


def test_a_drive_with_another_id_on_the_port_is_refused(tmp_path):
    with Bench(PORT, tmp_path) as bench:
        drive(bench, 1).own = type(drive(bench, 1).own)(id=9, **MOTOR)
        assert refused(bench) == (
            f"drivers[0].joints.a.id: the drive on {bench.driver.link.name} has the VESC ID 9, not 1; correct the id,"
            " or give 'forward: true' if it is behind it"
        )


def test_a_joint_that_turns_too_far_in_a_step_is_refused(tmp_path):
    def fast(rig):
        rig["joints"]["b"]["limits"]["velocity"] = 150.0

    with pytest.raises(InputError) as caught:
        Bench(CAN, tmp_path, host=fast)
    assert str(caught.value).endswith(
        "drivers[0].joints.b.id: node 2 turns up to 3 rad in a step by its velocity limit, and its position is an"
        " angle; lower the limit or schedule.step, to less than 2.83 rad"
    )


def test_current_limits_are_lowered_to_those_of_the_guard_and_restored(tmp_path):
    with Bench(CAN, tmp_path) as bench:
        bench.open()
        assert drive(bench).limits[:2] == (1.0, 1.0)
        bench.driver.enable("position")
        np.testing.assert_allclose(drive(bench).limits[:2], 0.2 / 0.3, rtol=1e-6)
        np.testing.assert_allclose(drive(bench).limits[2:4], [-drive(bench).limits[3], drive(bench).limits[3]])
        bench.driver.close()
        np.testing.assert_allclose(drive(bench).limits[:2], 1.0)


def test_a_refused_rig_changes_no_drive(tmp_path):
    with Bench(CAN, tmp_path) as bench:
        drive(bench, 2).timeout_ms = 5000
        refused(bench)
        assert drive(bench, 1).limits[:2] == (1.0, 1.0)


# --- the angle ---------------------------------------------------------------------------------------


def test_turns_are_counted_from_the_one_next_to_the_middle_of_the_limits(tmp_path):
    def far(rig):
        """The drive of joint b is at 5 turns less 0.2 rad."""
        rig["drivers"][0]["joints"]["b"]["zero"] = -10 * math.pi

    with Bench(CAN, tmp_path, host=far, device=far) as bench:
        bench.open()
        assert bench.out.position[1] == pytest.approx(-0.2, abs=1e-6)


def test_several_turns_are_followed(tmp_path):
    def endless(rig):
        for name in ("lower", "upper"):
            del rig["joints"]["b"]["limits"][name]

    with Bench(CAN, tmp_path, host=endless, device=endless) as bench:
        bench.open("effort")
        bench.motors[1].max_velocity = 40.0
        bench.drive(lambda: bench.out.position[1] > 8.0, effort=[0.0, 0.05])
        assert bench.truth[0][1] == pytest.approx(bench.out.position[1], abs=0.3)


def test_a_far_target_is_approached_within_a_turn(tmp_path):
    """The drive would take the shorter way round to a target more than half a turn away."""
    with Bench(CAN, tmp_path) as bench:
        bench.open("position")
        command = bench.driver._command(1, float(bench.driver._feedback.position[1]) + 5.0, 0.0, 0.0)
        degrees = int.from_bytes(command.data, "big", signed=True) / 1e6
        assert degrees == pytest.approx(math.degrees(-0.2 + 0.9 * math.pi), abs=0.1)


# --- restarts ----------------------------------------------------------------------------------------


def test_a_fault_that_clears_itself_stays_until_it_is_cleared(tmp_path):
    """As of a drive with a Fault Stop Time of 500 ms."""
    with Bench(CAN, tmp_path) as bench:
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
            assert bench.read().fault[1] == 4
            assert bench.motors[1].requested == 0.0
        with pytest.raises(RunError, match=r"joint 'b': fault: absolute overcurrent \(drive error 4\)"):
            bench.driver.enable("effort")
        bench.driver.clear()
        bench.driver.enable("effort")
        bench.drive(lambda: bench.out.velocity[1] > 0.1, effort=0.02)
