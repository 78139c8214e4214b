"""Frames in the messages of sockets, read and sent in machine code; python-can packs and unpacks the same messages."""

import ctypes
import errno
import select
import socket
import time
from itertools import product
from typing import Self

import numpy as np
import pytest
from can import Message
from can.interfaces.udp_multicast.utils import pack_message
from hypothesis import given
from hypothesis import strategies as st

from cosim.core.errors import SourceLocation
from cosim.core.machine_code import entry, i64
from cosim.plugins.drivers.transport import CanBus, CanFrame, CanParams
from cosim.plugins.drivers.transport.can_socket import CanSocket
from cosim.plugins.drivers.transport.compiled_link import ERROR_FRAME, EXTENDED, FOREIGN, FRAME, FULL, INVALID, SENT
from cosim.plugins.drivers.transport.datagrams import (
    RAW_CAN,
    UDP_MULTICAST,
    SocketMemory,
    arrival,
    both_clocks,
    frame_of,
    receive_messages,
    send_all,
    sockets_at,
)
from cosim.plugins.drivers.transport.multicast import MulticastInbox
from tests.kit.processes import TIMEOUT

MARK = b"0123456789abcdef"
# of all first bytes of values in these messages each kind, and both ends of those that have a range
BYTES = sorted({*range(0, 0xC0, 7), *range(0xBF, 0xE1), *(0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xF5, 0xFE, 0xFF)})
_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)


@entry(i64, i64, i64, i64, i64)
def _look(link: int, place: int, part: int, _: int) -> int:
    return frame_of(sockets_at(link, 1)[0], place)[part]


@entry(i64, i64, i64, i64, i64)
def _receive(link: int, _: int, _a: int, _b: int) -> int:
    return receive_messages(sockets_at(link, 1)[0])


@entry(i64, i64, i64, i64, i64)
def _send(descriptor: int, messages: int, count: int, scratch: int) -> int:
    return send_all(descriptor, messages, count, 0, scratch)


@entry(i64, i64, i64, i64, i64)
def _arrival(link: int, place: int, _a: int, _b: int) -> int:
    record = sockets_at(link, 1)[0]
    taken, wall = both_clocks(record.scratch)
    return arrival(record, place, taken, wall)


look, receive, send, arrived = (_CALL(one.address) for one in (_look, _receive, _send, _arrival))


class Pair:
    """A socket in machine code and the other end in Python."""

    def __init__(self, wire: int = UDP_MULTICAST) -> None:
        ours, self.other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.ours, self.memory = ours, SocketMemory(ours.fileno(), wire, MARK)
        self.link = self.memory.record.ctypes.data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.ours.close()
        self.other.close()

    def taken(self, data: bytes) -> tuple[int, int, bytes]:
        """(what it is, identifier, data) of a message."""
        self.other.send(data)
        assert receive(self.link, 0, 0, 0) == 1
        what, identifier, start, size = (look(self.link, 0, part, 0) for part in range(4))
        return what, identifier & ~EXTENDED, data[start : start + size]


@pytest.fixture(scope="module")
def pair():
    with Pair() as made:
        yield made


identifiers = st.integers(0, 0x1FFFFFFF)


@given(identifiers, st.binary(max_size=64), st.sampled_from([None, "another", "x" * 40]), st.floats(0, 2e9))
def test_a_frame_that_python_can_packs_is_read(pair, identifier, data, channel, stamp):
    packed = pack_message(Message(timestamp=stamp, arbitration_id=identifier, data=data, is_fd=True, channel=channel))
    assert pair.taken(packed) == (FRAME, identifier, data)


def test_what_is_not_a_frame_of_another_node(pair):
    own = pack_message(Message(arbitration_id=5, data=b"x", channel=MARK.decode()))
    remote = pack_message(Message(arbitration_id=5, is_remote_frame=True, dlc=2))
    bus_off = pack_message(Message(arbitration_id=0x40, is_error_frame=True, data=bytes(8)))
    assert [pair.taken(data)[0] for data in (own, remote)] == [FOREIGN, FOREIGN]
    assert pair.taken(bus_off)[:2] == (ERROR_FRAME, 0x40)


