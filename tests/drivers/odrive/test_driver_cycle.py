"""The driver of ODrives, on CAN and on a serial link: cycle, faults and homing."""

import numpy as np
import pytest

from cosim.drivers.odrive import codes
from cosim.errors import RunError
from cosim.units import TURN
from tests.drivers.odrive.driver_bench import Setup, enabled
from tests.kit.clock import MS


def test_from_opening_to_stopping(setup):
    rig = setup("effort")
    rig.rotors[0].position, rig.rotors[1].position = 1.0, 2.0
    rig.driver.open()
    assert not any(axis.armed for axis in rig.axes)
    state = rig.read()
    assert state.position == pytest.approx([1.0, -1.0], abs=1e-5)
    assert state.t_ns > 0
    rig.driver.enable("effort")
    assert all(axis.armed and axis.enable_watchdog for axis in rig.axes)
    assert [axis.watchdog_timeout for axis in rig.axes] == pytest.approx([0.1, 0.1])
    rig.command.effort[:] = 0.5, 0.25
    rig.cycle(20)
    assert rig.rotors[0].effort == pytest.approx(0.5)
    assert rig.rotors[1].effort == pytest.approx(-0.125)  # efforts go by the inverse ratio
    assert rig.state.effort == pytest.approx([0.5, 0.25], rel=1e-4)
    assert rig.state.velocity[0] == pytest.approx(rig.rotors[0].velocity, rel=0.2)
    assert list(rig.state.fault) == [0, 0]
    rig.wire.step(150)  # no commands: the drives stop by themselves
    assert not any(axis.armed for axis in rig.axes)
    assert [axis.disarm_reason for axis in rig.axes] == [codes.WATCHDOG_EXPIRED] * 2
    assert [rotor.effort for rotor in rig.rotors] == [0.0, 0.0]
    rig.cycle(110)  # until each has sent a heartbeat
    assert list(rig.state.fault) == [codes.WATCHDOG_EXPIRED] * 2
    assert rig.driver.describe_fault(0, rig.state.fault[0]) == (
        "watchdog timer expired (drive error 0x1000000); commands stopped; check the bus and the program"
    )
    rig.driver.stop()
    with pytest.raises(RunError, match=r"^joint 'shoulder': fault: watchdog timer expired"):
        rig.driver.enable("effort")
    rig.driver.clear()
    rig.driver.enable("effort")
    assert all(axis.armed for axis in rig.axes)
    rig.driver.stop()
    assert not any(axis.armed for axis in rig.axes)
    assert rig.driver.lost == 0
    rig.driver.close()
    assert not rig.wire.is_open


def test_a_thousand_cycles_with_impedance_on_the_host(setup):
    rig = enabled(setup, "effort")
    rig.command.kp[:], rig.command.kd[:] = 0.4, 0.02
    rig.command.position[:] = 0.3, -0.2
    rig.cycle(1000)
    assert rig.state.position == pytest.approx([0.3, -0.2], abs=0.02)
    assert rig.driver.lost == 0


@pytest.mark.parametrize(("mode", "goal"), [("position", [0.5, -0.4]), ("velocity", [3.0, -2.0])])
def test_the_loops_of_the_drive(setup, mode, goal):
    rig = enabled(setup, mode)
    getattr(rig.command, mode)[:] = goal
    rig.cycle(1500)
    assert getattr(rig.state, mode) == pytest.approx(goal, rel=0.02, abs=0.01)


def test_feedforward_is_in_the_command(setup, kind):
    rig = enabled(setup, "position")
    rig.command.effort[:] = 0.4, 0.5
    rig.cycle()
    assert [axis.input_torque for axis in rig.axes] == pytest.approx([0.4, -0.25])
    rows = rig.driver.report()
    if kind == "bus":
        assert rows[0] == {"joint": "shoulder", "saturated": 0, "limit": pytest.approx(32.767), "resolution": 1e-3}
        assert rows[1]["limit"] == pytest.approx(65.534)
        rig.command.effort[0] = 40.0
        rig.cycle()
        assert rig.driver.report()[0]["saturated"] == 1
    else:
        assert rows[0] == {"joint": "shoulder", "saturated": 0, "limit": None, "resolution": 0.0}


def test_another_scale_of_the_feedforward(monkeypatch):
    rig = Setup(monkeypatch, "bus", "position")
    for axis in rig.axes:
        axis.input_torque_scale, axis.input_vel_scale = 100, 200
    rig.driver.open()
    rig.driver.enable("position")
    rig.command.effort[:] = 1.234, 0.0
    rig.command.velocity[:] = 1.0, 0.0
    rig.cycle()
    assert rig.axes[0].input_torque == pytest.approx(1.23)
    assert rig.axes[0].input_vel == pytest.approx(1.0 / TURN, abs=1 / 400)
    assert rig.driver.report()[0]["resolution"] == pytest.approx(0.01)


