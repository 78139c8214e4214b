"""Messages of CiA 402 drives for the benchmark of codecs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cosim.plugins.drivers.cia402 import codec
from cosim.plugins.drivers.common.codec_case import CodecCase


def codec_cases(n: int) -> Iterator[CodecCase]:
    """n: drives on a bus; these messages are of one drive each."""
    step = codec.Step(1e-4, 1e-4, 1e-3)
    answer = codec.status_answer(3, codec.DriveStatus(0x1237, 10, 1.0), step).data
    encode, decode = partial(codec.effort_command, 3, 0x0F, 0.3, step), partial(codec.decode_status, answer, step)
    yield CodecCase("CiA 402", encode, decode)
