"""The PUB socket of a stream: it never waits, and keeps little for subscribers that are too slow."""

from __future__ import annotations

from contextlib import suppress

from cosim.core.access.binding import bind
from cosim.core.access.curve import secure
from cosim.core.errors import InputError

QUEUE_TIME = 0.25  # s of messages that are kept for a subscriber
SHORTEST_QUEUE = 16  # messages
SEND_BUFFER = 1 << 16  # bytes, of the system for each TCP connection
LINGER = 200  # ms in which the last messages may still leave


class Publisher:
    """A PUB socket, bound.

    endpoint: any ZeroMQ endpoint. The attribute `endpoint` is the bound one, with the port that `tcp://127.0.0.1:*`
    chose. rate: of messages [Hz]; a subscriber that is slower misses the messages beyond its queue. key: file of the
    keys that encrypt it, None for none.

    Raises InputError when the endpoint cannot be bound or the key cannot be used.
    """

    def __init__(self, endpoint: str, rate: float, key: str | None = None) -> None:
        import zmq

        self._socket = zmq.Context.instance().socket(zmq.PUB)
        self._socket.setsockopt(zmq.SNDHWM, max(SHORTEST_QUEUE, round(min(rate, 1e6) * QUEUE_TIME)))
        self._socket.setsockopt(zmq.SNDBUF, SEND_BUFFER)
        self._socket.setsockopt(zmq.LINGER, LINGER)
        if key is not None:
            try:
                secure(self._socket, key)
            except InputError:
                self._socket.close()
                raise
        self.endpoint = bind(self._socket, endpoint, "publish telemetry")

    def send(self, message: bytes) -> None:
        """Send one frame to every subscriber whose queue has room."""
        import zmq

        with suppress(zmq.Again):
            self._socket.send(message, zmq.NOBLOCK)

    def close(self) -> None:
        """Close the endpoint. Idempotent."""
        self._socket.close()

    def __enter__(self) -> Publisher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
