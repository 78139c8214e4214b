"""Measured values byte by byte as `comm/commands.c` of firmware 6 appends them, and what else its clients ask for."""

import math
import struct
from typing import Any

import pytest

from cosim.plugins.drivers.common.motor import Rotor
from cosim.plugins.drivers.transport import CanFrame
from cosim.plugins.drivers.transport.content_packets import (
    ASK,
    ASK_AS_REQUEST,
    SILENT,
    TELL,
    FrameReader,
    PacketReader,
    frames,
    packet,
)
from cosim.plugins.drivers.vesc import codec, values
from cosim.plugins.drivers.vesc.emulator import BOOT_NS, Emulator, VescDrive
from cosim.plugins.drivers.vesc.params import JointParams
from cosim.plugins.drivers.vesc.ping import found, ping, pong

# of COMM_GET_VALUES, one after the other: two temperatures, four currents, duty cycle, rpm, voltage, charges and
# energies, tachometers, fault, angle, id, three temperatures, two voltages, status
LAYOUT = ">hh iiii hi h iiii ii B i B hhh ii B".replace(" ", "")
SETUP_LAYOUT = ">hh ii hi i hh iiii ii i B B B i I I".replace(" ", "")
PROGRAM = 254


class Bench:
    """Two emulated drives on CAN (1, 2), or on a UART with the second one behind the first."""

    def __init__(self) -> None:
        self.rotors = [Rotor(), Rotor()]
        own = [JointParams(id=k + 1, pole_pairs=7, torque_constant=0.1, forward=k > 0) for k in range(2)]
        self.emulator = Emulator({o.id: VescDrive(r, o, 100) for o, r in zip(own, self.rotors, strict=True)})
        self.t_ns = BOOT_NS

    def uart(self, content: bytes) -> list[bytes]:
        """The contents of the answers."""
        answers = self.emulator.handle(packet(content), self.t_ns)
        return PacketReader().feed(b"".join(answers))

    def can(self, content: bytes, receiver: int = 1, what: int = ASK) -> list[tuple[int, int, bytes]]:
        """(receiver, what, content) of the answers."""
        reader, found = FrameReader(), []
        for frame in frames(receiver, PROGRAM, content, what):
            for answer in self.emulator.handle(frame, self.t_ns):
                if (complete := reader.complete(answer)) is not None:
                    found.append((complete.receiver, complete.what, complete.data))
        return found

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.t_ns += 1_000_000
            self.emulator.process(self.t_ns)
            for rotor in self.rotors:
                rotor.advance(1e-3)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def turning(bench) -> Any:
    """The first motor turns at 20 rad/s and is fed 2 A."""
    rotor = bench.rotors[0]
    rotor.position, rotor.velocity, rotor.temperature = 1.0, 20.0, 40.0
    bench.uart(struct.pack(">Bi", 6, 2000))
    bench.emulator.process(bench.t_ns + 1)
    return bench


def test_all_values(turning):
    (content,) = turning.uart(b"\x04")
    assert content[0] == 4 and len(content) == 1 + struct.calcsize(LAYOUT) == 74
    found = struct.unpack(LAYOUT, content[1:])
    duty = 0.1 * 20.0 * math.sqrt(3) / 1.5 / 24.0
    assert found[:2] == (400, 400) and found[16:17] == (round(math.degrees(1.0) * 1e6),)
    assert found[2:6] == (200, round(100 * 0.1 * 20.0 * 2.0 / 24.0), 0, 200)
    assert found[6:9] == (round(1000 * duty), round(20 * 7 * 60 / (2 * math.pi)), 240)
    assert found[15] == 0 and found[17] == 1 and found[18:21] == (400,) * 3
    assert found[21:] == (0, round(1e3 * 0.1 * 20.0 / 1.5), 0)


def test_selected_values_are_those_of_the_mask(turning):
    everything = struct.unpack(LAYOUT, turning.uart(b"\x04")[0][1:])
    for bit, at in ((0, 0), (7, 7), (8, 8), (17, 17), (20, 22), (21, 23)):
        mask = (1 << bit).to_bytes(4, "big")
        (content,) = turning.uart(b"\x32" + mask)
        letter = LAYOUT[1:][at]
        assert content == b"\x32" + mask + struct.pack(">" + letter, everything[at])
    (content,) = turning.uart(b"\x32" + bytes(4))
    assert content == b"\x32" + bytes(4)


def test_values_of_the_setup(turning):
    (content,) = turning.uart(b"\x2f")
    found = struct.unpack(SETUP_LAYOUT, content[1:])
    assert found[:2] == (400, 400) and found[7] == 240 and found[16:19] == (0, 1, 1)
    (content,) = turning.uart(b"\x33" + (1 << 7).to_bytes(4, "big"))
    assert content[5:] == struct.pack(">h", 240)


def test_charge_energy_and_way_are_counted(bench):
    rotor = bench.rotors[0]
    drive = bench.emulator.drives[1]
    bench.emulator.reset(bench.t_ns - BOOT_NS)
    for direction, current in ((0, 2.0), (1, -2.0)):
        before = drive.electrical.quantities()
        for _ in range(100):
            drive.follow("effort", current, bench.t_ns)
            rotor.velocity = 50.0
            bench.run(1)
        after = drive.electrical.quantities()
        key = "watt_hours_charged" if direction else "watt_hours"
        # the motor is fed with 50 rad/s · 0.2 N·m for 0.1 s, and feeds back then; the first step has no current yet
        assert after[key] - before[key] == pytest.approx(50 * 0.2 * 0.1 / 3600, rel=0.03)
        assert after["tachometer"] > before["tachometer"]
    way = after["tachometer"]
    assert way == after["tachometer_abs"] == math.floor(rotor.position * 7 * 6 / (2 * math.pi))


