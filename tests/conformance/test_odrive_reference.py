"""Emulated ODrives with clients written as the manufacturer's documents show them, over python-can and pyserial,
and the manufacturer's table of signals read bit by bit."""

import math
import struct
import uuid

import can
import pytest
import serial

from cosim.drivers import odrive
from cosim.drivers.common.motor import Rotor
from cosim.drivers.odrive import can_codec, codes
from cosim.drivers.transport import CanFrame, CanParams, SerialParams, now
from cosim.errors import SourceLocation
from cosim.types import DriverContext, Limits
from cosim.units import TURN
from tests.kit.clock import MS

CHANNEL = uuid.uuid4().hex  # a virtual bus of this process

# The signals of the manufacturer's DBC for 0.6 (as in can_simple_messages.hpp of odriverobotics/ODriveArduino and in
# manual/can-protocol): command, name, bytes of payload, then (first bit, bits, kind, factor, SI per unit) of each
SIGNALS = [
    (0x00, "Get_Version", 8, [(8 * k, 8, "u", 1, 1) for k in range(8)]),
    (0x01, "Heartbeat", 8, [(0, 32, "u", 1, 1), (32, 8, "u", 1, 1), (40, 8, "u", 1, 1), (48, 8, "u", 1, 1)]),
    (0x02, "Estop", 0, []),
    (0x03, "Get_Error", 8, [(0, 32, "u", 1, 1), (32, 32, "u", 1, 1)]),
    (0x07, "Set_Axis_State", 8, [(0, 32, "u", 1, 1)]),
    (0x09, "Get_Encoder_Estimates", 8, [(0, 32, "f", 1, TURN), (32, 32, "f", 1, TURN)]),
    (0x0B, "Set_Controller_Mode", 8, [(0, 32, "u", 1, 1), (32, 32, "u", 1, 1)]),
    (0x0C, "Set_Input_Pos", 8, [(0, 32, "f", 1, TURN), (32, 16, "i", 1e-3, TURN), (48, 16, "i", 1e-3, 1)]),
    (0x0D, "Set_Input_Vel", 8, [(0, 32, "f", 1, TURN), (32, 32, "f", 1, 1)]),
    (0x0E, "Set_Input_Torque", 8, [(0, 32, "f", 1, 1)]),
    (0x0F, "Set_Limits", 8, [(0, 32, "f", 1, TURN), (32, 32, "f", 1, 1)]),
    (0x11, "Set_Traj_Vel_Limit", 8, [(0, 32, "f", 1, TURN)]),
    (0x12, "Set_Traj_Accel_Limits", 8, [(0, 32, "f", 1, TURN), (32, 32, "f", 1, TURN)]),
    (0x13, "Set_Traj_Inertia", 8, [(0, 32, "f", 1, 1 / TURN)]),
    (0x14, "Get_Iq", 8, [(0, 32, "f", 1, 1), (32, 32, "f", 1, 1)]),
    (0x15, "Get_Temperature", 8, [(0, 32, "f", 1, 1), (32, 32, "f", 1, 1)]),
    (0x16, "Reboot", 1, [(0, 8, "u", 1, 1)]),
    (0x17, "Get_Bus_Voltage_Current", 8, [(0, 32, "f", 1, 1), (32, 32, "f", 1, 1)]),
    (0x18, "Clear_Errors", 1, [(0, 8, "u", 1, 1)]),
    (0x19, "Set_Absolute_Position", 8, [(0, 32, "f", 1, TURN)]),
    (0x1A, "Set_Pos_Gain", 8, [(0, 32, "f", 1, 1)]),
    (0x1B, "Set_Vel_Gains", 8, [(0, 32, "f", 1, 1 / TURN), (32, 32, "f", 1, 1 / TURN)]),
    (0x1C, "Get_Torques", 8, [(0, 32, "f", 1, 1), (32, 32, "f", 1, 1)]),
    (0x1D, "Get_Powers", 8, [(0, 32, "f", 1, 1), (32, 32, "f", 1, 1)]),
    (0x1F, "Enter_DFU_Mode", 0, []),
]


def bits(data, first, count, kind):
    """A signal in Intel order."""
    raw = int.from_bytes(data.ljust(8, b"\0"), "little") >> first & (1 << count) - 1
    if kind == "f":
        return struct.unpack("<f", raw.to_bytes(4, "little"))[0]
    return raw - (1 << count) if kind == "i" and raw >> count - 1 else raw


