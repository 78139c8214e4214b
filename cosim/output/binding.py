"""Binding ZeroMQ sockets: what is wrong with an endpoint, and the fix."""

from __future__ import annotations

import errno
import socket as sockets
from typing import Any

from cosim.errors import InputError

CONTROL_ADDRESS = "tcp://127.0.0.1:9873"
FIXES = {
    errno.EADDRINUSE: "stop the other program or give another port",
    errno.EACCES: "give a port above 1023 or a folder you may write to",
}
DEFAULT_FIX = "give an endpoint such as tcp://127.0.0.1:9872 or ipc:///tmp/rig"


def bind(socket: Any, endpoint: str, what: str) -> str:
    """Bind a zmq.Socket to an endpoint, which is taken literally; the bound one, with the port that `tcp://…:*` chose.

    what: it is for, in words. Raises InputError after closing the socket.
    """
    import zmq

    try:
        socket.bind(endpoint)
    except zmq.ZMQError as cause:
        socket.close()
        reason, fix = zmq.strerror(cause.errno or 0), FIXES.get(cause.errno or 0, DEFAULT_FIX)
        raise InputError(f"cannot {what}: {reason}; {fix}", endpoint) from cause
    return socket.getsockopt_string(zmq.LAST_ENDPOINT)


def free_addresses(count: int) -> list[str]:
    """Of ports of this machine that are free now."""
    probes = [sockets.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"tcp://127.0.0.1:{probe.getsockname()[1]}" for probe in probes]
    for probe in probes:
        probe.close()
    return addresses
