"""The text protocol of the fdcanusb: lines as mjbots documents them, its checksum, both ends of it, any bytes at all.

Documents: README.md of mjbots/fdcanusb, docs/protocol/can.md and docs/integration/uart.md of mjbots/moteus; the line
`OK *BD` is what lib/python's own test of its fdcanusb expects.
"""

import errno
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.plugins.drivers.moteus.fdcanusb import (
    AdapterDevice,
    AdapterHost,
    parse_received,
    parse_send,
    received_line,
    send_line,
    with_checksum,
    without_checksum,
)
from cosim.plugins.drivers.moteus.fdcanusb_link import FdcanusbLink
from cosim.plugins.drivers.transport import CanFrame, ConnectionLost, now
from cosim.plugins.drivers.transport.compiled_link import SENT
from tests.kit.connection import FakeConnection
from tests.kit.serial_line import SerialLine, receive, send

FRAME = CanFrame(0x8001, bytes.fromhex("01000a07206000200150ff140400130d"), True, True, True)
ANSWER = CanFrame(0x100, bytes.fromhex("2404000a005000000170ff230d181400"), False, True, True)


class Wire(FakeConnection):
    """One end of a serial link."""

    name = "the wire"

    def __init__(self, out: deque[bytes], back: deque[bytes]) -> None:
        super().__init__()
        self.out, self.back = out, back

    def send(self, item: bytes, deadline_ns: int) -> None:
        self.out.append(item)

    def receive(self, deadline_ns: int) -> bytes | None:
        return self.back.popleft() if self.back else None


def ends(checksums: bool = False) -> tuple[AdapterHost, AdapterDevice, deque[bytes], deque[bytes]]:
    there: deque[bytes] = deque()
    back: deque[bytes] = deque()
    host, device = AdapterHost(Wire(there, back), checksums), AdapterDevice(Wire(back, there))
    host.open()
    device.open()
    assert there.popleft() == b"\r\n"
    return host, device, there, back


def test_documented_lines() -> None:
    assert send_line(FRAME) == b"can send 8001 01000A07206000200150FF140400130D BF"
    assert parse_send(b"can send 8001 01000a07206000200150ff140400130d") == FRAME
    assert parse_received(b"rcv 100 2404000a005000000170ff230d181400") == ANSWER._replace(switched=False)
    assert received_line(ANSWER) == b"rcv 0100 2404000A005000000170FF230D181400 e B F r x-1"
    assert with_checksum(b"OK") == b"OK *BD"
    # a drive own uart answers without flags
    frame = parse_received(b"rcv 00000800 2100", 5)
    assert frame == CanFrame(0x800, b"\x21\x00", True, True, False, False, 5)
    # standard and extended frames
    assert parse_send(b"can std 8001 00 bfr") == CanFrame(0x8001, b"\x00", False, False, False)
    assert parse_send(b"can ext 1 00 B F") == CanFrame(1, b"\x00", True, True, True)


NONSENSE = {
    "unknown command": (b"hello",),
    "unknown subcommand": (b"can fly",),
    "insufficient options": (b"can send 8001",),
    "bad id": (b"can send xyz 00", b"can send -1 00", b"can send 20000000 00"),
    "data invalid length": (b"can send 8001 012", b"can send 8001 " + b"00" * 65),
    "invalid data": (b"can send 8001 0g",),
    "unknown flag": (b"can send 8001 00 Q",),
}


@pytest.mark.parametrize("why", NONSENSE)
def test_nonsense_is_answered_by_an_error(why: str) -> None:
    for line in NONSENSE[why]:
        assert parse_send(line) == why
        _, device, there, back = ends()
        there.append(line + b"\n")
        assert device.receive(0) is None and list(back) == [b"ERR " + why.encode() + b"\r\n"]


def test_both_ends() -> None:
    host, device, there, back = ends()
    host.send(FRAME, 0)
    assert list(there) == [send_line(FRAME) + b"\r\n"]
    came = device.receive(0)
    assert came is not None and came._replace(t_ns=0) == FRAME and came.t_ns == device.now()
    device.send(ANSWER, 0)
    assert list(back) == [b"OK\r\n", received_line(ANSWER) + b"\r\n"]
    came = host.receive(0)
    assert came is not None and came._replace(t_ns=0) == ANSWER and host.receive(0) is None
    assert host.meter.errors == 0 and host.name == "the wire"


