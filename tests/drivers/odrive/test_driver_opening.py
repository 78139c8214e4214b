"""Opening the driver of ODrives: identification, firmware, limits."""

import json

import numpy as np
import pytest

from cosim.drivers.odrive import can_codec as can
from cosim.drivers.odrive import codes, properties
from cosim.drivers.odrive.axis import Axis
from cosim.errors import InputError, RunError
from tests.drivers.odrive.driver_bench import Setup, enabled
from tests.kit.clock import MS


def test_opening_again(setup):
    rig = enabled(setup, "effort")
    rig.axes[0].disarm(codes.ESTOP_REQUESTED)
    rig.cycle(120)
    rig.driver.close()
    rig.emulator.reset(rig.wire.t_ns)  # power cycle by someone
    rig.wire.queue.clear()
    rig.driver.open()
    assert list(rig.read(20 * MS).fault) == [0, 0]
    rig.driver.enable("velocity")
    assert [axis.control_mode for axis in rig.axes] == [codes.VELOCITY_CONTROL] * 2


def test_no_drive_answers(setup, kind):
    rig = setup()
    rig.wire.mute = True
    with pytest.raises(InputError) as caught:
        rig.driver.open()
    where = "rig.yaml:7 joints.shoulder."
    assert (
        str(caught.value)
        == {
            "bus": f"{where}id: no answer from node 3 on virtual bus; check its power, the id and the bit rate",
            "port": f"{where}axis: no answer from axis 0 on /dev/ttyACM0; check its power, the axis and the bit rate",
        }[kind]
    )
    assert not rig.wire.is_open


def test_one_does_not_answer(monkeypatch):
    rig = Setup(monkeypatch, "bus")
    rig.axes[1].node_id = 18
    with pytest.raises(InputError, match=r"joints\.elbow\.id: no answer from node 17 on virtual bus; check its power"):
        rig.driver.open()


def test_a_board_with_one_axis(monkeypatch):
    rig = Setup(monkeypatch, "port")
    del rig.emulator.axes[1]
    with pytest.raises(InputError) as caught:
        rig.driver.open()
    name = "axis1.motor.motor_thermistor.temperature"
    message = f"the drive answers 'invalid property' to 'r {name}'; check its axes and its firmware"
    assert str(caught.value) == f"rig.yaml:7 joints.elbow.axis: {message}"


def test_no_heartbeat(monkeypatch):
    rig = Setup(monkeypatch, "bus")
    rig.axes[1].heartbeat_ms = 0
    with pytest.raises(InputError) as caught:
        rig.driver.open()
    assert str(caught.value) == (
        "rig.yaml:7 joints.elbow.id: node 17 sends no heartbeat; "
        "set axis0.config.can.heartbeat_msg_rate_ms = 100 with odrivetool"
    )


@pytest.mark.parametrize("period", [0, 100])
def test_estimates_with_too_long_a_period(monkeypatch, period):
    rig = Setup(monkeypatch, "bus")
    rig.axes[1].encoder_ms = period
    with pytest.raises(InputError) as caught:
        rig.driver.open()
    assert str(caught.value) == (
        "rig.yaml:7 joints.elbow.id: node 17 does not send encoder estimates often enough; "
        "set axis0.config.can.encoder_msg_rate_ms = 10 with odrivetool"
    )


@pytest.mark.parametrize(
    ("firmware", "message"),
    [
        ((0, 5, 6), "node 3 runs firmware 0.5.6 on hardware 5.2.0; this driver is for 0.6, update it with odrivetool"),
        (
            (0, 6, 11),
            "node 3 runs firmware 0.6.11 on hardware 5.2.0, but known is 0.6.10 on 5.2.0; "
            "give 'endpoints': the manufacturer's flat_endpoints.json of it",
        ),
    ],
)
def test_another_firmware_on_can(monkeypatch, firmware, message):
    rig = Setup(monkeypatch, "bus")
    rig.emulator.nodes[0].firmware = firmware
    with pytest.raises(InputError) as caught:
        rig.driver.open()
    assert str(caught.value) == f"rig.yaml:7 joints.shoulder.id: {message}"
    assert not any(frame.id & 31 == can.RX_SDO for frame in rig.wire.sent)  # nothing was written by a wrong number


