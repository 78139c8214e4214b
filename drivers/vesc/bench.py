"""Messages of VESCs for the benchmark of codecs."""

from __future__ import annotations

from collections.abc import Iterator

from cosim.plugins.drivers.common.codec_case import CodecCase
from cosim.plugins.drivers.common.frame_layout import packer
from cosim.plugins.drivers.common.interpreted_cycle import InterpretedCycle
from cosim.plugins.drivers.transport.content_packets import TELL, PacketReader, frames, packet
from cosim.plugins.drivers.vesc import codec, cycle, values
from cosim.plugins.drivers.vesc.wires import ANSWERS


def codec_cases(n: int) -> Iterator[CodecCase]:
    """n: drives on a connection; these messages are of one drive each."""
    reception, (sent,) = cycle.reception([1], ANSWERS, 0), cycle.transmission("effort", [1], ()).frames
    interpreted, pack = InterpretedCycle(reception, [[1.0, 1.0, 0.0]]), packer(sent, [[1500.0]])
    quantities = {"temperature": 35.0, "current": 1.5, "erpm": 1200.0, "angle": 90.0}
    answer = (
        bytes([codec.GET_VALUES_SELECTIVE]) + codec.VALUES.to_bytes(4, "big") + values.encode(quantities, codec.VALUES)
    )
    parts, line = frames(1 + ANSWERS, 1, answer, TELL), packet(answer)
    for part in parts[:-1]:
        interpreted.take(part)
    # the last frame of an answer is the slowest one: it has the checksum of all
    yield CodecCase("VESC CAN", pack, lambda: interpreted.take(parts[-1]))
    yield CodecCase("VESC UART", lambda: packet(b"\x06" + pack()), lambda: PacketReader().feed(line))
