"""Lines of text in a stream of bytes, however it is cut into chunks."""

from hypothesis import given
from hypothesis import strategies as st

from cosim.drivers.transport.lines import LineSplitter, decode_line, encode_line

streams = st.lists(st.text(alphabet="ab\n\r", max_size=12).map(str.encode), max_size=8)


@given(streams)
def test_lines_do_not_depend_on_the_chunks(chunks: list[bytes]) -> None:
    whole, parts = LineSplitter(6), LineSplitter(6)
    assert whole.feed(b"".join(chunks)) == [line for chunk in chunks for line in parts.feed(chunk)]
    assert whole.dropped == parts.dropped


@given(streams)
def test_lines_equal_those_of_splitlines(chunks: list[bytes]) -> None:
    data = b"".join(chunks) + b"\n"
    assert LineSplitter(100).feed(data) == [line for line in data.replace(b"\r", b"\n").split(b"\n") if line]


def test_a_line_that_is_too_long_is_dropped_with_its_end() -> None:
    lines = LineSplitter(10)
    assert lines.feed(b"x" * 600) == [] and lines.dropped == 1
    assert lines.feed(b"OK\r\n") == []  # the end of the dropped line
    assert lines.feed(b"OK\r\n\r\n") == [b"OK"] and lines.dropped == 1


def test_each_of_the_ends_ends_a_line() -> None:
    assert LineSplitter(10, b"\n!").feed(b"a!b\nc\r!d") == [b"a", b"b", b"c\r"]


def test_the_checksum_is_that_of_nmea_0183():
    """The example sentence of the NMEA 0183 standard, as in Wikipedia, NMEA 0183."""
    text = "GPGGA,092750.000,5321.6802,N,00630.3372,W,1,8,1.03,61.7,M,55.2,M,,"
    assert encode_line(text, True) == f"{text}*76\n".encode()
    assert decode_line(f"{text}*76".encode()) == text
    assert decode_line(f"{text}*77".encode()) is None
    assert decode_line(text.encode()) is None
    assert decode_line(text.encode(), False) == text
