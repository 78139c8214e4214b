"""A serial port whose other end is in the hands of a test, and its link in machine code."""

from __future__ import annotations

import ctypes
import os
import select
import tty
from collections.abc import Sequence
from typing import Any, Self

from cosim.core.errors import SourceLocation
from cosim.plugins.drivers.transport import SerialParams, SerialPort, now

_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)
MOST = 1024  # bytes that a pseudo terminal surely keeps


class SerialLine:
    """A port on a pseudo terminal."""

    def __init__(self) -> None:
        self.other, slave = os.openpty()
        tty.setraw(slave)
        self.port = SerialPort(SerialParams(os.ttyname(slave)), lambda *keys: SourceLocation("rig.yaml", 1, ""))
        self.port.open()
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.port.close()
        self.hang_up()

    def hang_up(self) -> None:
        if self.other >= 0:
            os.close(self.other)
        self.other = -1

    def said(self) -> bytes:
        """What the port has sent since the last call."""
        data = b""
        while select.select((self.other,), (), (), 0.0)[0]:
            data += os.read(self.other, 1 << 16)
        return data

    def says(self, data: bytes) -> None:
        """Bytes to the port."""
        assert len(data) <= MOST and os.write(self.other, data) == len(data)


def send(link: Any, frames: Sequence[Any]) -> int:
    """Its result."""
    items, _ = link.items(frames)
    return _CALL(link.send)(link.context, items.ctypes.data, len(items), now() + 10**9)


def receive(link: Any) -> list[tuple[int, int, bytes]]:
    """(what it is, identifier, data) of all that has come; the data of frames only."""
    found = []
    while count := _CALL(link.receive)(link.context, 0, 0, 0):
        if count < 0:
            raise OSError(-count, os.strerror(-count))
        for arrived in link.arrivals[:count]:
            what, number = int(arrived["what"]), int(arrived["id"])
            data = b"" if what else ctypes.string_at(int(arrived["address"]), int(arrived["length"]))
            found.append((what, number if what == 0 else 0, data))
    return found


def settle(link: Any, deadline_ns: int) -> int:
    """Its result."""
    return _CALL(link.settle)(link.context, deadline_ns, 0, 0)
