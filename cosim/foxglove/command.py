"""The command `cosim foxglove`: the server that Foxglove connects to."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from cosim.errors import InputError

if TYPE_CHECKING:
    from foxglove import Context
    from foxglove.websocket import WebSocketServer

    from cosim.foxglove.bridge import Bridge
    from cosim.foxglove.parameters import RunParameters

NAME = "cosim"
ANSWER = 2.0  # s, after which it is stated that nothing is published


def serve(address: str, host: str, port: int, key: str | None) -> None:
    """Serve the run whose stream has this address until Ctrl-C; see `open_bridge`."""
    with open_bridge(address, host, port, key) as (bridge, bound), suppress(KeyboardInterrupt):
        print(f"{address}: connect Foxglove to ws://{host}:{bound}; Ctrl-C ends", flush=True)
        until = time.monotonic() + ANSWER
        while True:
            bridge.step()
            if not bridge.began and time.monotonic() > until:
                print(f"warning: {address}: {_silence(key)}; the bridge waits for a run", flush=True)
                until = math.inf


def _silence(key: str | None) -> str:
    return (
        f"nothing is published there, or not with the key {key}" if key else "nothing is published there without a key"
    )


@contextmanager
def open_bridge(address: str, host: str, port: int, key: str | None = None) -> Iterator[tuple[Bridge, int]]:
    """A bridge to be stepped, and its port.

    address: of a stream; port: 0 for any; key: file of the public key of the run, None for none. Raises InputError for
    what is no address or no key, for a port that cannot be opened, and where foxglove-sdk is not installed.
    """
    from cosim.client import subscribe
    from cosim.output.curve import is_local

    check_installed()
    from foxglove import Context

    from cosim.foxglove.bridge import Bridge
    from cosim.foxglove.parameters import RunParameters

    context, parameters = Context(), RunParameters(key, is_local(f"tcp://{host}:{port}"))
    with subscribe(address, key=key, every=True) as subscriber:
        server = open_server(host, port, context, parameters)
        try:
            yield Bridge(subscriber, server, context, parameters), server.port
        finally:
            server.stop()
            parameters.close()


def check_installed() -> None:
    """Raises InputError where foxglove-sdk is not installed."""
    try:
        import foxglove  # noqa: F401
    except ImportError:
        raise InputError("Foxglove needs its SDK; run pip install 'cosim[foxglove]'", "foxglove") from None


def open_server(host: str, port: int, context: Context, parameters: RunParameters) -> WebSocketServer:
    """Raises InputError for a port that cannot be opened."""
    import foxglove
    from foxglove.websocket import Capability

    try:
        return foxglove.start_server(
            name=NAME,
            host=host,
            port=port,
            capabilities=[Capability.Parameters],
            server_listener=parameters,
            context=context,
        )
    except (RuntimeError, OverflowError) as error:
        reason = str(error).rpartition(": ")[2]
        what = f"port {port} of {host} cannot be opened ({reason}); pass another one, or 0 for any"
        raise InputError(what, "--port") from None
