"""ODrives as a driver: from opening to stopping against emulated drives, on CAN and on a serial line."""

import json
from collections import deque
from typing import Any

import numpy as np
import pytest

from cosim.drivers import odrive
from cosim.drivers.common.motor import Rotor
from cosim.drivers.odrive import can_codec as can
from cosim.drivers.odrive import codes, properties
from cosim.drivers.odrive.axis import Axis
from cosim.drivers.transport import CanFrame, CanParams, ConnectionLost, SerialParams, estimate
from cosim.errors import InputError, RunError, SourceLocation
from cosim.types import DriverContext, JointCommand, JointState, Limits
from cosim.units import TURN

MS = 1_000_000
BUS = CanParams(interface="virtual", channel="bus")
PORT = SerialParams(port="/dev/ttyACM0")


class Wire:
    """A line in memory, with its own time: waiting for an item lets physics and drives go on in steps of 1 ms."""

    def __init__(self, emulator, rotors):
        self.emulator, self.rotors = emulator, rotors
        self.t_ns = MS
        self.queue = deque()
        self.is_open = self.broken = self.mute = False
        self.sent = []
        self.spoil = lambda item: [item]  # what becomes of what the drives say

    def open(self):
        self.is_open = True

    def close(self):
        self.is_open = False

    def now(self):
        return self.t_ns

    def send(self, item, deadline_ns):
        if self.broken or not self.is_open:
            raise ConnectionLost("the connection is lost; check the cable", "wire")
        self.sent.append(item)
        if not self.mute:
            self._came(self.emulator.handle(item, self.t_ns))

    def receive(self, deadline_ns):
        if self.broken:
            raise ConnectionLost("the connection is lost; check the cable", "wire")
        while not self.queue and self.t_ns < deadline_ns:
            self.step()
        if not self.queue:
            return None
        return self.queue.popleft()

    def step(self, times=1):
        for _ in range(times):
            for rotor in self.rotors:
                rotor.advance(1e-3)
            self.t_ns += MS
            said = self.emulator.process(self.t_ns)
            if not self.mute:
                self._came(said)

    def _came(self, items):
        for item in items:
            stamped = item._replace(t_ns=self.t_ns) if isinstance(item, CanFrame) else item
            self.queue.extend(self.spoil(stamped))


class Setup:
    """Two joints; the second counts the other way round behind a gear of 2."""

    def __init__(
        self, monkeypatch, kind, mode="effort", limits=None, wiring=({}, {"direction": -1, "ratio": 2.0}), **keys
    ):
        address = "id" if kind == "bus" else "axis"
        numbers = (3, 17) if kind == "bus" else (0, 1)
        self.params = odrive.Params(**{"bus": BUS} if kind == "bus" else {"port": PORT}, **keys)
        joints = [odrive.JointParams(**{address: n}, **w) for n, w in zip(numbers, wiring, strict=True)]
        bounds = limits or (np.inf, np.inf)
        free = np.full(2, np.inf)
        self.context = DriverContext(
            joints=("shoulder", "elbow"),
            wiring=tuple(joints),
            limits=Limits(-free, free, np.full(2, bounds[0]), np.full(2, bounds[1])),
            period=1e-3,
            mode=mode,
            place=lambda *keys: SourceLocation("rig.yaml", 7, ".".join(map(str, keys))),
        )
        self.rotors = [Rotor(), Rotor()]
        self.emulator: Any = odrive.emulate(self.params, self.context, self.rotors)
        self.wire: Any = Wire(self.emulator, self.rotors)
        self.wire.name = (self.params.bus or self.params.port).name
        self.driver = odrive.load(self.params, self.context, self.wire)
        self.state, self.command = JointState.zeros(2), JointCommand.zeros(2)

    @property
    def axes(self) -> list[Any]:
        if isinstance(self.emulator, odrive.Emulator):
            return [node.axis for node in self.emulator.nodes]
        return list(self.emulator.axes.values())

    def read(self, patience=2 * MS):
        self.driver.read(self.state, self.wire.t_ns + patience)
        return self.state

    def write(self):
        self.command.valid_until_ns = self.wire.t_ns + 5 * MS
        self.driver.write(self.command, self.wire.t_ns + MS)

    def cycle(self, times=1):
        for _ in range(times):
            self.write()
            self.wire.step()
            self.read()


@pytest.fixture(params=["bus", "port"])
def kind(request):
    return request.param


@pytest.fixture
def setup(monkeypatch, kind):
    return lambda *args, **keys: Setup(monkeypatch, kind, *args, **keys)