def test_another_firmware_on_serial(monkeypatch):
    rig = Setup(monkeypatch, "port")
    rig.emulator.firmware = (0, 5, 6)
    with pytest.raises(InputError) as caught:
        rig.driver.open()
    message = "the drive runs firmware 0.5.6; this driver is for 0.6, update it with odrivetool"
    assert str(caught.value) == f"rig.yaml:7 joints.shoulder.axis: {message}"


def endpoints_file(path, **changes):
    """As the manufacturer publishes it, with other numbers."""
    types = {layout.format: name for name, layout in properties.TYPES.items()}
    table = {
        f"axis0.{name}": {"id": e.number + 7, "type": types[e.value.format] if e.value else "function"}
        for name, e in properties.S1_0_6_10.table.items()
    }
    data = {"fw_version": "0.6.11-1", "hw_version": "5.2.0", "endpoints": {"vbus_voltage": {"id": 1}, **table}}
    path.write_text(json.dumps(data | changes))
    return str(path)


def test_endpoints_of_another_firmware(monkeypatch, tmp_path):
    name = endpoints_file(tmp_path / "flat_endpoints.json")
    rig = Setup(monkeypatch, "bus", endpoints=name)
    other = properties.read_endpoints(tmp_path / "flat_endpoints.json", None)
    for node in rig.emulator.nodes:
        node.firmware, node.endpoints = (0, 6, 11), other
        node.names = {endpoint.number: name for name, endpoint in other.table.items()}
    rig.driver.open()
    rig.driver.enable("effort")
    assert all(axis.armed and axis.enable_watchdog for axis in rig.axes)


def test_endpoints_that_cannot_be_read(monkeypatch, tmp_path):
    with pytest.raises(InputError) as caught:
        Setup(monkeypatch, "bus", endpoints=str(tmp_path / "none.json"))
    path = tmp_path / "none.json"
    message = f"'{path}' cannot be read (No such file or directory); use the manufacturer's flat_endpoints.json"
    assert str(caught.value) == f"rig.yaml:7 endpoints: {message}"
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(InputError, match=r"bad\.json' is not a flat_endpoints\.json; download it with"):
        Setup(monkeypatch, "bus", endpoints=str(tmp_path / "bad.json"))


@pytest.mark.parametrize(
    ("limits", "what", "message"),
    [
        ((200.0, 1.0), "velocity", "the velocity limit is 200 rad/s at {}, whose own limit is 100 rad/s (vel_limit)"),
        (
            (10.0, 5.0),
            "effort",
            "the effort limit is 5 N*m at {}, whose own limit is 2 N*m (current_soft_max, torque_soft_max)",
        ),
    ],
)
def test_limits_beyond_the_drives(setup, kind, limits, what, message):
    rig = setup(limits=limits)
    with pytest.raises(InputError) as caught:
        rig.driver.open()
    key, called = ("id", "node 3") if kind == "bus" else ("axis", "axis 0")
    assert str(caught.value) == (
        f"rig.yaml:7 joints.shoulder.{key}: {message.format(called)}; lower the joint's limit or raise the drive's"
    )
    assert not rig.wire.is_open


def test_torque_that_falls_with_velocity_counts_in_effort_mode_only(setup):
    for mode, fits in (("effort", False), ("position", True)):
        rig = setup(mode, limits=(10.0, 1.0))
        for axis in rig.axes:
            axis.enable_torque_mode_vel_limit, axis.vel_gain = True, 0.01
        if fits:
            rig.driver.open()
        else:
            with pytest.raises(
                InputError, match=r"the effort limit is 1 N\*m at \w+ \d, whose own limit is 0\.159\d* N\*m"
            ):
                rig.driver.open()


