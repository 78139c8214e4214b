"""Messages of Dynamixel drives for the benchmark of codecs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cosim.plugins.drivers.common.codec_case import CodecCase
from cosim.plugins.drivers.common.frame_layout import packer
from cosim.plugins.drivers.dynamixel import codec, cycle, cyclic_frames
from cosim.plugins.drivers.dynamixel.codec import BusPacket


def codec_cases(n: int) -> Iterator[CodecCase]:
    """n: drives on a serial link, which answer in one packet."""
    ids, data = range(1, n + 1), bytes(cyclic_frames.STATE_BYTES)
    (goals,) = cycle.transmission("effort", ids).frames
    pack = packer(goals, [[float(k)] for k in range(n)])
    answer = codec.status(1, 0, data)
    chain = codec.chained([codec.RegisterBlock(0, id, data) for id in ids], n * cyclic_frames.BLOCK)
    feed = codec.Decoder().feed
    yield CodecCase("Dynamixel, one drive", partial(codec.write, 1, 102, b"\x10\x00"), partial(feed, answer))

    def encode() -> bytes:
        return BusPacket(codec.BROADCAST, pack()).packed()

    yield CodecCase(f"Dynamixel, {n} drives in one packet", encode, partial(feed, chain))
