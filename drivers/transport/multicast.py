"""Receiving on python-can's `udp_multicast`, without unpacking what comes back of one's own messages."""

from __future__ import annotations

import os
import socket
import struct
from types import NoneType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from can import Message

MESSAGE_SIZE, CONTROL_SIZE = 4096, 64  # bytes of a message, and of its time stamp
_STAMP = struct.Struct("@ll")  # struct timespec
# python-can does not check what the items of a message are
_FLAGS = ("is_extended_id", "is_remote_frame", "is_error_frame", "is_fd", "bitrate_switch", "error_state_indicator")
_TYPES: dict[str, tuple[type, ...]] = {
    "arbitration_id": (int,),
    "dlc": (int,),
    "data": (bytes,),
    "channel": (str, NoneType),
    "timestamp": (float, int),
    **dict.fromkeys(_FLAGS, (bool,)),
}


class MulticastInbox:
    """Messages of other nodes on the socket of an open bus, on Linux. fd: CAN FD frames are received too."""

    def __init__(self, descriptor: int, mark: str, fd: bool) -> None:
        """mark: the `channel` of own messages. Raises OSError."""
        from can import Message
        from msgpack import unpackb

        self._socket, self._mark, self._fd = socket.socket(fileno=os.dup(descriptor)), mark.encode(), fd
        self._unpack, self._message = unpackb, Message

    def close(self) -> None:
        self._socket.close()

    def receive(self) -> Message | None:
        """The message that has come, None for none or an own one. Raises OSError, or whatever python-can and msgpack
        raise for a message that is invalid."""
        try:
            data, control, _, _ = self._socket.recvmsg(MESSAGE_SIZE, CONTROL_SIZE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        if self._mark in data:
            return None
        fields = self._unpack(data)
        for name, kinds in _TYPES.items():
            if type(fields[name]) not in kinds:
                raise ValueError(f"the '{name}' of a message is no {kinds[0].__name__}")
        seconds, nanoseconds = _STAMP.unpack(control[0][2]) if control else (0, 0)
        message = self._message(**fields | {"timestamp": seconds + nanoseconds * 1e-9}, check=True)
        return message if self._fd or not message.is_fd else None
