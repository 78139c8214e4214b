"""The lines of an fdcanusb in machine code; that they are those of the adapter in Python is conformance."""

import errno

import pytest

from cosim.drivers.moteus.fdcanusb import AdapterHost
from cosim.drivers.moteus.fdcanusb_link import FdcanusbLink
from cosim.drivers.transport import CanFrame, ConnectionLost, now
from cosim.drivers.transport.compiled_link import SENT
from tests.kit.serial_line import SerialLine, receive, send

FRAMES = [
    CanFrame(0x8001, bytes(range(64)), True, True, True),
    CanFrame(0x7FF, b"\x50", fd=True),
    CanFrame(0x1FFFFFFF, b"", True),
]


@pytest.mark.parametrize("checksums", [False, True])
def test_frames_of_every_kind_are_equal_to_the_byte(checksums):
    """Those of a driver are of one kind."""
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
