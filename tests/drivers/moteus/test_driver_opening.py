"""Opening and enabling the driver of moteus drives, and a run from opening to stopping."""

import math

import pytest

from cosim.core.units import TURN
from cosim.plugins.drivers.moteus import faults
from cosim.plugins.drivers.moteus.codec import SERVER_DATA, tunnel
from cosim.plugins.drivers.moteus.diagnostic import get
from cosim.plugins.drivers.transport import CanFrame
from tests.drivers.bench import refused
from tests.kit.clock import MS

KP, KD = 4.0 / TURN, 0.05 / TURN  # as drives come, N·m/rad and N·m·s/rad


def test_from_opening_to_stopping(bench, said):
    driver, motors = bench.driver, bench.motors
    assert bench.modes == [0, 0]
    driver.enable("effort")
    assert bench.modes == [10, 10] and bench.efforts == [0.0, 0.0]
    bench.cycle(20, effort=(0.1, -0.2))
    assert bench.efforts == pytest.approx([0.1, -0.2])
    assert bench.out.effort == pytest.approx([0.1, -0.2]) and bench.out.velocity[0] > 0 > bench.out.velocity[1]
    measured = [motor.position - 1e-3 * motor.velocity for motor in motors]  # with the command
    assert bench.out.position == pytest.approx(measured, abs=1e-4)
    assert bench.out.temperature.tolist() == [25, 25]
    bench.run(120)  # without commands
    bench.read()
    bench.read()
    assert bench.faults == [faults.TIMED_OUT] * 2 and motors[0].effort == 0.0
    said(driver.describe_fault(0, -1))
    bench.cycle(5)  # commands do not start it again
    assert bench.modes == [11, 11] and bench.faults == [-1, -1]
    driver.stop()
    driver.enable("effort")
    motors[1].fault_cause = "overtemperature"
    bench.cycle(3, effort=0.1)
    assert bench.faults == [0, 38] and motors[1].effort == 0.0
    motors[1].fault_cause = ""
    bench.cycle(3)
    assert bench.faults[1] == 38, "only stopping clears a fault"
    said(refused(driver.enable, "effort"))
    driver.stop()
    assert bench.modes == [0, 0]
    driver.enable("effort")
    bench.cycle(3)
    assert bench.faults == [0, 0] and driver.lost == 0


def test_gains_up_to_those_of_the_drive_are_closed_in_the_drive(bench):
    bench.driver.enable("effort")
    bench.cycle(1, position=0.3, velocity=0.5, effort=0.05, kp=(KP, KP / 2), kd=(KD, KD / 4))
    for servo, kp, kd in zip(bench.servos, (1.0, 0.5), (1.0, 0.25), strict=True):
        sent = servo.written
        assert (sent["position"] * TURN, sent["velocity"] * TURN, sent["feedforward"]) == pytest.approx(
            (0.3, 0.5, 0.05)
        )
        assert (sent["kp_scale"], sent["kd_scale"]) == pytest.approx((kp, kd))
        assert (sent["timeout"], sent["max_torque"]) == pytest.approx((0.1, 1.5))
        assert sent["ilimit_scale"] == 0.0 and math.isnan(servo.command["accel_limit"])


def test_of_larger_gains_the_driver_closes_what_exceeds_those_of_the_drive(bench):
    bench.driver.enable("effort")
    bench.cycle(1, position=0.3, velocity=0.5, effort=0.05, kp=(3.0, KP), kd=(0.0, 3 * KD))
    first, second = bench.written
    assert first["feedforward"] == pytest.approx((3.0 - KP) * 0.3 + 0.05)
    assert second["feedforward"] == pytest.approx(2 * KD * 0.5 + 0.05)
    assert (first["kp_scale"], first["kd_scale"]) == (pytest.approx(1.0), 0.0)
    assert (second["kp_scale"], second["kd_scale"]) == pytest.approx((1.0, 1.0))
    assert [servo["position"] * TURN for servo in (first, second)] == pytest.approx([0.3, 0.3])
    bench.cycle(1, kp=-KP, kd=-KD)  # a drive takes no negative ones
    assert (bench.written[0]["kp_scale"], bench.written[0]["kd_scale"]) == (0.0, 0.0)
    bench.cycle(1, velocity=0.0)
    bench.cycle(300, effort=0.0, kp=1.0, kd=0.05)
    assert [motor.position for motor in bench.motors] == pytest.approx([0.3, 0.3], abs=2e-3)


def test_each_joint_for_itself(bench):
    """Without kp the drive's setpoint is where it is."""
    bench.driver.enable("effort")
    bench.motors[0].position = bench.motors[1].position = 0.1
    bench.cycle(1, position=0.3, kp=(KP, 2 * KP))
    first, second = bench.written
    assert (first["feedforward"], first["kp_scale"]) == (0.0, 1.0)
    assert second["feedforward"] == pytest.approx(KP * 0.3) and second["kp_scale"] == 1.0  # as measured before
    bench.cycle(1, kp=0.0, kd=KD, velocity=0.2)
    assert first is not bench.written[0]
    assert [servo["position"] * TURN for servo in bench.written] == pytest.approx([0.1, 0.1], abs=1e-2)
    assert [servo["kd_scale"] for servo in bench.written] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("mode", ["position", "velocity"])