def test_lines_in_pieces() -> None:
    host, _, _, back = ends()
    text = b"OK\r\n" + received_line(ANSWER) + b"\r\n" + received_line(ANSWER._replace(id=0x200)) + b"\n"
    back.extend(text[k : k + 1] for k in range(len(text)))
    frames = []
    while back:
        frame = host.receive(0)
        if frame is not None:
            frames.append(frame.id)
    assert frames == [0x100, 0x200]


def test_once_sealed_always_sealed() -> None:
    host, device, there, back = ends(checksums=True)
    host.send(FRAME, 0)
    assert there[0] == with_checksum(send_line(FRAME)) + b"\r\n"
    assert device.receive(0) is not None and device.checksums and back.popleft() == b"OK *BD\r\n"
    device.send(ANSWER, 0)
    assert back[0] == with_checksum(received_line(ANSWER)) + b"\r\n" and host.receive(0) is not None
    there.append(send_line(FRAME) + b"\n")  # without it now
    assert device.receive(0) is None and back.popleft() == with_checksum(b"ERR checksum") + b"\r\n"
    there.append(with_checksum(send_line(FRAME)).replace(b"8001", b"8002") + b"\n")
    assert device.receive(0) is None and back.popleft() == with_checksum(b"ERR checksum") + b"\r\n"
    back.extend([received_line(ANSWER) + b"\n", with_checksum(received_line(ANSWER))[:-1] + b"0\n"])
    assert host.receive(0) is None and host.meter.errors == 2
    device.open()  # power came back
    assert not device.checksums


def test_a_host_learns_that_checksums_are_wanted() -> None:
    host, _, there, back = ends()
    back.append(b"ERR checksum\r\n")
    assert host.receive(0) is None and host.meter.errors == 1
    host.send(FRAME, 0)
    assert there[0] == with_checksum(send_line(FRAME)) + b"\r\n"


@given(st.integers(0, (1 << 29) - 1), st.binary(min_size=1, max_size=64), st.booleans(), st.booleans(), st.booleans())
def test_frames_round_trip(id: int, data: bytes, extended: bool, fd: bool, switched: bool) -> None:
    frame = CanFrame(id, data, extended or id > 0x7FF, fd, switched)
    assert parse_received(received_line(frame)) == frame
    sent = parse_send(send_line(frame._replace(extended=id > 0x7FF, fd=True)))
    assert sent == frame._replace(extended=id > 0x7FF, fd=True)


@given(st.binary(max_size=80))
def test_any_bytes_at_all(data: bytes) -> None:
    parse_received(data)
    parse_send(data)
    parse_received(b"rcv " + data)
    parse_send(b"can send " + data)
    content, right = without_checksum(with_checksum(data))
    assert right is True and content == data.rstrip(b" ")
    without_checksum(data)


def test_one_changed_byte_breaks_the_seal() -> None:
    line = with_checksum(b"rcv 0100 2100")
    for k in range(len(line) - 3):
        changed = bytearray(line)
        changed[k] ^= 0x01
        assert without_checksum(bytes(changed))[1] is False


# --- the lines of an fdcanusb in machine code; that they equal the adapter's in Python is conformance ---

FRAMES = [
    CanFrame(0x8001, bytes(range(64)), True, True, True),
    CanFrame(0x7FF, b"\x50", fd=True),
    CanFrame(0x1FFFFFFF, b"", True),
]


@pytest.mark.parametrize("checksums", [False, True])
def test_frames_of_every_kind_are_equal_to_the_byte(checksums):
    """A driver's are of one kind."""
    with SerialLine() as line:
        adapter = AdapterHost(line.port, checksums)
        for frame in FRAMES:
            adapter.send(frame, now() + 10**9)
        expected = line.said()
        assert send(FdcanusbLink(adapter), FRAMES) == SENT
        assert line.said() == expected != b""


def test_a_port_that_is_unplugged():
    with SerialLine() as line:
        adapter = AdapterHost(line.port)
        link = FdcanusbLink(adapter)
        line.hang_up()
        with pytest.raises(OSError) as raised:
            receive(link)
        assert raised.value.errno in (errno.EIO, errno.ENODEV)
        error = link.lost(raised.value.errno)
        assert isinstance(error, ConnectionLost)
        assert str(error).endswith("check the cable and the power of the adapter") and adapter.lost
