"""One program per bus: a lock per bus and end of it, held by a process of this machine until it closes the bus or dies.

The lock is a listening socket of Linux with an abstract name. It needs no file, the kernel releases it, and a process
that finds it taken reads its holder from it. Connections of one process share it.
"""

from __future__ import annotations

import errno
import hashlib
import socket
import struct
import sys
import threading
from collections import Counter
from pathlib import Path

NAMESPACE = "cosim bus"  # of the names of the sockets
MOST_CHARACTERS = 80  # characters of the command of the holder
CREDENTIALS = struct.Struct("3i")  # of SO_PEERCRED: process, user, group

_guard = threading.Lock()
_sockets: dict[str, socket.socket] = {}  # the locks of this process
_users: Counter[str] = Counter()  # its connections by lock


class BusInUse(OSError):
    """Another process holds the lock; the text names it."""


def lock(name: str) -> None:
    """Take the lock of this name for this process. Raises BusInUse. Without effect on systems without such sockets."""
    if sys.platform != "linux":
        return
    with _guard:
        if name not in _sockets:
            _sockets[name] = _taken(name)
        _users[name] += 1


def unlock(name: str) -> None:
    """Release what one `lock` took."""
    with _guard:
        _users[name] -= 1
        if _users[name] <= 0 and (held := _sockets.pop(name, None)) is not None:
            held.close()


def _taken(name: str) -> socket.socket:
    taken = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        taken.bind(_address(name))
        taken.listen()
    except OSError as error:
        taken.close()
        if error.errno != errno.EADDRINUSE:
            raise
        raise BusInUse(errno.EBUSY, f"in use by {_holder(name)}") from None
    return taken


def _address(name: str) -> str:
    return f"\0{NAMESPACE} {hashlib.sha256(name.encode()).hexdigest()}"  # names of sockets are short


def _holder(name: str) -> str:
    """The process that holds a lock, in words."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.settimeout(0.1)
            asking.connect(_address(name))
            process, *_ = CREDENTIALS.unpack(asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
        words = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
        named = (Path(word).name if k < 2 else word for k, word in enumerate(filter(None, words)))
        return f"process {process} ({' '.join(' '.join(named).split())[:MOST_CHARACTERS]})"
    except OSError:  # it has ended meanwhile
        return "another process"
