"""Messages of VESCs for the benchmark of codecs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cosim.plugins.drivers.common.codec_case import CodecCase
from cosim.plugins.drivers.transport.content_packets import PacketReader, packet
from cosim.plugins.drivers.vesc import codec


def codec_cases(n: int) -> Iterator[CodecCase]:
    """n: drives on a connection; these messages are of one drive each."""
    answer = codec.encode_values(codec.Values(35.0, 1.5, 1200.0, 0, 90.0, None, False), codec.VALUES)
    yield CodecCase("VESC CAN", partial(codec.setpoint_frame, 1, "effort", 1.5), partial(codec.decode_values, answer))
    line = packet(answer)

    def decode() -> object:
        return [codec.decode_values(content) for content in PacketReader().feed(line)]

    yield CodecCase("VESC UART", lambda: packet(codec.setpoint("effort", 1.5)), decode)
