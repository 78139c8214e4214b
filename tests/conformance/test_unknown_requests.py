"""What an emulated drive does not know is shown once, by every family; what a driver sends is known."""

from typing import Any

import pytest

from cosim.drivers.common.unknown_requests import MAX_KEPT, MAX_LENGTH, UnknownRequests, shown
from cosim.drivers.dynamixel import codec as dynamixel
from cosim.drivers.modbus.codec import checked
from cosim.drivers.transport import CanFrame
from cosim.drivers.transport.content_packets import packet
from tests.kit.clock import MS

from .families import Case, stepped_cases
from .wires import Desk

# on a connection in memory; the others have the same emulators
APART = stepped_cases()
apart = pytest.mark.parametrize("case", APART, ids=str)

# (a request that a family does not have, to the drive 1 of its bench, and how it is shown)
UNKNOWN: dict[tuple[str, str], tuple[Any, str]] = {
    ("cia402", "virtual"): (CanFrame(0x601, bytes.fromhex("a017100000000000")), "node 1: SDO command 0xa0, aborted"),
    ("dynamixel", "pty"): (dynamixel.packet(1, 0x20), "id 1: instruction 0x20, answered by an error"),
    ("mit", "virtual"): (CanFrame(1, b"\xff\xff"), "node 1: a frame of 2 bytes"),
    ("modbus", "pty"): (checked(b"\x01\x07"), "node 1: function 7, answered by exception 1"),
    **dict.fromkeys(
        (("moteus", "virtual"), ("moteus", "pty")),
        (
            CanFrame(0x8001, b"\x40\x01\x0bflash wipe\n", extended=True, fd=True),
            "node 1: 'flash wipe' on its console, answered by an error",
        ),
    ),
    ("odrive", "virtual"): (CanFrame(0x3E, bytes(8)), "node 1: 8 bytes of command 0x1e"),
    ("odrive", "pty"): (b"r axis0.nothing\n", "property 'axis0.nothing', answered by 'invalid property'"),
    ("serial_text", "pty"): (b"dance 1\n", "a line that begins with 'dance'"),
    ("template", "virtual"): (CanFrame(0x401, b""), "node 1: a frame 0x401 of 0 bytes"),
    ("vesc", "virtual"): (CanFrame(0x801, b"\xfe\x00\x60", extended=True), "VESC 1: command 96"),
    ("vesc", "pty"): (packet(b"\x60"), "VESC 1: command 96"),
}


@pytest.fixture
def desk(case: Case, tmp_path, monkeypatch) -> Desk:
    return Desk(case, tmp_path, monkeypatch)


@apart
def test_what_the_driver_sends_is_known(desk):
    desk.client()
    assert desk.wire.sent and desk.emulator.unknown.count == 0, desk.emulator.unknown.taken()


@apart
def test_what_is_not_known_is_noted_once(case, desk):
    request, what = UNKNOWN[case.family, case.line]
    for _ in range(3):
        desk.emulator.handle(request, desk.wire.t_ns + 1000 * MS)  # after the drives have started
    assert desk.emulator.unknown.taken() == [what]
    assert desk.emulator.unknown.count == 3 and desk.emulator.unknown.taken() == []


def test_requests_of_layer_setting_services_are_noted(tmp_path, monkeypatch):
    desk = Desk(Case("cia402", "virtual"), tmp_path, monkeypatch)
    desk.emulator.handle(CanFrame(0x7E5, bytes.fromhex("0400000000000000")), desk.wire.t_ns)
    assert desk.emulator.unknown.taken() == ["LSS command 0x04"]


def test_what_is_kept_is_bounded():
    unknown = UnknownRequests()
    for k in range(10 * MAX_KEPT):
        unknown.note(f"command {k}")
    assert unknown.taken() == [f"command {k}" for k in range(MAX_KEPT)] and unknown.count == 10 * MAX_KEPT
    assert shown(b"a\x1b[31m\xff" + b"x" * 100) == "a?[31m?" + "x" * (MAX_LENGTH - 7)
