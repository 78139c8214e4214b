"""Messages of Dynamixel drives for the benchmark of codecs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from cosim.plugins.drivers.common.codec_case import CodecCase
from cosim.plugins.drivers.dynamixel import codec, cyclic_frames


def codec_cases(n: int) -> Iterator[CodecCase]:
    """n: drives on a serial link, which answer in one packet."""
    ids, data = range(1, n + 1), bytes(cyclic_frames.SIZE)
    goals, counts = cyclic_frames.Goals(ids, "effort"), np.arange(float(n))
    answer = codec.status(1, 0, data)
    chain = codec.chained([codec.RegisterBlock(0, id, data) for id in ids], n * cyclic_frames.STATE.itemsize)
    feed = codec.Decoder().feed
    yield CodecCase("Dynamixel, one drive", partial(codec.write, 1, 102, b"\x10\x00"), partial(feed, answer))
    yield CodecCase(f"Dynamixel, {n} drives in one packet", partial(goals.packet, counts), partial(feed, chain))
