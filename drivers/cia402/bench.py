"""Messages of CiA 402 drives for the benchmark of codecs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cosim.plugins.drivers.cia402 import codec, cycle
from cosim.plugins.drivers.cia402.cycle import CycledDrive
from cosim.plugins.drivers.cia402.process_data import mapped
from cosim.plugins.drivers.common.codec_case import CodecCase
from cosim.plugins.drivers.common.frame_layout import packer, unpacker


def codec_cases(n: int) -> Iterator[CodecCase]:
    """n: drives on a bus; these messages are of one drive each."""
    drive = CycledDrive(3, mapped("effort", None), None)
    reception, (sent, *_) = cycle.reception([drive]), cycle.transmission("effort", [drive], codec.SYNC).frames
    answer = bytes.fromhex("37 12 0A 10 27 00 00")
    decode = partial(unpacker(reception.frames[0], list(reception.numbers)), answer)
    yield CodecCase("CiA 402", packer(sent, [[300.0]]), decode)
