"""Addresses of ZeroMQ sockets: this user's own, what is wrong with an address, and the fix."""

from __future__ import annotations

import errno
import os
import socket as sockets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cosim.core.access.private_folder import private_folder
from cosim.core.errors import InputError, shortened
from cosim.core.trust.private_cache import OTHERS, is_of_user

IPC, TCP = "ipc://", "tcp://"
LARGEST_PORT = 65535
LONGEST_HOST = 253  # characters of a name
# examples, on the ports that other programs suggest; other users of the machine can connect to them
STREAM_EXAMPLE, CONTROL_EXAMPLE = "tcp://127.0.0.1:9872", "tcp://127.0.0.1:9873"
FIXES = {
    errno.EADDRINUSE: "stop the other program or give another port",
    errno.EACCES: "give a port above 1023 or a folder you may write to",
}
DEFAULT_FIX = f"give an endpoint such as {STREAM_EXAMPLE} or ipc:///tmp/rig"
LOCK_LIMIT = 2.0  # s


def stream_address() -> str:
    """Where a run of this user publishes by default. Raises InputError."""
    return f"{IPC}{private_folder()}/stream"


def control_address() -> str:
    """Where a run of this user takes commands by default. Raises InputError."""
    return f"{IPC}{private_folder()}/control"


def check_tcp(endpoint: str, lowest_port: int = 0) -> str:
    """The endpoint as it is. Raises ValueError for a TCP port or host that cannot exist: ZeroMQ would take another port
    in its place, or wait for ever."""
    host, colon, port = endpoint.removeprefix(TCP).rpartition(":")
    if not endpoint.startswith(TCP) or not colon:
        return endpoint
    if port.isdecimal() and not (len(port) < 6 and lowest_port <= int(port) <= LARGEST_PORT):
        which = f"up to {LARGEST_PORT}" if lowest_port == 0 else f"from {lowest_port} to {LARGEST_PORT}"
        raise ValueError(f"there is no port {shortened(port)}; use one {which}")
    if not 0 < len(host) <= LONGEST_HOST:
        raise ValueError(f"a host has 1 to {LONGEST_HOST} characters, this one {len(host)}; {DEFAULT_FIX}")
    return endpoint


def check_address(address: str) -> None:
    """Raises InputError for an address to which nothing can connect."""
    try:
        check_tcp(address, lowest_port=1)
    except ValueError as error:
        raise InputError(str(error), address) from None


def bind(socket: Any, endpoint: str, what: str) -> str:
    """Bind a zmq.Socket to an endpoint, which is taken literally; the bound one, with the port that `tcp://…:*` chose.

    what: it is for, in words. Raises InputError after closing the socket.
    """
    import zmq

    try:
        check_tcp(endpoint)
        if endpoint.startswith(IPC) and not endpoint.startswith((f"{IPC}@", f"{IPC}*")):
            _bind_file(socket, endpoint)
        else:
            socket.bind(endpoint)
    except zmq.ZMQError as cause:
        socket.close()
        reason, fix = zmq.strerror(cause.errno or 0), FIXES.get(cause.errno or 0, DEFAULT_FIX)
        raise InputError(f"cannot {what}: {reason}; {fix}", endpoint) from cause
    except (_Taken, ValueError) as cause:
        socket.close()
        raise InputError(f"cannot {what}: {cause}", endpoint) from None
    return socket.getsockopt_string(zmq.LAST_ENDPOINT)


class _Taken(Exception):
    """A file that cannot become a socket: why, and the fix."""


def _bind_file(socket: Any, endpoint: str) -> None:
    """ZeroMQ deletes any file that has the name of the socket, even one of another program or no socket at all. And
    other users may connect to the socket, if its mode allows it. Raises _Taken or zmq.ZMQError."""
    path = Path(endpoint.removeprefix(IPC))
    with _locked(path.parent):
        _check_free(path)
        mask = os.umask(OTHERS)
        try:
            socket.bind(endpoint)
        finally:
            os.umask(mask)
        path.chmod(0o600)


def _check_free(path: Path) -> None:
    """Free is also the socket of a program that has died."""
    try:
        found = path.lstat()
    except OSError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise _Taken("a file has this name, and it is no socket; give another name")
    if not is_of_user(found):
        raise _Taken("the socket of another user has this name; give another name")
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as asking:
        asking.settimeout(LOCK_LIMIT)
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            return
        except OSError:  # its queue is full
            pass
    raise _Taken("another program of yours serves there; stop it or give another name")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """For one program that binds there at a time. Raises _Taken."""
    import fcntl

    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as cause:
        raise _Taken(f"{cause.strerror}: {folder}; give a folder that exists and is yours") from None
    try:
        end = time.monotonic() + LOCK_LIMIT
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise _Taken(f"another program has locked the folder {folder}; give another folder") from None
                time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)