def test_the_loops_of_the_drive(bench, mode):
    for servo in bench.servos:
        servo.config["servo.pid_position.kd"] = 0.2
    bench.driver.enable(mode)
    bench.cycle(800, position=0.4, velocity=1.5 * (mode == "velocity"))
    goal = {"position": 0.4, "velocity": 1.5}[mode]
    assert getattr(bench.out, mode) == pytest.approx([goal, goal], abs=1e-2)
    assert math.isnan(bench.written[0]["position"]) == (mode == "velocity")
    assert bench.written[0]["ilimit_scale"] == pytest.approx(1.0)


def test_direction_ratio_and_zero(make):
    b = make(2, direction=-1, ratio=2.0, zero=0.25)
    b.driver.open()
    b.motors[0].position = 1.0
    b.driver.enable("effort")
    b.cycle(1, effort=0.5)
    assert b.out.position[0] == pytest.approx(-0.25, abs=1e-3) and b.motors[0].effort == pytest.approx(-0.25)
    assert b.driver.feedforward.limit == pytest.approx([4.0, 4.0])
    b.cycle(1, effort=0.0, kp=4 * KP, position=0.25)
    assert b.written[0]["kp_scale"] == pytest.approx(1.0)
    assert b.written[0]["position"] == pytest.approx(0.0, abs=1e-9)


def test_effort_beyond_the_drive_is_clipped_and_counted(bench):
    bench.driver.enable("effort")
    bench.cycle(3, effort=(2.5, 0.0))
    row = {"limit": pytest.approx(2.0), "resolution": 0.0}
    assert bench.driver.report() == [{"joint": "j0", "saturated": 3, **row}, {"joint": "j1", "saturated": 0, **row}]
    assert bench.motors[0].effort == pytest.approx(1.5), "the drive holds the guard's limit too"


def test_the_first_state_after_switching_on_is_new(bench):
    bench.driver.enable("effort")
    bench.run(30)
    assert bench.read().t_ns == bench.t_ns


def answering(data: bytes):
    """The register map that is reported is replaced."""
    return lambda b: setattr(b, "spoil", lambda f: (f._replace(data=f.data.replace(b"\x82\x02\x05", data)),))


def config(key, value=None):
    """value None: a setting that the drive does not have."""
    return lambda b: b.servos[0].config.update({key: value}) if value is not None else b.servos[0].config.pop(key)


STRANGERS = {
    "register map 6": answering(b"\x82\x02\x06"),
    "no map": lambda b: setattr(b, "spoil", lambda frame: (frame._replace(data=b"\x31\x82\x02\x01"),)),
    "no gain": config("servo.pid_position.kd"),
    "effort limit": config("servo.max_current_A", 10.0),
    "velocity limit": config("servo.max_velocity", 5.0),
    "lower limit": config("servopos.position_min", -0.25),
    "upper limit": config("servopos.position_max", 0.25),
}


@pytest.mark.parametrize("change", STRANGERS.values(), ids=STRANGERS)
def test_drives_that_do_not_fit(make, change, said):
    b = make(1, lower=-3.0)
    change(b)
    said(refused(b.driver.open))
    assert not b.is_open


def test_the_effort_with_a_gear_configured_in_the_drive(make):
    b = make(1)
    b.servos[0].config["motor_position.rotor_to_output_ratio"] = 0.25
    b.driver.open()
    assert b.driver.feedforward.limit == pytest.approx([8.0])


def test_an_earlier_fault_is_reported_not_cleared(make, said):
    b = make()
    b.servos[1].mode, b.servos[1].fault = 1, 34
    b.driver.open()
    b.read()
    assert b.faults == [0, 34]
    said(refused(b.driver.enable, "effort"))
    b.driver.close()
    assert b.servos[1].mode == 0


def test_a_drive_that_does_not_switch_on(bench, said):
    bench.servos[1].apply = lambda command, t_ns: None
    began = bench.t_ns
    said(refused(bench.driver.enable, "effort"))
    assert 1000 * MS <= bench.t_ns - began < 1200 * MS and bench.servos[0].mode == 0


def test_a_fault_while_switching_on(bench, said):
    bench.servos[0].config["servopos.position_min"] = 1.0
    said(refused(bench.driver.enable, "position"))
    assert bench.modes == [0, 0]


def test_a_late_line_of_the_console_is_not_taken_for_the_value():
    """The first answer belongs to an earlier request."""
    lines, text = iter([b"9.900000\r\n", b"4.000000\r\n", b"4.000000\r\n"]), [b""]

    def write_data(data: bytes) -> None:
        if b"conf get" in data:
            text[0] = next(lines)
        elif b"tel stop" in data:
            text[0] = b"OK\r\n"

    def request(data: bytes) -> CanFrame:
        found, text[0] = text[0], b""
        return CanFrame(0, tunnel(SERVER_DATA, 1, found))

    assert get(write_data, request, "servo.pid_position.kp") == 4.0


def test_a_drive_that_reports_no_number_ends_the_run_at_its_joint(bench, said):
    bench.driver.enable("effort")
    bench.cycle(2)
    bench.motors[1].position = math.nan
    said(refused(bench.cycle, 3))
    bench.motors[1].position = 0.0
