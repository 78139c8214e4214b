"""Receiving on python-can's `udp_multicast`, without unpacking what comes back of one's own messages."""

from __future__ import annotations

import os
import socket
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from can import Message

SIZE, CONTROL_SIZE = 4096, 64  # bytes of a message, and of its time stamp
_STAMP = struct.Struct("@ll")  # struct timespec


class MulticastInbox:
    """Messages of other nodes on the socket of an open bus, on Linux. fd: CAN FD frames are received too."""

    def __init__(self, descriptor: int, mark: str, fd: bool) -> None:
        """mark: the `channel` of own messages. Raises OSError."""
        from can.interfaces.udp_multicast.utils import unpack_message

        self._socket, self._mark, self._fd = socket.socket(fileno=os.dup(descriptor)), mark.encode(), fd
        self._unpack = unpack_message

    def close(self) -> None:
        self._socket.close()

    def receive(self) -> Message | None:
        """The message that has come, None for none or an own one. Raises OSError, or whatever python-can raises for a
        message that is invalid."""
        try:
            data, control, _, _ = self._socket.recvmsg(SIZE, CONTROL_SIZE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        if self._mark in data:
            return None
        seconds, nanoseconds = _STAMP.unpack(control[0][2]) if control else (0, 0)
        message = self._unpack(data, {"timestamp": seconds + nanoseconds * 1e-9}, check=True)
        return message if self._fd or not message.is_fd else None
