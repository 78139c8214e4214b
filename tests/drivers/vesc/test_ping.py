"""A ping and its answer, byte by byte as in the firmware's comm_can.c: kind · 256 + receiver, the sender's number; the
id and the kind of device."""

import pytest

from cosim.drivers.transport import CanFrame
from cosim.drivers.vesc.ping import found, ping, pong


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
