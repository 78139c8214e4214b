"""Messages of drives with the Mini Cheetah protocol for the benchmark of codecs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cosim.plugins.drivers.common.codec_case import CodecCase
from cosim.plugins.drivers.mit import codec


def codec_cases(n: int) -> Iterator[CodecCase]:
    """n: drives on a connection; these messages are of one drive each."""
    ranges = codec.Ranges(12.5, 30.0, 10.0, 500.0, 5.0)
    answer = codec.state(17, 1, ranges, codec.DriveState(1.0, -2.0, 0.3, 40.0, 1), bytes((40, 35)))
    encode = partial(codec.command, 1, ranges, 1.0, -2.0, 20.0, 0.5, 0.3)
    yield CodecCase("MIT", encode, partial(codec.decode_state, answer, ranges, True))
