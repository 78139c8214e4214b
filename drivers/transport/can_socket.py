"""The socket of a CAN bus for machine code: its memory, and the bytes of a frame as messages carry it."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Sequence

import numpy as np

from cosim.core.types import Array
from cosim.plugins.drivers.transport.bus_load import frame_weight
from cosim.plugins.drivers.transport.can import BUS_OFF_MESSAGE, CanBus
from cosim.plugins.drivers.transport.compiled_link import ITEM_WORDS
from cosim.plugins.drivers.transport.connection import CanFrame, ConnectionLost
from cosim.plugins.drivers.transport.datagrams import RAW_CAN, UDP_MULTICAST, SocketMemory, receive, send

_EXTENDED, _REMOTE = 0x80000000, 0x40000000
_SWITCHED, _FD = 0x01, 0x04  # CANFD_BRS, CANFD_FDF


class CanSocket:
    """The socket of an open bus, of one of the interfaces `can.WIRES`. Satisfies `CompiledLink`."""

    send, receive, settle = send.address, receive.address, 0

    def __init__(self, bus: CanBus) -> None:
        """Raises ConnectionLost."""
        assert bus.descriptor is not None
        self._bus, self._packed = bus, bus.params.interface == "udp_multicast"
        destination = b""
        if self._packed:
            try:
                with socket.socket(fileno=os.dup(bus.descriptor)) as opened:
                    destination = _address(opened.family, bus.params.channel, opened.getsockname()[1])
            except OSError as error:
                raise bus.connection_failed(error) from error
        self.descriptor, mark = bus.descriptor, (bus.sender_mark or "").encode()
        self._use(SocketMemory(bus.descriptor, UDP_MULTICAST if self._packed else RAW_CAN, mark, destination))

    def _use(self, memory: SocketMemory) -> None:
        self._memory, self.context, self.arrivals = memory, memory.record.ctypes.data, memory.arrivals
        self._wires: list[np.ndarray] = []

    def items(self, frames: Sequence[CanFrame]) -> tuple[Array, list[int]]:
        """See `CompiledLink`."""
        wires, places = [], []
        for data, start in map(self.wire_of, frames):
            wires.append(np.frombuffer(data, np.uint8).copy())
            places.append(wires[-1].ctypes.data + start)
        self._wires += wires
        return self._memory.messages_to_send(wires).view(np.int64).reshape(-1, ITEM_WORDS), places

    def wire_of(self, frame: CanFrame) -> tuple[bytes, int]:
        """(the bytes of a message that carries a frame, where the data of the frame begin)."""
        if self._packed:
            from can.interfaces.udp_multicast.utils import pack_message

            # data that cannot be anything else at the end of a message
            marked = bytes(range(1, len(frame.data) + 1))
            start = pack_message(self._bus.message(frame._replace(data=marked))).rindex(marked)
            return pack_message(self._bus.message(frame)), start
        word = frame.id | (_EXTENDED if frame.extended else 0) | (_REMOTE if frame.remote else 0)
        size, flags = (64, _FD | (_SWITCHED if frame.switched else 0)) if frame.fd else (8, 0)
        return struct.pack("=IBB2x", word, len(frame.data), flags) + frame.data.ljust(size, b"\0"), 8

    def count(self, traffic: Sequence[tuple[CanFrame, int, int]], errors: int) -> None:
        """See `CompiledLink`; errors: error frames and invalid messages."""
        meter = self._bus.meter
        meter.errors += errors
        for frame, sent, received in traffic:
            weight = frame_weight(frame, self._bus.weights)
            meter.items_out, meter.bits_out = meter.items_out + sent, meter.bits_out + sent * weight
            meter.items_in, meter.bits_in = meter.items_in + received, meter.bits_in + received * weight

    def lost(self, error: int) -> ConnectionLost:
        """See `CompiledLink`."""
        return self._bus.connection_failed(OSError(error, os.strerror(error)))

    def bus_off(self) -> ConnectionLost:
        """See `CompiledLink`."""
        return self._bus.mark_lost(BUS_OFF_MESSAGE)

    def not_sent(self) -> ConnectionLost:
        """See `CompiledLink`."""
        return self._bus.not_sent()


def _address(family: int, group: str, port: int) -> bytes:
    """struct sockaddr_in or sockaddr_in6 of Linux."""
    packed = socket.inet_pton(family, group)
    head = struct.pack("=HH", family, socket.htons(port))
    return head + (packed + bytes(8) if family == socket.AF_INET else bytes(4) + packed + bytes(4))
