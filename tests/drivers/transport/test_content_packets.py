"""Packets and frames that carry content: by the firmware's source, cut and spoilt, and any bytes."""

from hypothesis import given
from hypothesis import strategies as st

from cosim.plugins.drivers.transport.content_packets import (
    LONGEST_CONTENT,
    TELL,
    FrameReader,
    PacketReader,
    frames,
    identifiers,
    packet,
    with_valid_checksum,
)
from cosim.plugins.drivers.transport.lines import LineSplitter, decode_line, encode_line

contents = st.binary(min_size=1, max_size=LONGEST_CONTENT)


def test_packets_as_the_firmware_frames_them():
    """comm/packet.c and util/crc.c: 2, length, content, CRC-16/XMODEM, 3. The CRC of "123456789" is 31C3h, the check
    value of its catalogue."""
    assert packet(b"123456789").hex() == "0209" + b"123456789".hex() + "31c3" + "03"
    assert packet(bytes(1)).hex() == "020100000003"
    long = packet(bytes(300))
    assert long[:3] == b"\x03\x01\x2c" and len(long) == 306


@given(st.lists(contents, max_size=5), st.integers(1, 40))
def test_packets_are_found_however_the_bytes_are_cut(sent, width):
    stream, reader, found = b"".join(map(packet, sent)), PacketReader(), []
    for at in range(0, len(stream), width):
        found += reader.feed(stream[at : at + width])
    assert found == sent and reader.lost == 0


@given(contents, st.integers(0, 10**6), st.integers(0, 7))
def test_a_spoilt_packet_is_lost_and_the_next_one_found(content, at, bit):
    spoilt = bytearray(packet(content))
    spoilt[at % len(spoilt)] ^= 1 << bit
    reader, found = PacketReader(), []
    for chunk in (bytes(spoilt), *[packet(b"next")] * 80):  # a spoilt length may hide some
        found += reader.feed(chunk)
    assert content not in found[:1] and found[-1] == b"next" and reader.lost


@given(contents)
def test_a_packet_with_a_wrong_checksum_gets_the_right_one(content):
    good = packet(content)
    assert with_valid_checksum(good) == good
    assert with_valid_checksum(good[:-3] + b"\0\0\0") == good


@given(contents, st.integers(0, 255), st.integers(0, 255))
def test_content_is_put_together_from_frames(content, receiver, sender):
    reader = FrameReader()
    *parts, last = frames(receiver, sender, content, TELL)
    assert not any(reader.complete(part) for part in parts)
    assert reader.complete(last) == (receiver, sender, TELL, content)
    assert reader.lost == 0


@given(st.binary(min_size=7, max_size=200), st.integers(0, 10**6))
def test_content_with_a_spoilt_part_is_lost(content, at):
    reader, parts = FrameReader(), frames(1, 2, content, TELL)
    k = at % len(parts)
    parts[k] = parts[k]._replace(data=parts[k].data[:-1] + bytes([parts[k].data[-1] ^ 1]))
    assert not any(reader.complete(part) for part in parts)
    assert reader.lost == 1


@given(contents, st.integers(0, 255), st.integers(0, 255))
def test_the_identifiers_for_a_receiver_are_those_of_its_frames(content, receiver, other):
    assert {frame.id for frame in frames(receiver, 1, content, TELL)} <= identifiers(iter([other, receiver]))
    assert len(identifiers([receiver])) == 4


# --- lines of text in a stream of bytes, however it is cut into chunks ---

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


def test_where_lines_end() -> None:
    lines = LineSplitter(10)
    assert lines.feed(b"x" * 600) == [] and lines.dropped == 1
    assert lines.feed(b"OK\r\n") == []  # the end of the dropped line
    assert lines.feed(b"OK\r\n\r\n") == [b"OK"] and lines.dropped == 1
    # each of the ends ends a line
    assert LineSplitter(10, b"\n!").feed(b"a!b\nc\r!d") == [b"a", b"b", b"c\r"]


def test_the_checksum_is_that_of_nmea_0183():
    """The example sentence of the NMEA 0183 standard, as in Wikipedia, NMEA 0183."""
    text = "GPGGA,092750.000,5321.6802,N,00630.3372,W,1,8,1.03,61.7,M,55.2,M,,"
    assert encode_line(text, True) == f"{text}*76\n".encode()
    assert decode_line(f"{text}*76".encode()) == text
    assert decode_line(f"{text}*77".encode()) is None
    assert decode_line(text.encode()) is None
    assert decode_line(text.encode(), False) == text