@pytest.mark.parametrize(("command", "name", "length", "signals"), SIGNALS, ids=[row[1] for row in SIGNALS])
def test_the_manufacturers_table_of_signals(command, name, length, signals):
    values = [1.25 * si if kind == "f" else -1.5 * si if kind == "i" else 5 for _, _, kind, _, si in signals]
    frame = can_codec.encode(9, command, *values)
    assert (frame.id, len(frame.data)) == (9 << 5 | command, length)
    read = [bits(frame.data, first, count, kind) * factor * si for first, count, kind, factor, si in signals]
    assert read == pytest.approx(values)
    message = can_codec.decode(frame)
    assert message is not None
    assert message.values == pytest.approx(values)


def test_the_table_is_whole():
    assert {row[0] for row in SIGNALS} == set(can_codec.LAYOUTS) - {can_codec.ADDRESS}


# --- clients ----------------------------------------------------------------------------------------------


class Drives:
    """Emulated drives on the device's end of a line; `pump` lets them have what came, `run` lets time go by."""

    def __init__(self, params, joints):
        free = [math.inf] * len(joints)
        limits = Limits(*([-value for value in free], free, free, free))  # pyright: ignore[reportArgumentType]
        names = tuple(f"joint{k}" for k in range(len(joints)))
        context = DriverContext(
            names, tuple(joints), limits, 1e-3, "velocity", lambda *keys: SourceLocation("rig.yaml")
        )
        self.rotors = [Rotor() for _ in joints]
        self.emulator = odrive.emulate(params, context, self.rotors)
        self.link = odrive.device(params, context)
        self.t_ns = 0

    def __enter__(self):
        self.link.open()
        return self

    def __exit__(self, *error):
        self.link.close()

    def pump(self):
        while (item := self.link.receive(0)) is not None:
            self.say(self.emulator.handle(item, self.t_ns))

    def run(self, seconds):
        for _ in range(round(seconds * 1000)):
            for rotor in self.rotors:
                rotor.advance(1e-3)
            self.t_ns += MS
            self.say(self.emulator.process(self.t_ns))

    def say(self, items):
        for item in items:
            self.link.send(item, 1 << 62)


@pytest.fixture
def drives():
    bus = CanParams(interface="virtual", channel=CHANNEL)
    with Drives(odrive.Params(bus=bus), [odrive.JointParams(id=0), odrive.JointParams(id=1)]) as found:
        yield found


@pytest.fixture
def bus(drives):
    with can.Bus(interface="virtual", channel=CHANNEL) as found:
        yield found


def messages(bus):
    while (message := bus.recv(timeout=0)) is not None:
        yield message


def test_the_minimal_client_of_the_manual(bus, drives):
    """Closed loop, wait for the heartbeat, velocities, encoder estimates (examples/can_simple.py)."""
    node = 0
    drives.emulator.nodes[0].axis.control_mode = codes.VELOCITY_CONTROL  # "already configured for velocity control"
    bus.send(can.Message(arbitration_id=node << 5 | 0x07, data=struct.pack("<I", 8), is_extended_id=False))
    drives.pump()
    drives.run(0.15)
    beats = [m for m in messages(bus) if m.arbitration_id == (node << 5 | 0x01)]
    error, state, result, done = struct.unpack("<IBBB", bytes(beats[-1].data[:7]))
    assert (error, state, result, done) == (0, 8, 1, 1)
    for _ in range(30):
        data = struct.pack("<ff", 0.5, 0.0)
        bus.send(can.Message(arbitration_id=node << 5 | 0x0D, data=data, is_extended_id=False))
        drives.pump()
        drives.run(0.1)
    position, velocity = struct.unpack(
        "<ff", [bytes(m.data) for m in messages(bus) if m.arbitration_id == (node << 5 | 0x09)][-1]
    )
    assert velocity == pytest.approx(0.5, rel=0.02)
    assert position == pytest.approx(drives.rotors[0].position / TURN, rel=1e-6)
    assert drives.rotors[1].position == 0.0


def test_parameters_as_the_manual_accesses_them(bus, drives):
    """Version check, write, read, call (examples/can_param_access.py), with numbers of 0.6.10 for the S1."""
    bus.send(can.Message(arbitration_id=0x00, data=b"", is_extended_id=False))
    drives.pump()
    (reply,) = messages(bus)
    _, line, version, variant, major, minor, revision, _ = struct.unpack("<BBBBBBBB", reply.data)
    assert f"{line}.{version}.{variant}" == "5.2.0"
    assert f"{major}.{minor}.{revision}" == "0.6.10"
    vel_integrator_limit, watchdog_feed = 400, 549
    data = struct.pack("<BHBf", 0x01, vel_integrator_limit, 0, 1.234)
    bus.send(can.Message(arbitration_id=0x04, data=data, is_extended_id=False))
    bus.send(
        can.Message(arbitration_id=0x04, data=struct.pack("<BHB", 0x00, vel_integrator_limit, 0), is_extended_id=False)
    )
    drives.pump()
    (reply,) = messages(bus)
    assert reply.arbitration_id == 0x05
    assert struct.unpack_from("<BHBf", reply.data) == (0, vel_integrator_limit, 0, pytest.approx(1.234))
    bus.send(can.Message(arbitration_id=0x04, data=struct.pack("<BHB", 0x01, watchdog_feed, 0), is_extended_id=False))
    drives.pump()
    assert list(messages(bus)) == []