def enabled(setup, mode, **keys):
    rig = setup(mode, **keys)
    rig.driver.open()
    rig.driver.enable(mode)
    return rig


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
def test_the_drives_own_loops(setup, mode, goal):
    rig = enabled(setup, mode)
    getattr(rig.command, mode)[:] = goal
    rig.cycle(1500)
    assert getattr(rig.state, mode) == pytest.approx(goal, rel=0.02, abs=0.01)


def test_feedforward_goes_into_the_drives_slot(setup, kind):
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
        assert rows[0] == {"joint": "shoulder", "saturated": 0, "limit": np.inf, "resolution": 0.0}


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


def test_a_drive_that_somebody_else_switched_off(setup):
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


def test_opening_again(setup):
    rig = enabled(setup, "effort")
    rig.axes[0].disarm(codes.ESTOP_REQUESTED)
    rig.cycle(120)
    rig.driver.close()
    rig.emulator.reset(rig.wire.t_ns)  # and somebody switched it off and on
    rig.wire.queue.clear()
    rig.driver.open()
    assert list(rig.read(20 * MS).fault) == [0, 0]
    rig.driver.enable("velocity")
    assert [axis.control_mode for axis in rig.axes] == [codes.VELOCITY_CONTROL] * 2


def test_nobody_answers(setup, kind):
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
    says = f"the drive answers 'invalid property' to 'r {name}'; check its axes and its firmware"
    assert str(caught.value) == f"rig.yaml:7 joints.elbow.axis: {says}"


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
def test_estimates_that_are_too_rare(monkeypatch, period):
    rig = Setup(monkeypatch, "bus")
    rig.axes[1].encoder_ms = period
    with pytest.raises(InputError) as caught:
        rig.driver.open()
    assert str(caught.value) == (
        "rig.yaml:7 joints.elbow.id: node 17 does not send encoder estimates often enough; "
        "set axis0.config.can.encoder_msg_rate_ms = 10 with odrivetool"
    )


@pytest.mark.parametrize(
    ("firmware", "says"),
    [
        ((0, 5, 6), "node 3 runs firmware 0.5.6 on hardware 5.2.0; this driver is for 0.6, update it with odrivetool"),
        (
            (0, 6, 11),
            "node 3 runs firmware 0.6.11 on hardware 5.2.0, but known is 0.6.10 on 5.2.0; "
            "give 'endpoints': the manufacturer's flat_endpoints.json of it",
        ),
    ],
)
def test_another_firmware_on_can(monkeypatch, firmware, says):
    rig = Setup(monkeypatch, "bus")
    rig.emulator.nodes[0].firmware = firmware
    with pytest.raises(InputError) as caught:
        rig.driver.open()
    assert str(caught.value) == f"rig.yaml:7 joints.shoulder.id: {says}"
    assert not any(frame.id & 31 == can.RX_SDO for frame in rig.wire.sent)  # nothing was written by a wrong number


def test_another_firmware_on_serial(monkeypatch):
    rig = Setup(monkeypatch, "port")
    rig.emulator.firmware = (0, 5, 6)
    with pytest.raises(InputError) as caught:
        rig.driver.open()
    says = "the drive runs firmware 0.5.6; this driver is for 0.6, update it with odrivetool"
    assert str(caught.value) == f"rig.yaml:7 joints.shoulder.axis: {says}"


def endpoints_file(path, **changes):
    """As the maker publishes it, with other numbers."""
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
    says = f"'{path}' cannot be read (No such file or directory); use the manufacturer's flat_endpoints.json"
    assert str(caught.value) == f"rig.yaml:7 endpoints: {says}"
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(InputError, match=r"bad\.json' is not a flat_endpoints\.json; download it with"):
        Setup(monkeypatch, "bus", endpoints=str(tmp_path / "bad.json"))


