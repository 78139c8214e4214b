"""Lines of text in a stream of bytes, however it is cut into chunks."""

from hypothesis import given
from hypothesis import strategies as st

from cosim.drivers.transport.lines import LineSplitter

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
