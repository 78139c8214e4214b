"""Lines of text of boards for the benchmark of codecs."""

from __future__ import annotations

from collections.abc import Iterator

from cosim.plugins.drivers.common.codec_case import CodecCase
from cosim.plugins.drivers.serial_text import codec
from cosim.plugins.drivers.transport.lines import decode_line, encode_line


def codec_cases(n: int) -> Iterator[CodecCase]:
    """n: drives on a connection; these lines are of one board each."""
    command = codec.Pattern("T{id} {effort:.4f}")
    answer = codec.Pattern("S{id} {mode} {fault} {position:.5f} {velocity:.5f} {effort:.4f}")
    values = {"id": 1, "mode": "effort", "fault": 0, "position": 1.0, "velocity": -2.0, "effort": 0.3}
    line = encode_line(answer.text(values), True)

    def decode() -> object:
        text = decode_line(line)
        assert text is not None
        return answer.match(text)

    yield CodecCase("serial_text", lambda: encode_line(command.text({"id": 1, "effort": 0.3}), True), decode)
