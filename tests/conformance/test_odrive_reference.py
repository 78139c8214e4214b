"""Emulated ODrives with clients written as the manufacturer's documents show them, over python-can and pyserial,
and the manufacturer's table of signals read bit by bit."""

import struct
import uuid
from typing import NamedTuple

import can
import pytest
import serial

from cosim.core.units import TURN
from cosim.plugins.drivers.odrive import can_codec, codes
from cosim.plugins.drivers.transport import CanFrame

from .served import Served

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


class Client(NamedTuple):
    """The drives 0 and 1, and a client on their bus, which waits for nothing."""

    drives: Served
    bus: can.BusABC

    def send(self, node: int, command: int, data: bytes = b"", remote: bool = False) -> None:
        id = node << 5 | command
        self.bus.send(can.Message(arbitration_id=id, data=data, is_extended_id=False, is_remote_frame=remote))
        self.drives.pump()

    def heard(self) -> list[tuple[int, int, bytes]]:
        """(node, command, data) of what has come."""
        messages = iter(lambda: self.bus.recv(timeout=0), None)
        return [
            (message.arbitration_id >> 5, message.arbitration_id & 0x1F, bytes(message.data)) for message in messages
        ]

    def last(self, node: int, command: int) -> bytes:
        return [data for *head, data in self.heard() if head == [node, command]][-1]


@pytest.fixture
def client(tmp_path):
    channel = uuid.uuid4().hex
    driver = {"type": "odrive", "bus": {"interface": "virtual", "channel": channel}}
    drives = Served(tmp_path, driver, [{"id": 0}, {"id": 1}], in_thread=False, each=0)
    with drives, can.Bus(interface="virtual", channel=channel) as bus:
        yield Client(drives, bus)


def test_the_minimal_client_of_the_manual(client):
    """Closed loop, wait for the heartbeat, velocities, encoder estimates (examples/can_simple.py)."""
    drives, node = client.drives, 0
    drives.drives.nodes[0].axis.control_mode = codes.VELOCITY_CONTROL  # "already configured for velocity control"
    client.send(node, 0x07, struct.pack("<I", 8))
    drives.run(0.15)
    assert struct.unpack("<IBBB", client.last(node, 0x01)[:7]) == (0, 8, 1, 1)
    for _ in range(30):
        client.send(node, 0x0D, struct.pack("<ff", 0.5, 0.0))
        drives.run(0.1)
    position, velocity = struct.unpack("<ff", client.last(node, 0x09))
    assert velocity == pytest.approx(0.5, rel=0.02)
    assert position == pytest.approx(drives.motors[0].position / TURN, abs=0.01)
    assert drives.motors[1].position == 0.0


def test_parameters_as_the_manual_accesses_them(client):
    """Version check, write, read, call (examples/can_param_access.py), with numbers of 0.6.10 for the S1."""
    client.send(0, 0x00)
    ((_, _, reply),) = client.heard()
    _, line, version, variant, major, minor, revision, _ = struct.unpack("<BBBBBBBB", reply)
    assert (f"{line}.{version}.{variant}", f"{major}.{minor}.{revision}") == ("5.2.0", "0.6.10")
    vel_integrator_limit, watchdog_feed = 400, 549
    client.send(0, 0x04, struct.pack("<BHBf", 0x01, vel_integrator_limit, 0, 1.234))
    client.send(0, 0x04, struct.pack("<BHB", 0x00, vel_integrator_limit, 0))
    ((_, command, reply),) = client.heard()
    assert (command, *struct.unpack_from("<BHBf", reply)) == (5, 0, vel_integrator_limit, 0, pytest.approx(1.234))
    client.send(0, 0x04, struct.pack("<BHB", 0x01, watchdog_feed, 0))
    assert client.heard() == []


def test_enumeration_as_the_manual_does_it(client):
    """Ask everybody for the address, give another (examples/can_enumerate.py)."""
    client.send(0x3F, 0x06, remote=True)
    found = {int.from_bytes(data[1:7], "little"): data[0] for _, command, data in client.heard() if command == 0x06}
    assert sorted(found.values()) == [0, 1]
    serial_number = next(key for key, node in found.items() if node == 1)
    client.send(0x3F, 0x06, bytes([5]) + serial_number.to_bytes(6, byteorder="little"))
    client.send(5, 0x09, remote=True)
    assert [head for *head, _ in client.heard()] == [[5, 0x09]]


def test_errors_as_the_manual_clears_them(client):
    """The disarm reason stays in the heartbeat until the errors are cleared (examples/can_simple_utils.py)."""
    client.send(0, 0x07, struct.pack("<I", 8))
    client.send(0, 0x02)
    client.drives.run(0.1)
    assert struct.unpack("<IBBB", client.last(0, 0x01)[:7]) == (0x0200_0000, 1, 3, 1)
    client.send(0, 0x18, b"\x00")
    client.drives.run(0.1)
    assert struct.unpack("<IBBB", client.last(0, 0x01)[:7])[:2] == (0, 1)


def test_a_client_on_the_serial_port(tmp_path):
    """Feedback, torque, parameters and states as the manufacturer's ODriveUART writes and reads them."""
    where = str(tmp_path / "odrive")
    driver = {"type": "odrive", "port": {"port": where, "baudrate": 115200}}
    with (
        Served(tmp_path, driver, [{"axis": 0}], in_thread=False, each=0) as drives,
        serial.Serial(where, 115200, timeout=30.0) as port,
    ):
        (motor,) = drives.motors

        def ask(text):
            port.write(text)
            drives.pump(len(text))
            return port.read_until(b"\n").decode() if text[:1] in b"rf" else ""

        assert ask(b"r axis0.current_state\n") == "1\r\n"
        ask(b"w axis0.requested_state 8\n")
        assert ask(b"r axis0.current_state\n").strip() == "8"
        ask(b"c 0 0.5000\n")
        drives.run(0.05)
        position, _, velocity = ask(b"f 0\n").partition(" ")
        assert float(position) == pytest.approx(motor.position / TURN, abs=1e-6)
        assert float(velocity) == pytest.approx(motor.velocity / TURN, abs=1e-6)
        assert motor.requested == 0.5
        assert ask(b"r vbus_voltage *93\n") == "24.000000*40\r\n"


def test_frames_of_the_driver_reach_an_independent_reader():
    """What the codec sends over a real bus is what struct reads there."""
    channel = uuid.uuid4().hex
    with can.Bus(interface="virtual", channel=channel) as host, can.Bus(interface="virtual", channel=channel) as bus:
        frame: CanFrame = can_codec.encode(3, can_codec.SET_INPUT_POS, 0.5 * TURN, -0.25 * TURN, 1.5)
        host.send(can.Message(arbitration_id=frame.id, data=frame.data, is_extended_id=False))
        message = bus.recv(timeout=30.0)
        assert message is not None and message.arbitration_id == 0x6C
        assert struct.unpack("<fhh", message.data) == (0.5, -250, 1500)
