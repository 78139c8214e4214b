"""Opening and enabling the driver of moteus drives, and a run from opening to stopping."""

import math
from collections.abc import Callable

import pytest

from cosim.drivers.moteus import faults
from cosim.drivers.moteus.codec import SERVER_DATA, tunnel
from cosim.drivers.moteus.diagnostic import get
from cosim.drivers.transport import CanFrame
from cosim.errors import InputError, RunError
from cosim.units import TURN
from tests.drivers.moteus.driver_bench import Bench
from tests.kit.clock import MS

KP, KD = 4.0 / TURN, 0.05 / TURN  # as drives come, N·m/rad and N·m·s/rad


def test_from_opening_to_stopping(bench: Bench) -> None:
    driver, rotors = bench.driver, bench.rotors
    assert [servo.mode for servo in bench.servos] == [0, 0]
    driver.enable("effort")
    assert [servo.mode for servo in bench.servos] == [10, 10] and rotors[0].effort == 0.0
    bench.cycle(20, effort=(0.1, -0.2))
    assert rotors[0].effort == pytest.approx(0.1) and rotors[1].effort == pytest.approx(-0.2)
    assert bench.state.effort == pytest.approx([0.1, -0.2]) and bench.state.velocity[0] > 0 > bench.state.velocity[1]
    assert bench.state.position == pytest.approx([r.position for r in rotors], abs=1e-4)
    assert bench.state.temperature.tolist() == [25, 25] and bench.state.t_ns == bench.cable.t_ns
    bench.cable.run(120 * MS)  # without commands
    driver.read(bench.state, bench.cable.t_ns)
    driver.read(bench.state, bench.cable.t_ns)
    assert bench.state.fault.tolist() == [faults.TIMED_OUT] * 2 and rotors[0].effort == 0.0
    assert driver.describe_fault(0, -1).startswith("the drive's watchdog tripped; command it more often")
    bench.cycle(5)  # commands do not start it again
    assert [servo.mode for servo in bench.servos] == [11, 11] and bench.state.fault.tolist() == [-1, -1]
    driver.stop()
    driver.enable("effort")
    rotors[1].fault_cause = "overtemperature"
    bench.cycle(3, effort=0.1)
    assert bench.state.fault.tolist() == [0, 38] and rotors[1].effort == 0.0
    assert driver.describe_fault(1, 38) == "over temperature (drive error 38); let it cool down"
    rotors[1].fault_cause = ""
    bench.cycle(3)
    assert bench.state.fault[1] == 38, "only stopping clears a fault"
    with pytest.raises(RunError, match=r"^joint 'j1': fault: over temperature \(drive error 38\); let it cool down$"):
        driver.enable("effort")
    driver.stop()
    assert [servo.mode for servo in bench.servos] == [0, 0]
    driver.enable("effort")
    bench.cycle(3)
    assert bench.state.fault.tolist() == [0, 0] and driver.lost == 0