def test_enumeration_as_the_manual_does_it(bus, drives):
    """Ask everybody for the address, give another (examples/can_enumerate.py)."""
    bus.send(can.Message(arbitration_id=0x3F << 5 | 0x06, is_extended_id=False, is_remote_frame=True))
    drives.pump()
    found = {int.from_bytes(m.data[1:7], "little"): m.data[0] for m in messages(bus) if m.arbitration_id & 0x1F == 0x06}
    assert sorted(found.values()) == [0, 1]
    serial_number = next(key for key, node in found.items() if node == 1)
    data = bytes([5]) + serial_number.to_bytes(6, byteorder="little")
    bus.send(can.Message(arbitration_id=0x3F << 5 | 0x06, data=data, is_extended_id=False))
    bus.send(can.Message(arbitration_id=5 << 5 | 0x09, is_extended_id=False, is_remote_frame=True))
    drives.pump()
    assert [m.arbitration_id for m in messages(bus)] == [5 << 5 | 0x09]


def test_errors_as_the_manual_clears_them(bus, drives):
    """The disarm reason stays in the heartbeat until the errors are cleared (examples/can_simple_utils.py)."""
    bus.send(can.Message(arbitration_id=0x07, data=struct.pack("<I", 8), is_extended_id=False))
    bus.send(can.Message(arbitration_id=0x02, data=b"", is_extended_id=False))
    drives.pump()
    drives.run(0.1)
    beat = next(m for m in messages(bus) if m.arbitration_id == 0x01)
    assert struct.unpack("<IBBB", bytes(beat.data[:7])) == (0x0200_0000, 1, 3, 1)
    bus.send(can.Message(arbitration_id=0x18, data=b"\x00", is_extended_id=False))
    drives.pump()
    drives.run(0.1)
    beat = next(m for m in messages(bus) if m.arbitration_id == 0x01)
    assert struct.unpack("<IBBB", bytes(beat.data[:7]))[:2] == (0, 1)


def test_a_client_on_the_serial_port(tmp_path):
    """Feedback, torque, parameters and states as the manufacturer's ODriveUART writes and reads them."""
    where = str(tmp_path / "odrive")
    params = odrive.Params(port=SerialParams(port=where, baudrate=115200.0))
    with (
        Drives(params, [odrive.JointParams(axis=0)]) as drives,
        serial.Serial(where, 115200, timeout=1.0) as port,
    ):

        def ask(text):
            port.write(text)
            while (item := drives.link.receive(now() + 2_000 * MS)) is not None:
                drives.say(drives.emulator.handle(item, drives.t_ns))
                if item.endswith(b"\n"):
                    break
            return port.read_until(b"\n").decode() if text[:1] in b"rf" else ""

        assert ask(b"r axis0.current_state\n") == "1\r\n"
        ask(b"w axis0.requested_state 8\n")
        assert ask(b"r axis0.current_state\n").strip() == "8"
        ask(b"c 0 0.5000\n")
        drives.run(0.05)
        position, _, velocity = ask(b"f 0\n").partition(" ")
        assert float(position) == pytest.approx(drives.rotors[0].position / TURN, abs=1e-6)
        assert float(velocity) == pytest.approx(drives.rotors[0].velocity / TURN, abs=1e-6)
        assert drives.rotors[0].effort == 0.5
        assert ask(b"r vbus_voltage *93\n") == "24.000000*40\r\n"


def test_frames_of_the_driver_reach_an_independent_reader(bus, drives):
    """What the codec sends over a real bus is what struct reads there."""
    host = can.Bus(interface="virtual", channel=CHANNEL)
    try:
        frame: CanFrame = can_codec.input_position(3, 0.5 * TURN, -0.25 * TURN, 1.5)
        host.send(can.Message(arbitration_id=frame.id, data=frame.data, is_extended_id=False))
        (message,) = messages(bus)
        assert message.arbitration_id == 0x6C
        assert struct.unpack("<fhh", message.data) == (0.5, -250, 1500)
    finally:
        host.shutdown()