def test_limits_within_the_drives(setup):
    setup(limits=(40.0, 1.5)).driver.open()


@pytest.mark.parametrize("mode", ["velocity", "position"])
def test_the_loops_of_the_drive_stay_within_the_guards_effort(setup, mode):
    rig = enabled(setup, mode, limits=(40.0, 0.5))
    rig.command.position[:], rig.command.velocity[:] = 5.0, 25.0
    most = np.zeros(2)
    for _ in range(100):
        rig.cycle()
        most = np.maximum(most, [abs(rotor.effort) for rotor in rig.rotors])
    # the second joint has a gear of 2; both were pushed as hard as they may be
    assert most == pytest.approx([0.5, 0.25], rel=1e-6)


def test_torque_limits_of_the_drive_are_restored_on_close(setup):
    rig = setup("position", limits=(40.0, 0.5))
    rig.axes[0].torque_soft_max = 1.5
    rig.axes[1].torque_soft_min, rig.axes[1].torque_soft_max = -0.75, 0.75
    own = [(axis.torque_soft_min, axis.torque_soft_max) for axis in rig.axes]
    rig.driver.open()
    assert [(axis.torque_soft_min, axis.torque_soft_max) for axis in rig.axes] == own
    rig.driver.enable("position")
    assert [axis.torque_soft_max for axis in rig.axes] == [0.5, 0.25]
    assert [axis.torque_soft_min for axis in rig.axes] == [-0.5, -0.25]
    rig.driver.stop()
    assert [axis.torque_soft_max for axis in rig.axes] == [0.5, 0.25]  # they may be switched on again
    rig.driver.close()
    assert [(axis.torque_soft_min, axis.torque_soft_max) for axis in rig.axes] == own


@pytest.mark.parametrize("own", [(False, 0.0), (True, 0.7)])
def test_the_watchdog_of_the_drive_is_restored_on_close(setup, own):
    rig = setup("effort")
    for axis in rig.axes:
        axis.enable_watchdog, axis.watchdog_timeout = own
    rig.driver.open()
    rig.driver.enable("effort")
    assert all(axis.enable_watchdog and axis.watchdog_timeout == pytest.approx(0.1) for axis in rig.axes)
    rig.driver.stop()
    assert all(axis.enable_watchdog for axis in rig.axes)
    rig.driver.close()
    for axis in rig.axes:
        assert (axis.enable_watchdog, pytest.approx(axis.watchdog_timeout)) == own


def test_a_drive_that_does_not_answer_prevents_restoring_none_of_the_others(setup, monkeypatch):
    rig = setup("effort", limits=(40.0, 0.5))
    rig.driver.open()
    rig.driver.enable("effort")
    get = rig.driver._get

    def silent(k, path, *seconds):
        if k == 0:
            raise RunError("no answer")
        return get(k, path, *seconds)

    monkeypatch.setattr(rig.driver, "_get", silent)
    rig.driver.close()
    assert [axis.enable_watchdog for axis in rig.axes] == [True, False]
    assert [axis.torque_soft_max for axis in rig.axes] == [0.5, np.inf]


class Unlimited(Axis):
    """Keeps its torque limit."""

    torque_soft_max = property(lambda self: 2.0, lambda self, value: None)


def test_a_drive_whose_torque_cannot_be_limited(setup):
    rig = setup("position", limits=(40.0, 1.5))
    for axis in rig.axes:
        axis.__class__ = Unlimited
    rig.driver.open()
    match = r"^joint 'shoulder': \w+ \d did not accept axis0\.config\.torque_soft_max = 1\.5; it is 2$"
    with pytest.raises(RunError, match=match):
        rig.driver.enable("position")
    assert not any(axis.armed for axis in rig.axes)