@pytest.mark.parametrize(
    ("limits", "what", "says"),
    [
        ((200.0, 1.0), "velocity", "the velocity limit is 200 rad/s at {}, whose own limit is 100 rad/s (vel_limit)"),
        (
            (10.0, 5.0),
            "effort",
            "the effort limit is 5 N*m at {}, whose own limit is 2 N*m (current_soft_max, torque_soft_max)",
        ),
    ],
)
def test_limits_beyond_the_drives(setup, kind, limits, what, says):
    rig = setup(limits=limits)
    with pytest.raises(InputError) as caught:
        rig.driver.open()
    key, called = ("id", "node 3") if kind == "bus" else ("axis", "axis 0")
    assert str(caught.value) == (
        f"rig.yaml:7 joints.shoulder.{key}: {says.format(called)}; lower the joint's limit or raise the drive's"
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
def test_the_drives_own_loops_stay_within_the_guards_effort(setup, mode):
    rig = enabled(setup, mode, limits=(40.0, 0.5))
    rig.command.position[:], rig.command.velocity[:] = 5.0, 25.0
    most = np.zeros(2)
    for _ in range(100):
        rig.cycle()
        most = np.maximum(most, [abs(rotor.effort) for rotor in rig.rotors])
    # the second joint has a gear of 2; both were pushed as hard as they may be
    assert most == pytest.approx([0.5, 0.25], rel=1e-6)


def test_torque_limits_of_the_drive_come_back_when_the_line_is_closed(setup):
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


def test_a_line_that_filled_up_while_nobody_listened(setup):
    """What came first was kept and the rest was lost, as with the buffer of a socket."""
    rig = setup()
    rig.driver.open()
    came = rig.wire._came
    rig.wire._came = lambda items: came(items) if len(rig.wire.queue) < 60 else None
    for mode in ("effort", "velocity"):
        rig.wire.step(1500)
        assert not any(rig.read(20 * MS).fault)
        rig.wire.step(1500)
        rig.driver.enable(mode)
        for _ in range(700):
            rig.cycle()
            assert not any(rig.state.fault)
        rig.driver.stop()


@pytest.mark.parametrize("watchdog", [0.0005, 0.001])
def test_a_watchdog_that_is_not_longer_than_the_period(setup, watchdog):
    with pytest.raises(InputError) as caught:
        setup(watchdog=watchdog)
    assert str(caught.value) == (f"rig.yaml:7 watchdog: must be longer than the period of 0.001 s, is {watchdog:g} s")


def test_a_drive_that_does_not_switch_on(setup):
    rig = setup()
    rig.driver.open()
    rig.axes[1].request = lambda state, t_ns: None
    match = r"^joint 'elbow': \w+ 1?\d did not switch on within 1 s; it is in idle; is it calibrated\?$"
    with pytest.raises(RunError, match=match):
        rig.driver.enable("effort")
    assert not rig.axes[0].armed


class Stubborn(Axis):
    """Keeps its watchdog."""

    watchdog_timeout = property(lambda self: 3.0, lambda self, value: None)


def test_a_drive_that_cannot_be_configured(setup):
    rig = setup()
    rig.driver.open()
    rig.axes[0].__class__ = Stubborn
    match = r"^joint 'shoulder': \w+ \d did not accept axis0\.config\.watchdog_timeout = 0\.1; it is 3$"
    with pytest.raises(RunError, match=match):
        rig.driver.enable("effort")


def test_order_of_calls(setup):
    rig = setup()
    with pytest.raises(RunError, match=r"^the drives of shoulder, elbow are not open; open the driver first$"):
        rig.driver.enable("effort")
    rig.driver.stop()
    rig.driver.open()
    with pytest.raises(
        RunError, match=r"^the drives of shoulder, elbow have no mode 'dance'; use one of effort, position, velocity$"
    ):
        rig.driver.enable("dance")
    with pytest.raises(RunError, match=r"^the motors of shoulder, elbow are off; enable the driver first$"):
        rig.write()
    rig.driver.enable("effort")
    rig.command.valid_until_ns = rig.wire.t_ns - 1
    with pytest.raises(
        RunError, match=r"^the command of shoulder, elbow has expired and was not sent; the program is too late$"
    ):
        rig.driver.write(rig.command, rig.wire.t_ns)
    for bad in (np.nan, np.inf, 1e39):
        rig.command.effort[0] = bad
        with pytest.raises(
            RunError, match=r"^the command of joint 'shoulder' is not finite and was not sent; check the controller$"
        ):
            rig.write()
    rig.command.effort[0] = 0.1
    rig.cycle()
    rig.driver.stop()
    rig.driver.stop()
    with pytest.raises(RunError, match="are off"):
        rig.write()


def test_a_lost_line(setup):
    rig = enabled(setup, "effort")
    rig.wire.broken = True
    with pytest.raises(ConnectionLost):
        rig.write()
    with pytest.raises(ConnectionLost):
        rig.read()
    rig.driver.stop()
    rig.driver.close()
    rig.wire.broken = False
    rig.wire.step(150)
    assert not any(axis.armed for axis in rig.axes)  # the watchdogs did it


def test_stopped_by_another_thread_while_switching_on(setup):
    rig = setup()
    rig.driver.open()
    axis, request = rig.axes[0], rig.axes[0].request

    def meddled(state, t_ns):
        request(state, t_ns)
        if state == codes.CLOSED_LOOP:
            rig.driver.stop()

    axis.request = meddled
    match = r"^the motors of shoulder, elbow were stopped; enable the driver first$"
    with pytest.raises(RunError, match=match):
        rig.driver.enable("effort")
    assert not any(axis.armed for axis in rig.axes)


def test_damaged_frames_are_counted_and_dropped(monkeypatch):
    rig = enabled(lambda *a, **k: Setup(monkeypatch, "bus", *a, **k), "effort")
    rig.wire.spoil = lambda item: [item._replace(data=item.data[:3]), item, item._replace(extended=True)]
    rig.cycle(3)
    assert rig.driver.lost > 0
    assert list(rig.state.fault) == [0, 0]


def test_frames_of_others_are_none_of_our_business(monkeypatch):
    rig = enabled(lambda *a, **k: Setup(monkeypatch, "bus", *a, **k), "effort")
    rig.wire.queue.append(can.encode(40, can.GET_ENCODER_ESTIMATES, 9.0, 9.0))
    rig.wire.queue.append(CanFrame(40 << 5 | 9, b"\x01"))
    rig.wire.queue.append(can.request(3, can.GET_IQ))
    rig.cycle()
    assert rig.driver.lost == 0
    assert abs(rig.state.position[0]) < 0.1


def test_lost_and_damaged_lines(monkeypatch):
    """Answers that are missing are not mistaken for others, and the driver finds back."""
    rig = enabled(lambda *a, **k: Setup(monkeypatch, "port", *a, **k), "effort")
    rig.command.effort[:] = 0.0
    rig.rotors[0].position = rig.rotors[1].position = 10.0
    rig.cycle(10)
    numbers = iter(range(10_000))

    def spoil(item):
        n = next(numbers)
        if n % 7 == 3:
            return []
        if n % 11 == 5:
            return [bytes([item[0] ^ 1]) + item[1:]]
        return [item[:2], item[2:]]  # chunks are cut anywhere

    rig.wire.spoil = spoil
    efforts, positions = [], []
    for _ in range(400):
        rig.cycle()
        efforts += list(rig.state.effort)
        positions += [rig.state.position[0]]
    assert rig.driver.lost > 10
    assert set(efforts) == {0.0}
    assert positions == pytest.approx([10.0] * 400, abs=1e-4)
    rig.wire.spoil = lambda item: [item]
    rig.cycle(200)
    before = rig.state.t_ns
    rig.cycle(10)
    assert rig.state.t_ns == before + 10 * MS


def test_parameters():
    with pytest.raises(ValueError, match=r"^give either 'bus' or 'port'$"):
        odrive.Params()
    with pytest.raises(ValueError, match=r"^give either 'bus' or 'port'$"):
        odrive.Params(bus=BUS, port=PORT)
    with pytest.raises(ValueError, match=r"^'endpoints' is for drives on a 'bus'; leave it out$"):
        odrive.Params(port=PORT, endpoints="x.json")
    with pytest.raises(ValueError, match=r"^give either 'id' \(on CAN\) or 'axis' \(on a serial port\)$"):
        odrive.JointParams()
    assert odrive.JointParams(id=62).address == 62
    assert odrive.JointParams(axis=1).address == 1


def test_an_address_of_the_other_transport(monkeypatch):
    rig = Setup(monkeypatch, "bus")
    with pytest.raises(InputError) as caught:
        odrive.load(odrive.Params(port=PORT), rig.context, rig.wire)
    assert str(caught.value) == ("rig.yaml:7 joints.shoulder.id: on a 'port' a joint is wired by 'axis', not by 'id'")


@pytest.mark.parametrize("mode", ["effort", "velocity", "position"])
def test_traffic_is_what_a_cycle_sends(setup, kind, mode):
    rig = enabled(setup, mode)
    traffic = odrive.traffic(rig.params, rig.context)
    rig.wire.sent.clear()
    rig.cycle(64)
    if kind == "bus":

        def shapes(frames):
            return sorted((frame.id, len(frame.data), frame.remote) for frame in frames)

        assert shapes(traffic.out[:-1]) == shapes(rig.wire.sent[-6:])
        assert 1.1 < estimate(traffic, BUS, 1e-3) < 1.3  # two joints fill 1 Mbit/s at 1 kHz
    else:
        assert max(map(len, rig.wire.sent)) <= sum(map(len, traffic.out))
    assert odrive.connection_name(rig.params) == {"bus": "virtual bus", "port": "/dev/ttyACM0"}[kind]