def test_the_first_command_holds_what_is_measured(setup):
    rig = setup("position")
    rig.rotors[0].position = 4.0
    rig.driver.open()
    rig.driver.enable("position")
    assert rig.axes[0].input_pos == pytest.approx(4.0 / TURN, abs=1e-5)
    assert abs(rig.rotors[0].velocity) < 1e-3


def test_reading_alone_does_not_feed_the_watchdog(setup):
    rig = enabled(setup, "effort")
    for _ in range(30):
        before = rig.state.t_ns
        assert rig.read(20 * MS).t_ns > before  # but it brings what is new
        rig.wire.step(5)
    assert not any(axis.armed for axis in rig.axes)


@pytest.mark.parametrize("mode", ["effort", "velocity", "position"])
def test_after_the_last_command_of_a_killed_program_the_motors_coast(setup, mode):
    rig = enabled(setup, mode)
    for tick in range(200):
        rig.command.kd[:], rig.command.velocity[:], rig.command.position[:] = 0.05, 1.0, 1e-3 * tick
        rig.cycle()
    moving = [rotor.velocity for rotor in rig.rotors]
    assert min(np.abs(moving)) > 0.3
    rig.wire.step(102)
    assert [axis.disarm_reason for axis in rig.axes] == [codes.WATCHDOG_EXPIRED] * 2
    assert [rotor.effort for rotor in rig.rotors] == [0.0, 0.0]


def test_configuring_comes_before_switching_on(monkeypatch):
    rig = Setup(monkeypatch, "port")
    rig.driver.open()
    rig.wire.sent.clear()
    rig.driver.enable("effort")
    text = b"".join(rig.wire.sent).decode()
    order = ["config.watchdog_timeout 0.1", "config.enable_watchdog 1", "c 0 0", "requested_state 8"]
    places = [text.index(f"w axis0.{words}" if words[0] != "c" or "." in words else words) for words in order]
    assert places == sorted(places)
    assert "sc" not in text.split("*")[0].split()  # no fault is cleared silently


@pytest.mark.parametrize("cause", ["overtemperature", "overcurrent", "undervoltage", "encoder"])
def test_faults_of_the_motor(setup, cause):
    rig = enabled(setup, "effort")
    rig.rotors[1].fault_cause = cause
    rig.cycle(120)
    assert list(rig.state.fault) == [0, codes.FAULT_CAUSE[cause]]
    assert not rig.axes[1].armed
    assert rig.axes[0].armed


def test_a_drive_switched_off_by_another_master(setup):
    rig = enabled(setup, "effort")
    rig.axes[0].request(codes.IDLE, rig.wire.t_ns)
    rig.cycle(120)
    assert list(rig.state.fault) == [codes.LEFT_CLOSED_LOOP, 0]
    assert rig.driver.describe_fault(0, -1) == ("left closed loop control without an error; check for another master")


def test_a_drive_that_went_silent(setup):
    rig = enabled(setup, "effort")
    rig.cycle(10)
    before = rig.state.t_ns
    rig.wire.mute = True
    for _ in range(300):
        rig.write()
        rig.read()
    assert rig.state.t_ns == before  # late: the old values stay
    assert list(rig.state.fault) == [codes.SILENT] * 2


def test_temperatures(setup):
    rig = enabled(setup, "effort")
    rig.rotors[0].temperature, rig.rotors[1].temperature = 41.5, 50.25
    rig.cycle(80)
    assert rig.state.temperature == pytest.approx([41.5, 50.25])


def test_effort_from_the_current(setup):
    rig = enabled(setup, "effort", wiring=({"torque_constant": 0.2}, {}))
    rig.command.effort[:] = 0.5
    rig.cycle(10)
    assert rig.state.effort == pytest.approx([1.0, 0.5])  # the rotor's constant is half of that


def test_homing(setup):
    rig = setup("position", wiring=({"homing": True}, {}))
    rig.rotors[0].position = 0.8
    rig.driver.open()
    rig.axes[0].reset(rig.wire.t_ns)  # power comes back here: the encoder counts from where it is
    assert rig.read(20 * MS).position[0] == pytest.approx(0.0, abs=1e-6)
    rig.driver.enable("position")
    rig.cycle(5)
    assert rig.axes[0].is_homed
    assert rig.state.position[0] == pytest.approx(rig.rotors[0].position, abs=0.01)
    assert abs(rig.rotors[0].position) < 0.05


def test_homing_that_does_not_end(setup):
    rig = setup("position", wiring=({"homing": True}, {}), homing_timeout=0.3)
    rig.rotors[0].position = 50.0
    rig.driver.open()
    with pytest.raises(
        RunError, match=r"^joint 'shoulder': \w+ \d did not find home within 0.3 s; check its end switch$"
    ):
        rig.driver.enable("position")
    assert not any(axis.armed for axis in rig.axes)


def test_homing_without_an_end_stop(setup):
    rig = setup("position", wiring=({"homing": True}, {}))
    rig.axes[0].min_endstop_enabled = False
    rig.driver.open()
    match = r"^joint 'shoulder': \w+ \d did not find home: procedure result 12; check its end switch$"
    with pytest.raises(RunError, match=match):
        rig.driver.enable("position")