def test_gains_up_to_those_of_the_drive_are_closed_in_the_drive(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(1, position=0.3, velocity=0.5, effort=0.05, kp=(KP, KP / 2), kd=(KD, KD / 4))
    for servo, kp, kd in zip(bench.servos, (1.0, 0.5), (1.0, 0.25), strict=True):
        assert servo.written["position"] * TURN == pytest.approx(0.3)
        assert servo.written["velocity"] * TURN == pytest.approx(0.5)
        assert servo.written["feedforward"] == pytest.approx(0.05)
        assert (servo.written["kp_scale"], servo.written["kd_scale"]) == pytest.approx((kp, kd))
        assert servo.written["timeout"] == pytest.approx(0.1) and servo.written["max_torque"] == pytest.approx(1.5)
        assert servo.written["ilimit_scale"] == 0.0 and math.isnan(servo.command["accel_limit"])


def test_of_larger_gains_the_driver_closes_what_exceeds_those_of_the_drive(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(1, position=0.3, velocity=0.5, effort=0.05, kp=(3.0, KP), kd=(0.0, 3 * KD))
    first, second = (servo.written for servo in bench.servos)
    assert first["feedforward"] == pytest.approx((3.0 - KP) * 0.3 + 0.05)
    assert second["feedforward"] == pytest.approx(2 * KD * 0.5 + 0.05)
    assert (first["kp_scale"], first["kd_scale"]) == (pytest.approx(1.0), 0.0)
    assert (second["kp_scale"], second["kd_scale"]) == pytest.approx((1.0, 1.0))
    assert [servo["position"] * TURN for servo in (first, second)] == pytest.approx([0.3, 0.3])
    bench.cycle(1, kp=-KP, kd=-KD)  # a drive takes no negative ones
    assert (bench.servos[0].written["kp_scale"], bench.servos[0].written["kd_scale"]) == (0.0, 0.0)
    bench.cycle(1, velocity=0.0)
    bench.cycle(300, effort=0.0, kp=1.0, kd=0.05)
    assert [r.position for r in bench.rotors] == pytest.approx([0.3, 0.3], abs=2e-3)


def test_each_joint_for_itself(bench: Bench) -> None:
    """Without kp the drive's setpoint is where it is."""
    bench.driver.enable("effort")
    bench.rotors[0].position = bench.rotors[1].position = 0.1
    bench.cycle(1, position=0.3, kp=(KP, 2 * KP))
    first, second = (servo.written for servo in bench.servos)
    assert (first["feedforward"], first["kp_scale"]) == (0.0, 1.0)
    assert second["feedforward"] == pytest.approx(KP * 0.3) and second["kp_scale"] == 1.0  # as measured before
    bench.cycle(1, kp=0.0, kd=KD, velocity=0.2)
    assert first is not bench.servos[0].written
    assert [servo.written["position"] * TURN for servo in bench.servos] == pytest.approx([0.1, 0.1], abs=1e-2)
    assert [servo.written["kd_scale"] for servo in bench.servos] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(("mode", "reach"), [("position", 0.4), ("velocity", None)])
def test_the_loops_of_the_drive(bench: Bench, mode: str, reach: float | None) -> None:
    for servo in bench.servos:
        servo.config["servo.pid_position.kd"] = 0.2
    bench.driver.enable(mode)
    bench.cycle(1500, position=0.4, velocity=0.0 if reach else 1.5)
    if reach:
        assert bench.state.position == pytest.approx([0.4, 0.4], abs=1e-3)
    else:
        assert bench.state.velocity == pytest.approx([1.5, 1.5], abs=1e-2)
        assert math.isnan(bench.servos[0].written["position"])
    assert bench.servos[0].written["ilimit_scale"] == pytest.approx(1.0)


def test_direction_ratio_and_zero(make: Callable[..., Bench]) -> None:
    bench = make(2, direction=-1, ratio=2.0, zero=0.25)
    bench.driver.open()
    bench.rotors[0].position = 1.0
    bench.driver.enable("effort")
    bench.cycle(1, effort=0.5)
    bench.cable.run(MS)
    assert bench.state.position[0] == pytest.approx(-0.25, abs=1e-4)
    assert bench.rotors[0].effort == pytest.approx(-0.25)
    assert bench.driver.feedforward.limit == pytest.approx([4.0, 4.0])
    bench.cycle(1, effort=0.0, kp=4 * KP, position=0.25)
    assert bench.servos[0].written["kp_scale"] == pytest.approx(1.0)
    assert bench.servos[0].written["position"] == pytest.approx(0.0, abs=1e-9)


def test_effort_beyond_the_drive_is_clipped_and_counted(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(3, effort=(2.5, 0.0))
    assert bench.driver.report() == [
        {"joint": "j0", "saturated": 3, "limit": pytest.approx(2.0), "resolution": 0.0},
        {"joint": "j1", "saturated": 0, "limit": pytest.approx(2.0), "resolution": 0.0},
    ]
    assert bench.rotors[0].effort == pytest.approx(1.5), "the drive holds the guard's limit too"


def test_holds_the_measured_state_when_switched_on(bench: Bench) -> None:
    bench.rotors[0].position, bench.rotors[1].position = 2.0, -5.0
    bench.driver.enable("position")
    assert [r.position for r in bench.rotors] == pytest.approx([2.0, -5.0], abs=1e-5)
    assert [r.effort for r in bench.rotors] == pytest.approx([0.0, 0.0], abs=1e-4)


def test_the_first_state_after_switching_on_is_new(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cable.run(30 * MS)
    bench.driver.read(bench.state, bench.cable.t_ns + MS)
    assert bench.state.t_ns == bench.cable.t_ns


def test_no_drive_answers(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.cable.deaf.add(8)
    began = bench.cable.t_ns
    with pytest.raises(InputError) as caught:
        bench.driver.open()
    assert str(caught.value) == (
        "rig.yaml:7 joints.j1.id: no answer from node 8 on the cable; check its power, the id and the bit rate"
    )
    assert not bench.cable.is_open and bench.cable.t_ns - began < 1000 * MS


def test_another_register_map(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.cable.spoil = lambda frame: frame._replace(data=frame.data.replace(b"\x82\x02\x05", b"\x82\x02\x06"))
    with pytest.raises(InputError, match=r"node 3 has register map 6; this driver knows .* 4 and 5$"):
        bench.driver.open()
    bench.cable.spoil = lambda frame: frame._replace(data=b"\x31\x82\x02\x01")
    with pytest.raises(InputError, match=r"node 3 is not a moteus drive; this driver knows moteus' register maps"):
        bench.driver.open()


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        (
            "servo.max_current_A",
            10.0,
            "the effort limit is 1.5 N*m at node 3, whose own limit is 1 N*m (servo.max_current_A)",
        ),
        (
            "servo.max_velocity",
            5.0,
            "the velocity limit is 50 rad/s at node 3, whose own limit is 31.4159 rad/s (servo.max_velocity)",
        ),
        (
            "servopos.position_min",
            -0.25,
            "the lower position limit is -3 rad at node 3, whose own limit is -1.5708 rad (servopos.position_min)",
        ),
        (
            "servopos.position_max",
            0.25,
            "the upper position limit is 3 rad at node 3, whose own limit is 1.5708 rad (servopos.position_max)",
        ),
    ],
)
def test_a_limit_beyond_the_drive(make: Callable[..., Bench], key: str, value: float, what: str) -> None:
    bench = make(1)
    bench.context.limits.lower[:], bench.context.limits.upper[:] = -3.0, 3.0
    bench.servos[0].config[key] = value
    with pytest.raises(InputError) as caught:
        bench.driver.open()
    assert str(caught.value) == f"rig.yaml:7 joints.j0.id: {what}; lower the joint's limit or raise the drive's"
    assert not bench.cable.is_open


def test_the_effort_with_a_gear_configured_in_the_drive(make: Callable[..., Bench]) -> None:
    bench = make(1)
    bench.servos[0].config["motor_position.rotor_to_output_ratio"] = 0.25
    bench.driver.open()
    assert bench.driver.feedforward.limit == pytest.approx([8.0])


def test_a_drive_that_does_not_report_its_gains(make: Callable[..., Bench]) -> None:
    bench = make(1)
    del bench.servos[0].config["servo.pid_position.kd"]
    with pytest.raises(InputError, match=r"node 3 did not report its 'servo.pid_position.kd'; update the"):
        bench.driver.open()


def test_an_earlier_fault_is_reported_not_cleared(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.servos[1].mode, bench.servos[1].fault = 1, 34
    bench.driver.open()
    bench.driver.read(bench.state, bench.cable.t_ns + MS)
    assert bench.state.fault.tolist() == [0, 34]
    with pytest.raises(
        RunError, match=r"^joint 'j1': fault: over voltage \(drive error 34\); use a supply that can take"
    ):
        bench.driver.enable("effort")
    bench.driver.close()
    assert bench.servos[1].mode == 0


def test_an_unknown_mode(bench: Bench) -> None:
    with pytest.raises(
        RunError, match=r"^the drives of j0, j1 have no mode 'torque'; use one of effort, position, velocity$"
    ):
        bench.driver.enable("torque")


def test_commands_need_an_enabled_driver(bench: Bench) -> None:
    with pytest.raises(RunError, match=r"^the motors of j0, j1 are off; enable the driver first$"):
        bench.cycle()


def test_a_drive_that_does_not_switch_on(bench: Bench) -> None:
    bench.servos[1].apply = lambda command, t_ns: None  # type: ignore[method-assign]
    began = bench.cable.t_ns
    with pytest.raises(RunError, match=r"^joint 'j1': node 8 did not switch on within 1 s; check its supply$"):
        bench.driver.enable("effort")
    assert 1000 * MS <= bench.cable.t_ns - began < 1200 * MS and bench.servos[0].mode == 0


def test_a_fault_while_switching_on(bench: Bench) -> None:
    bench.servos[0].config["servopos.position_min"] = 1.0
    with pytest.raises(
        RunError, match=r"^joint 'j0': fault: outside limit \(drive error 39\); move it within servopos.position_min"
    ):
        bench.driver.enable("position")
    assert [servo.mode for servo in bench.servos] == [0, 0]


def test_a_late_line_of_the_console_is_not_taken_for_the_value() -> None:
    """The first answer is that of an earlier request."""
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


def test_a_drive_that_reports_no_number_ends_the_run_at_its_joint(bench: Bench) -> None:
    bench.driver.enable("effort")
    bench.cycle(2)
    bench.rotors[1].position = math.nan
    what = r"^joint 'j1': node 8 reports no number as its position or velocity; check its encoder$"
    with pytest.raises(RunError, match=what):
        bench.cycle(3)
    bench.rotors[1].position = 0.0
