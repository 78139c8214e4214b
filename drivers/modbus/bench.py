"""Messages of Modbus RTU for the benchmark of codecs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cosim.plugins.drivers.common.codec_case import CodecCase
from cosim.plugins.drivers.modbus import codec


def codec_cases(n: int) -> Iterator[CodecCase]:
    """n: drives on a connection; this message, a target and the state in one exchange, is of one drive."""
    request = codec.RtuRequest(1, 23, register=0x1000, quantity=8, at=0x2000, words=codec.to_words(-1.5, "float32"))
    answer = codec.answer(request, tuple(range(8)))

    def decode() -> object:
        found = codec.find_answer(request, answer)
        assert found is not None
        return codec.read_words(found)

    yield CodecCase("Modbus RTU", partial(codec.encode, request), decode)