def test_every_message_with_one_other_byte_is_read_as_in_python(pair):
    whole = pack_message(Message(arbitration_id=0x49, is_extended_id=False, data=b"abcdefgh"))
    theirs, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    inbox = MulticastInbox(ours.fileno(), MARK.decode(), True)
    for cut in range(1, len(whole)):
        assert pair.taken(whole[:cut])[0] == INVALID
    for at, byte in product(range(len(whole)), BYTES):
        data = b"%b%c%b" % (whole[:at], byte, whole[at + 1 :])
        theirs.send(data)
        try:
            message = inbox.receive()
            assert message is not None
            what = ERROR_FRAME if message.is_error_frame else FOREIGN if message.is_remote_frame else FRAME
        except Exception:
            what = INVALID
        found = pair.taken(data)
        assert found[0] == what, data
        if what == FRAME:
            assert found[1:] == (message.arbitration_id, bytes(message.data)), data
    for each in (inbox, theirs, ours):
        each.close()


@pytest.mark.parametrize("fd", [False, True])
def test_frames_of_raw_can_sockets(fd):
    bus = CanBus(CanParams("socketcan", "can0", fd=fd), lambda *keys: SourceLocation("rig.yaml", 1, ""))
    made = object.__new__(CanSocket)
    made._bus, made._packed = bus, False
    with Pair(RAW_CAN) as pair:
        for frame in (CanFrame(0x123, b"1234", fd=fd), CanFrame(0x1ABCDE, b"12345678", extended=True, fd=fd)):
            data, start = made.wire_of(frame)
            assert (len(data), start) == (72 if fd else 16, 8)
            assert pair.taken(data) == (FRAME, frame.id, frame.data)
        assert pair.taken(made.wire_of(CanFrame(1, b"", remote=True))[0])[0] == FOREIGN
        assert pair.taken(b"\x40\0\0\x20\x08" + bytes(11))[:2] == (ERROR_FRAME, 0x40)
        assert pair.taken(bytes(15))[0] == INVALID


def test_many_messages_in_one_call(pair):
    wires = [np.frombuffer(bytes((k,)) * (k + 1), np.uint8).copy() for k in range(20)]
    messages, scratch = pair.memory.messages_to_send(wires), np.zeros(4, np.int64)
    # a datagram socket of Linux holds some ten unread messages
    assert send(pair.ours.fileno(), messages.ctypes.data, 8, scratch.ctypes.data) == SENT
    assert [pair.other.recv(100) for _ in range(8)] == [wire.tobytes() for wire in wires[:8]]
    for data in wires[:8]:
        pair.other.send(data.tobytes())
    assert receive(pair.link, 0, 0, 0) == 8 and receive(pair.link, 0, 0, 0) == 0


def test_a_full_queue_and_a_closed_socket():
    with Pair() as made:
        scratch = np.zeros(4, np.int64)
        messages = made.memory.messages_to_send([np.zeros(200, np.uint8)] * 400)
        assert send(made.ours.fileno(), messages.ctypes.data, 400, scratch.ctypes.data) == FULL
        made.other.close()
        refused = send(made.ours.fileno(), messages.ctypes.data, 1, scratch.ctypes.data)
        assert refused in (errno.ECONNREFUSED, errno.EPIPE)
        made.ours.close()
        assert receive(made.link, 0, 0, 0) == -errno.EBADF


def test_the_time_of_arrival_is_that_of_the_kernel():
    kind = socket.AF_INET, socket.SOCK_DGRAM
    with socket.socket(*kind) as ours, socket.socket(*kind) as other:
        ours.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
        ours.bind(("127.0.0.1", 0))
        memory = SocketMemory(ours.fileno(), UDP_MULTICAST)
        link = memory.record.ctypes.data
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:  # the kernel begins to stamp messages a while after it was asked to
            before = time.monotonic_ns()
            other.sendto(b"x", ours.getsockname())
            sent = time.monotonic_ns()
            assert select.select([ours], [], [], TIMEOUT)[0]  # on a busy machine it comes after it was sent
            time.sleep(0.05)
            assert receive(link, 0, 0, 0) == 1
            came = arrived(link, 0, 0, 0)
            assert before - 1_000_000 <= came
            if came <= sent + 20_000_000:
                return
    pytest.fail("messages have the time at which they were taken")
