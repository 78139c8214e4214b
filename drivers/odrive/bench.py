"""Messages of ODrives for the benchmark of codecs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cosim.plugins.drivers.common.codec_case import CodecCase
from cosim.plugins.drivers.common.frame_layout import packer, unpacker
from cosim.plugins.drivers.odrive import ascii_codec as text
from cosim.plugins.drivers.odrive import can_codec as can
from cosim.plugins.drivers.odrive import can_cycle


def codec_cases(n: int) -> Iterator[CodecCase]:
    """n: drives on a connection; these messages are of one drive each."""
    reception = can_cycle.reception([3], [can.GET_TORQUES], 0)
    decode_can = unpacker(reception.frames[0], list(reception.numbers))
    (sent,) = can_cycle.transmission("effort", [3], (), (), 1).frames
    answer = can.encode(3, can.GET_ENCODER_ESTIMATES, 1.0, -2.0).data
    line = text.line("0.159155 -0.318310", True, "")
    yield CodecCase("ODrive CAN", packer(sent, [[0.3]]), partial(decode_can, answer))

    def decode() -> object:
        found = text.unwrap(line)
        assert found is not None
        return text.feedback(found.text)

    yield CodecCase("ODrive ASCII", lambda: text.line(text.torque(0, -1.23456789), True), decode)