def test_values_beyond_their_fields_are_at_their_ends():
    content = values.encode({"temperature": 1e9, "current": -math.inf, "erpm": math.nan}, values.mask_of("temperature"))
    assert content == struct.pack(">h", 32767)
    content = values.encode({"current": -math.inf, "erpm": math.nan}, values.mask_of("current", "erpm"))
    assert content == struct.pack(">ii", -(1 << 31), -(1 << 31))


def test_answers_in_parts_on_can_and_who_is_answered(turning):
    bench = turning
    assert bench.can(b"\x04") == [(PROGRAM, TELL, bench.uart(b"\x04")[0])]
    assert bench.can(b"\x00", receiver=2)[0][2] == bench.uart(b"\x22\x02\x00")[0]  # forwarded
    assert bench.can(b"\x04", what=SILENT) == [] == bench.can(b"\x04", what=TELL)
    assert [what for _, what, _ in bench.can(b"\x04", what=ASK_AS_REQUEST)] == [ASK]
    ids = [struct.unpack(LAYOUT, content[1:])[17] for _, _, content in bench.can(b"\x04", receiver=255)]
    assert ids == [1, 2]


@pytest.mark.parametrize(
    ("kind", "value", "mode", "target"),
    [
        (0, 20_000, "duty", 0.2),
        (1, 1_500, "effort", 0.15),
        (2, 1_500, "brake", 1.5),
        (3, 700, "velocity", 10.0 * math.pi * 2 / 6),
        (10, 50_000, "effort", 0.5 * 2.0),
        (11, 50_000, "brake", 0.5 * 20.0),
        (12, 1_500, "handbrake", 1.5),
        (13, 50_000, "handbrake", 0.5 * 20.0),
    ],
)
def test_setpoints_on_can(bench, kind, value, mode, target):
    """CAN_PACKET_SET_… of comm_can.c; relative ones are fractions of the current limit of 20 A."""
    for receiver, moved in ((1, [True, False]), (255, [True, True])):
        bench.emulator.reset(bench.t_ns - BOOT_NS)
        frame = CanFrame(kind << 8 | receiver, value.to_bytes(4, "big"), extended=True)
        assert bench.emulator.handle(frame, bench.t_ns) == []
        drives = list(bench.emulator.drives.values())
        assert [drive.mode == mode for drive in drives] == moved
        assert drives[0].target == pytest.approx(target)


def test_a_handbrake_holds_the_magnet(bench):
    rotor = bench.rotors[0]
    rotor._friction = 0.05
    rotor.position = 0.1
    for _ in range(40):
        bench.uart(struct.pack(">Bi", 10, 5000))
        bench.run(20)
    assert rotor.position == pytest.approx(0.0, abs=1e-3) and rotor.velocity == pytest.approx(0.0, abs=1e-3)


def test_a_duty_cycle_is_within_its_limit(bench):
    for least, most, taken in ((0.005, 0.3, 0.3), (0.005, 7.0, 0.95), (0.0, math.nan, 0.0), (0.0, -1.0, 0.0)):
        bench.uart(codec.LIMITS.pack(48, 0, 0, 1, 0, 1, 1, -1e5, 1e5, least, most, -1e5, 1e5, -100, 100))
        bench.uart(struct.pack(">Bi", 5, 1 << 30))
        assert bench.emulator.drives[1].target == pytest.approx(taken)


def test_what_vesc_tool_asks_when_it_connects(bench):
    (version,) = bench.uart(b"\x00")
    assert version[:3] == b"\x00\x06\x05" and version[3:12] == b"emulated\0" and len(version) == 12 + 12 + 13
    for command in (14, 15, 17, 18):  # the configurations, and the default ones
        assert bench.uart(bytes([command]))[0][0] == command
    assert bench.uart(b"\x3e") == [b"\x3e\x02"]  # the drives behind it
    assert [len(bench.uart(bytes([command]))[0]) for command in (31, 32, 33)] == [9, 17, 5]
    assert bench.uart(b"\x14faults\0") == [b"\x15Invalid command: faults\n"]
    assert bench.uart(codec.LIMITS.pack(48, 0, 0, 0, 0, *range(10))) == []  # without acknowledgement
    assert bench.uart(codec.LIMITS.pack(48, 0, 0, 1, 0, *range(10)) + bytes(8)) == [b"\x30"]
    assert bench.emulator.unknown.count == 0


def test_unknown_commands(bench):
    for command in (96, 96, 130):
        assert bench.uart(bytes([command])) == []
    assert bench.emulator.unknown.taken() == ["VESC 1: command 96", "VESC 1: command 130"]
    assert bench.emulator.unknown.count == 3 and bench.emulator.unknown.taken() == []


# --- a ping and its answer, byte by byte as in the firmware's comm_can.c ---


def test_a_ping_and_its_answer():
    sent = ping(5, 254)
    assert sent == CanFrame(0x1105, b"\xfe", extended=True)
    answer = pong(sent, {5, 9})
    assert answer == CanFrame(0x12FE, b"\x05\x00", extended=True)
    assert found(answer, 254) == 5
    assert found(CanFrame(0x12FE, b"\x05", extended=True), 254) == 5  # older firmware
    assert found(CanFrame(0x12FE, b"\x05\x01", extended=True), 254) is None  # a battery


@pytest.mark.parametrize(
    "frame",
    [
        CanFrame(0x1106, b"\xfe", extended=True),
        CanFrame(0x1105, b"", extended=True),
        CanFrame(0x105, b"\xfe"),
        CanFrame(0x1105, b"\xfe", extended=True, remote=True),
    ],
)
def test_other_frames_are_no_ping(frame):
    assert pong(frame, {5}) is None and found(frame, 254) is None
