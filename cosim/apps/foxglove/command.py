"""The command `cosim foxglove`: the server that Foxglove connects to."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from cosim.core.errors import InputError

if TYPE_CHECKING:
    import socket

    from cosim.apps.foxglove.bridge import Bridge
    from cosim.core.access.handshake import Access

ANSWER_TIMEOUT = 2.0  # s, after which it is stated that nothing is published


class FoxgloveAddress(NamedTuple):
    """Where Foxglove connects. allowed_hosts: names of this machine besides those that it has by itself;
    allowed_origins: of pages, besides Foxglove's; sets: parameters may be set."""

    host: str
    port: int
    allowed_hosts: Sequence[str] = ()
    allowed_origins: Sequence[str] = ()
    sets: bool = False


class OpenBridge(NamedTuple):
    """A bridge to be stepped, and where it listens."""

    bridge: Bridge
    listener: socket.socket
    access: Access


def serve(address: str, at: FoxgloveAddress, key: str | None) -> None:
    """Serve the run whose stream has this address until Ctrl-C; see `open_bridge`."""
    with open_bridge(address, at, key) as opened, suppress(KeyboardInterrupt):
        _tell(address, opened)
        until = time.monotonic() + ANSWER_TIMEOUT
        while True:
            opened.bridge.step()
            if not opened.bridge.began and time.monotonic() > until:
                print(f"warning: {address}: {_silence(key)}; the bridge waits for a run", flush=True)
                until = math.inf


def _tell(address: str, opened: OpenBridge) -> None:
    from cosim.core.access.curve import is_local
    from cosim.core.access.guarded_server import address_of

    url = address_of(opened.listener, opened.access, "ws")
    print(f"{address}: connect Foxglove to {url} (the whole of it); Ctrl-C ends", flush=True)
    if not is_local(f"tcp://{opened.listener.getsockname()[0]}:1"):
        print("warning: the network can reach this server, and ws:// is not encrypted", flush=True)


def _silence(key: str | None) -> str:
    return (
        f"nothing is published there, or not with the key {key}" if key else "nothing is published there without a key"
    )


@contextmanager
def open_bridge(address: str, at: FoxgloveAddress, key: str | None = None) -> Iterator[OpenBridge]:
    """A bridge of the stream at this address.

    key: file of the public key of the run, None for none. Raises InputError for what is no address or no key, for a
    port that cannot be opened, and where websockets is not installed.
    """
    from cosim.core.access.binding import check_address
    from cosim.output.client import subscribe

    check_address(address)
    check_installed()
    from cosim.apps.foxglove.bridge import Bridge
    from cosim.apps.foxglove.parameters import FROM_NETWORK, READ_ONLY, RunParameters
    from cosim.apps.foxglove.protocol import ORIGINS
    from cosim.apps.foxglove.server import FoxgloveServer
    from cosim.core.access.curve import is_local
    from cosim.core.access.guarded_server import listening_socket
    from cosim.core.access.handshake import access_of

    refused = READ_ONLY if not at.sets else "" if is_local(f"tcp://{at.host}:1") else FROM_NETWORK
    access, parameters = access_of(at.allowed_hosts, [*ORIGINS, *at.allowed_origins]), RunParameters(key, refused)
    with subscribe(address, key=key, every=True) as subscriber, closing(listening_socket(at.host, at.port)) as listener:
        server = FoxgloveServer(listener, access, parameters)
        try:
            yield OpenBridge(Bridge(subscriber, server, parameters), listener, access)
        finally:
            server.stop()
            parameters.close()


def check_installed() -> None:
    """Raises InputError where websockets is not installed."""
    try:
        import websockets.asyncio.server  # noqa: F401
    except ImportError:
        raise InputError("Foxglove needs websockets; run pip install 'cosim[foxglove]'", "foxglove") from None
