"""A connection in machine code: what its functions return, and the calls of the system that all of them use.

A link has functions int64(int64, int64, int64, int64) at addresses; the first argument of each is its `context`:

* send(context, items, count, deadline): send so many items of ITEM_SIZE bytes by the deadline [ns]; SENT, FULL or the
  number of an error.
* receive(context, 0, 0, 0): the number of entries of `arrivals` that what has come fills, at most PLACES, or minus the
  number of an error. Without waiting; entries are valid until the next call.
* settle(context, deadline, 0, 0), of half-duplex links: discard late answers to the last request; 1 when none can come
  any more, 0 when that is not known before the deadline [ns], or minus the number of an error. A request follows.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from cosim.core.machine_code import array_at, external, i32, i64, machine_code, now, words_at
from cosim.core.types import Array
from cosim.plugins.drivers.transport.connection import ConnectionLost

PLACES = 64  # messages or packets that are received at once
SENT, FULL = 0, -1  # of `send`; otherwise an error number of the system
FRAME, ERROR_FRAME, FOREIGN, INVALID, DAMAGED = range(5)  # what has come; DAMAGED: surely an answer of a drive

EXTENDED = 0x80000000  # is part of the identifier of an extended CAN frame
ITEM_WORDS, ITEM_SIZE = 8, 64  # of what a link has to send; the words are the link's own
ARRIVAL = np.dtype([(name, "i8") for name in ("what", "id", "address", "length", "t_ns")])  # of its data

READABLE, WRITABLE = 1, 4  # POLLIN, POLLOUT
AGAIN, INTERRUPTED = errno.EAGAIN, errno.EINTR

_ppoll = external("ppoll", i32, i64, i64, i64, i64)
_error_address = external("__errno_location", i64)

bytes_at, halves_at = array_at(np.dtype("u1")), array_at(np.dtype("i4"))
arrivals_at = array_at(ARRIVAL)


@machine_code
def system_error() -> int:
    """The number of the error of the last call."""
    return halves_at(_error_address(), 1)[0]


@machine_code
def poll(descriptor: int, events: int, patience: int, scratch: int) -> int:
    """Wait [ns] until one of the events can happen; 1 if so, 0, or minus the number of an error. scratch: 4 words."""
    words = words_at(scratch, 4)
    words[0], words[1] = patience // 1_000_000_000, patience % 1_000_000_000
    words[2] = descriptor
    halves_at(scratch + 20, 1)[0] = events  # those that are waited for; none has come
    found = _ppoll(scratch + 16, 1, scratch, 0)
    if found < 0:
        return 0 if system_error() == INTERRUPTED else -system_error()
    return found


@machine_code
def wait_readable(descriptor: int, until: int, scratch: int) -> int:
    """Wait until there is something to read, at most until a time [ns]; 0, or the number of an error."""
    rest = until - now(scratch)
    return max(-poll(descriptor, READABLE, rest, scratch), 0) if rest > 0 else 0


@machine_code
def pause(duration: int, scratch: int) -> None:
    """Sleep [ns]."""
    words = words_at(scratch, 2)
    words[0], words[1] = 0, duration
    _ppoll(0, 0, scratch, 0)


class CompiledLink(Protocol):
    """An open connection in machine code; its memory must stay referenced while it is used."""

    descriptor: int
    context: int
    send: int
    receive: int
    settle: int  # 0 on a line on which drives may talk unasked
    arrivals: Array  # (PLACES,) of ARRIVAL

    def items(self, frames: Sequence[Any]) -> tuple[Array, list[int]]:
        """((m, ITEM_WORDS) integers that send these frames of its own, addresses of their data)."""
        ...

    def count(self, traffic: Sequence[tuple[Any, int, int]], errors: int) -> None:
        """Add to the traffic of the connection: frames with how many of them were sent and received."""
        ...

    def lost(self, error: int) -> ConnectionLost:
        """The error after a failure with this number of the system; the connection is lost."""
        ...

    def bus_off(self) -> ConnectionLost:
        """The error after bus off; the connection is lost."""
        ...

    def not_sent(self) -> ConnectionLost:
        """The error of a command that could not be sent by its deadline."""
        ...
