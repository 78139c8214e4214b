"""A sink of a run that publishes it as a stream, by a PUB socket: it never waits, and keeps little for subscribers that
are too slow."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.core.access.binding import bind
from cosim.core.access.curve import secure
from cosim.core.errors import InputError
from cosim.core.types import Level
from cosim.output.stream.decimation import Decimation, Decimator, decimated_names
from cosim.output.stream.messages import Format, encoder_of, event_of, sample_of, schema_of, template_of

SCHEMA_PERIOD = 1.0  # s of the clock; who joins late waits no longer for the schema

QUEUE_TIME = 0.25  # s of messages that are kept for a subscriber
SHORTEST_QUEUE = 16  # messages
SEND_BUFFER = 1 << 16  # bytes, of the system for each TCP connection
LINGER_TIME = 200  # ms in which the last messages may still leave


@dataclass(frozen=True)
class StreamConfig:
    """A stream as plain data.

    endpoint: to bind; signals: names of the published signals, and columns: theirs among all; rate [Hz], decimation:
    see `Decimator`; step_ns: of a tick; start_ns: when the run began, since 1970; realtime: `start_ns` is taken from
    the first ticks; schema: the first one, its field `signals` is filled here; key: file of the keys that encrypt it.
    """

    endpoint: str
    signals: tuple[tuple[str, str], ...]  # (name, unit)
    columns: tuple[int, ...]
    step_ns: int
    start_ns: int
    realtime: bool
    schema: Mapping[str, Any]
    rate: float = 50.0
    decimation: Decimation = "last"
    format: Format = "json"
    key: str | None = None


class StreamSink:
    """Publishes samples, events and the schema; `endpoint` is where."""

    def __init__(self, stack: ExitStack, config: StreamConfig) -> None:
        """Raises InputError when the endpoint cannot be bound."""
        names, units = zip(*config.signals, strict=True) if config.signals else ((), ())
        self._config, self._start_ns, self._anchored = config, config.start_ns, not config.realtime
        published = decimated_names(names, config.decimation)
        self._template = template_of(published)
        self._units = dict(zip(published, units * (len(published) // max(len(units), 1)), strict=True))
        self._columns = np.array(config.columns, dtype=np.intp)
        self._decimate = Decimator(config.rate, config.decimation)
        self._encode = encoder_of(config.format)
        rate = min(config.rate, 1e9 / config.step_ns)
        self._publisher = stack.enter_context(Publisher(config.endpoint, rate, config.key))
        self.endpoint = self._publisher.endpoint
        self._n = self._missed = 0
        self._described = float("-inf")
        self.describe(config.schema)
        stack.callback(self._publish_rest)

    def __call__(self, t_ns: np.ndarray, values: np.ndarray) -> None:
        self.idle()
        if not self._anchored and len(t_ns):
            self._start_ns, self._anchored = time.time_ns() - int(t_ns[-1]), True
        for due_ns, row in self._decimate(t_ns, values[:, self._columns]):
            self._publish(due_ns, row)

    def event(self, t_ns: int, what: str, level: Level = "info") -> None:
        self._send(event_of(what, self._timestamp(t_ns), t_ns / 1e9, level))

    def fault(self, t_ns: int, what: str) -> None:
        self.event(t_ns, what, "error")

    def change(self, t_ns: int, tick: int, name: str, value: Sequence[float]) -> None:
        """Ignored: the schema has the values of parameters."""

    def missed(self, ticks: int) -> None:
        """So many ticks of the run so far never came here."""
        self._missed = ticks

    def describe(self, schema: Mapping[str, Any]) -> None:
        """A new schema: published now and every SCHEMA_PERIOD."""
        self._schema, self._described = {**schema, "signals": self._units}, float("-inf")
        self.idle()

    def idle(self) -> None:
        """Publish the schema if it is time; to be called at least every SCHEMA_PERIOD."""
        if (now := time.monotonic()) - self._described >= SCHEMA_PERIOD:
            self._described = now
            self._send(schema_of(self._schema, time.time()))

    def _publish_rest(self) -> None:
        """The ticks after the last sample: a subscriber sees the end of the run."""
        for due_ns, row in self._decimate.rest():
            self._publish(due_ns, row)

    def _publish(self, t_ns: int, row: np.ndarray) -> None:
        fields = {
            "timestamp": self._timestamp(t_ns),
            "n": self._n,
            "tick": round(t_ns / self._config.step_ns),
            "t": t_ns / 1e9,
            "missed": self._missed,
        }
        self._send(sample_of(self._template, row, fields))
        self._n += 1

    def _timestamp(self, t_ns: int) -> float:
        return (self._start_ns + int(t_ns)) / 10**9  # of whole numbers: rounded once

    def _send(self, message: Mapping[str, Any]) -> None:
        self._publisher.send(self._encode(message))


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
        self._socket.setsockopt(zmq.LINGER, LINGER_TIME)
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
