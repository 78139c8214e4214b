"""Opening the driver of ODrives: identification, firmware, limits; what is restored when it is closed."""

import json

import pytest

from cosim.core.errors import RunError
from cosim.plugins.drivers.odrive import can_codec as can
from cosim.plugins.drivers.odrive import codes, properties
from tests.drivers.bench import refused


def test_opening_again(bench):
    b = bench().start()
    b.axes[0].disarm(codes.ESTOP_REQUESTED)
    b.cycle(120)
    b.driver.close()
    b.emulator.reset(b.t_ns)  # power cycle by someone
    b.queue.clear()
    b.driver.open()
    assert not any(b.read(20).fault)
    b.driver.enable("velocity")
    assert [axis.control_mode for axis in b.axes] == [codes.VELOCITY_CONTROL] * 2


def test_no_drive_answers(bench, said):
    b = bench()
    b.hears = lambda item: False
    b.spoil = lambda item: ()
    said(refused(b.driver.open))
    assert not b.is_open


def firmware(*version):
    return lambda b: setattr(b.emulator.nodes[0], "firmware", version)


ON_BUS = {
    "another id": lambda b: setattr(b.axes[1], "node_id", 18),
    "no heartbeat": lambda b: setattr(b.axes[1], "heartbeat_ms", 0),
    "no estimates": lambda b: setattr(b.axes[1], "encoder_ms", 0),
    "rare estimates": lambda b: setattr(b.axes[1], "encoder_ms", 100),
    "old firmware": firmware(0, 5, 6),
    "unknown firmware": firmware(0, 6, 11),
}
ON_PORT = {
    "one axis": lambda b: b.emulator.axes.pop(1),
    "old firmware": lambda b: setattr(b.emulator, "firmware", (0, 5, 6)),
}


@pytest.mark.parametrize("change", ON_BUS.values(), ids=ON_BUS)
def test_drives_that_do_not_fit_on_a_bus(on_bus, change, said):
    b = on_bus()
    change(b)
    said(refused(b.driver.open))
    written = any(frame.id & 31 == can.RX_SDO for frame in b.sent)
    assert not (written and b.emulator.nodes[0].firmware != (0, 6, 10)), "by the numbers of another firmware"


@pytest.mark.parametrize("change", ON_PORT.values(), ids=ON_PORT)
def test_drives_that_do_not_fit_on_a_port(on_port, change, said):
    b = on_port()
    change(b)
    said(refused(b.driver.open))


def test_endpoints_of_another_firmware(on_bus, tmp_path):
    """As the manufacturer publishes them, with other numbers."""
    types = {layout.format: name for name, layout in properties.TYPES.items()}
    table = {
        f"axis0.{name}": {"id": e.number + 7, "type": types[e.value.format] if e.value else "function"}
        for name, e in properties.S1_0_6_10.table.items()
    }
    data = {"fw_version": "0.6.11-1", "hw_version": "5.2.0", "endpoints": {"vbus_voltage": {"id": 1}, **table}}
    path = tmp_path / "flat_endpoints.json"
    path.write_text(json.dumps(data))
    b = on_bus(endpoints=str(path))
    other = properties.read_endpoints(path, None)
    for node in b.emulator.nodes:
        node.firmware, node.endpoints = (0, 6, 11), other
        node.names = {endpoint.number: name for name, endpoint in other.table.items()}
    b.start()
    assert b.armed == [axis.enable_watchdog for axis in b.axes] == [True, True]


def test_endpoints_that_cannot_be_read(on_bus, tmp_path, said):
    (tmp_path / "bad.json").write_text("[]")
    for name in ("none", "bad"):
        said(refused(lambda name=name: on_bus(endpoints=str(tmp_path / f"{name}.json"))))


@pytest.mark.parametrize("limits", [(200.0, 1.0), (10.0, 5.0)], ids=["velocity", "effort"])
def test_limits_beyond_the_drives(bench, limits, said):
    b = bench("effort", *limits)
    said(refused(b.driver.open))
    assert not b.is_open
    bench("effort", 40.0, 1.5).driver.open()


def test_torque_that_falls_with_velocity_counts_in_effort_mode_only(bench, said):
    for mode in ("effort", "position"):
        b = bench(mode, 10.0, 1.0)
        for axis in b.axes:
            axis.enable_torque_mode_vel_limit, axis.vel_gain = True, 0.01
        if mode == "effort":
            said(refused(b.driver.open))
        else:
            b.driver.open()


def test_torque_limits_of_the_drive_are_restored_on_close(bench):
    b = bench("position", 40.0, 0.5)
    b.axes[0].torque_soft_max = 1.5
    b.axes[1].torque_soft_min, b.axes[1].torque_soft_max = -0.75, 0.75

    def limits():
        return [(axis.torque_soft_min, axis.torque_soft_max) for axis in b.axes]

    own, guards = limits(), [(-0.5, 0.5), (-0.25, 0.25)]
    b.driver.open()
    assert limits() == own
    b.driver.enable("position")
    assert limits() == guards
    b.driver.stop()
    assert limits() == guards  # they may be switched on again
    b.driver.close()
    assert limits() == own


@pytest.mark.parametrize("own", [(False, 0.0), (True, 0.7)])
def test_the_watchdog_of_the_drive_is_restored_on_close(bench, own):
    b = bench()
    for axis in b.axes:
        axis.enable_watchdog, axis.watchdog_timeout = own
    b.start()
    assert all(axis.enable_watchdog and axis.watchdog_timeout == pytest.approx(0.1) for axis in b.axes)
    b.driver.stop()
    assert all(axis.enable_watchdog for axis in b.axes)
    b.driver.close()
    for axis in b.axes:
        assert (axis.enable_watchdog, pytest.approx(axis.watchdog_timeout)) == own


def test_a_drive_that_does_not_answer_prevents_restoring_none_of_the_others(bench, monkeypatch):
    b = bench("effort", 40.0, 0.5).start()
    get = b.driver._get

    def silent(k, path, *seconds):
        if k == 0:
            raise RunError("no answer")
        return get(k, path, *seconds)

    monkeypatch.setattr(b.driver, "_get", silent)
    b.driver.close()
    assert [axis.enable_watchdog for axis in b.axes] == [True, False]
    assert [axis.torque_soft_max for axis in b.axes] == [0.5, float("inf")]
