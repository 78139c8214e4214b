"""Messages of drives with the Mini Cheetah protocol for the benchmark of codecs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cosim.plugins.drivers.common.codec_case import CodecCase
from cosim.plugins.drivers.common.frame_layout import packer, unpacker
from cosim.plugins.drivers.mit import codec, cycle


def codec_cases(n: int) -> Iterator[CodecCase]:
    """n: drives on a connection; these messages are of one drive each."""
    ranges, drive = codec.Ranges(12.5, 30.0, 10.0, 500.0, 5.0), cycle.CycledNode(1, 17, True, 8)
    answer = codec.state(17, 0x11, ranges, codec.DriveState(1.0, -2.0, 0.3, 40.0, 1), bytes((40, 35))).data
    reception, (sent,) = cycle.reception([drive]), cycle.transmission("effort", [drive]).frames
    decode = partial(unpacker(reception.frames[0], list(reception.numbers)), answer)
    yield CodecCase("MIT", packer(sent, [[35389.0, 1911.0, 164.0, 410.0, 2109.0]]), decode)
