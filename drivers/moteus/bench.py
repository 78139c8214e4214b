"""Messages of moteus drives for the benchmark of codecs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cosim.plugins.drivers.common.codec_case import CodecCase
from cosim.plugins.drivers.common.frame_layout import packer, unpacker
from cosim.plugins.drivers.moteus import codec, cycle, fdcanusb
from cosim.plugins.drivers.transport import CanFrame


def codec_cases(n: int) -> Iterator[CodecCase]:
    """n: drives on a connection; these messages are of one drive each."""
    (sent,) = cycle.transmission("effort", codec.command_tail(0.1, integral=False), [0x8001]).frames
    answer = codec.encode_feedback(codec.ServoFeedback(10, 1.0, -2.0, 0.3, 24.0, 31.0, 0))
    line = fdcanusb.received_line(CanFrame(0x100, answer, False, True, True))
    received = cycle.reception([0x100])
    encode = packer(sent, [[0.1, 0.3, 0.1, 1.0, 1.0, 3.0]])
    command = CanFrame(0x8001, encode(), True, True, True)
    yield CodecCase("moteus CAN FD", encode, partial(unpacker(received.frames[0], list(received.numbers)), answer))
    yield CodecCase("moteus fdcanusb", partial(fdcanusb.send_line, command), partial(fdcanusb.parse_received, line, 0))
