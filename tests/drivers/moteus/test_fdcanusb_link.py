"""The lines of an fdcanusb in machine code are those of the adapter in Python."""

import errno
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.drivers.moteus.fdcanusb import AdapterHost, received_line, with_checksum
from cosim.drivers.moteus.fdcanusb_link import FdcanusbLink
from cosim.drivers.transport import CanFrame, ConnectionLost, TrafficMeter, now
from cosim.drivers.transport.compiled_link import FRAME, INVALID, SENT
from tests.kit.serial_line import MOST, SerialLine, receive, send


@pytest.fixture(scope="module")
def line():
    with SerialLine() as made:
        yield made


class Chunks:
    """A serial connection that receives these."""

    name, now, lost = "chunks", staticmethod(now), False

    def __init__(self, chunks):
        self.chunks, self.meter = deque(chunks), TrafficMeter()

    def receive(self, deadline_ns):
        return self.chunks.popleft() if self.chunks else None


frames = st.builds(
    CanFrame,
    st.integers(0, 0x1FFFFFFF),
    st.binary(max_size=64),
    extended=st.booleans(),
    fd=st.booleans(),
    switched=st.booleans(),
)


@given(st.lists(frames, min_size=1, max_size=12), st.booleans())
def test_what_is_sent_is_equal_to_the_byte(line, sent, checksums):
    adapter = AdapterHost(line.port, checksums)
    line.said()
    for frame in sent:
        adapter.send(frame, now() + 10**9)
    expected = line.said()
    assert send(FdcanusbLink(adapter), sent) == SENT
    assert line.said() == expected


lines = st.one_of(
    frames.map(received_line),
    frames.map(received_line).map(with_checksum),
    st.sampled_from([b"OK", b"ERR unknown", b"ERR checksum", b"", b"rcv", b"rcv 12", b"rcv 3FFFFFFF 00", b"x" * 600]),
    st.sampled_from([b"OK *00", with_checksum(b"OK"), with_checksum(b"rcv 100 0"), b"rcv 8100 0102 *", b"OK  *7G"]),
    st.text("rcv 0189ABCDEFabcdefG*OK", max_size=40).map(str.encode),
)
ends = st.sampled_from([b"\r\n", b"\n", b"\r"])


@given(st.lists(st.tuples(lines, ends), max_size=12), st.booleans(), st.lists(st.integers(1, 400), min_size=30))
def test_what_is_received_is_what_the_adapter_receives(line, said, checksums, sizes):
    stream, chunks = b"".join(a + b for a, b in said), []
    for size in sizes:
        chunks.append(stream[:size])
        stream = stream[size:]
    whole = [chunk for chunk in chunks if chunk]
    in_python = AdapterHost(Chunks(whole), checksums)
    expected = []
    while (frame := in_python.receive(0)) is not None:
        expected.append((FRAME, frame.id, frame.data))
    compiled, found = FdcanusbLink(AdapterHost(line.port, checksums)), []
    for chunk in whole:
        line.says(chunk[:MOST])
        found += receive(compiled)
    assert [one for one in found if one[0] == FRAME] == expected
    assert sum(what == INVALID for what, _, _ in found) == in_python.meter.errors
    compiled.count((), 0)
    assert compiled._adapter.checksums == in_python.checksums


def test_a_port_that_is_unplugged():
    with SerialLine() as line:
        adapter = AdapterHost(line.port)
        link = FdcanusbLink(adapter)
        line.hang_up()
        with pytest.raises(OSError) as raised:
            receive(link)
        assert raised.value.errno in (errno.EIO, errno.ENODEV)
        error = link.lost(raised.value.errno)
        assert isinstance(error, ConnectionLost)
        assert str(error).endswith("check the cable and the power of the adapter") and adapter.lost
